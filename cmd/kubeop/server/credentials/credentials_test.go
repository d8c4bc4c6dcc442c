package credentials

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestNobodyElseReadsTheToken: a file with it is refused if others may read it, and no error repeats it.
func TestNobodyElseReadsTheToken(t *testing.T) {
	file := func(text string, mode os.FileMode) string {
		path := filepath.Join(t.TempDir(), "token")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for name, tc := range map[string]struct {
		given, path string
		want, fails string
	}{
		"of the environment":       {"hunter2\n", "", "hunter2", ""},
		"that comes first":         {"hunter2", "/none", "hunter2", ""},
		"of a file":                {"", file("hunter2\n", 0o600), "hunter2", ""},
		"of one that is read-only": {"", file("hunter2", 0o400), "hunter2", ""},
		"that the group may read":  {"", file("hunter2", 0o640), "", "chmod 600"},
		"that all may read":        {"", file("hunter2", 0o604), "", "chmod 600"},
		"that the group may write": {"", file("hunter2", 0o620), "", "chmod 600"},
		"of a folder":              {"", t.TempDir(), "", "KUBEOP_TOKEN_FILE"},
		"of a file without":        {"", file(" \n", 0o600), "", "has no token"},
		"of no file":               {"", "/none", "", "KUBEOP_TOKEN_FILE"},
		"that is missing":          {"", "", "", "set KUBEOP_TOKEN"},
	} {
		got, err := Token(tc.given, tc.path)
		if got != tc.want || (err != nil) != (tc.fails != "") || err != nil && (!strings.Contains(err.Error(), tc.fails) || strings.Contains(err.Error(), "hunter2")) {
			t.Errorf("a token %s: %q, %v", name, got, err)
		}
	}
}
