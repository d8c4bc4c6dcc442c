package migrate

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
)

// FuzzImport: whatever a file of Flux or Argo CD has, the import ends, no line of its report has a control character, and a second import finds what the first
// one wrote and changes nothing.
func FuzzImport(f *testing.F) {
	err := filepath.WalkDir("testdata", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(name) != ".yaml" {
			return err
		}
		text, err := os.ReadFile(name)
		f.Add(string(text), strings.Contains(name, "argo"), true)
		return err
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Add("apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: a, namespace: b}\nspec: {path: ., sourceRef: {kind: GitRepository, name: c}}\n", false, false)
	f.Add("apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: \"a\\e[2J\", namespace: b}\nspec: {\"\\u009b\": 1}\n", true, false)
	f.Fuzz(func(t *testing.T, text string, argo, ofPlatform bool) {
		folder, out := t.TempDir(), t.TempDir()
		if err := os.WriteFile(filepath.Join(folder, "a.yaml"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		args := []string{"flux", folder, "--out", out, "--tenant", "acme"}
		if argo {
			args[0] = "argocd"
		}
		if ofPlatform {
			args[5] = "platform"
		}
		report, err := run(t, args...)
		if strings.ContainsFunc(report, func(r rune) bool { return r != '\n' && unicode.IsControl(r) }) {
			t.Errorf("a control character in\n%q", report)
		}
		files := everything(t, out)
		again, failed := run(t, args...)
		if (err == nil) != (failed == nil) || strings.HasPrefix(again, "Wrote ") || everything(t, out) != files {
			t.Errorf("%v, and a second time %v:\n%s", err, failed, again)
		}
	})
}
