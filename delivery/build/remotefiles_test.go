package build

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
)

// TestAnAnswerThatCannotBeReadIsAnError: an empty description or file in its place would be taken for what the source has.
func TestAnAnswerThatCannotBeReadIsAnError(t *testing.T) {
	files := newRemoteFiles(func([]byte) ([]byte, error) { return []byte{0xff, 0xff}, nil }, func(string) {})
	for name, read := range map[string]func() (any, error){
		"a description": func() (any, error) { return files.Stat("a.yaml") },
		"a file":        func() (any, error) { return files.ReadFile("a.yaml") },
		"a folder":      func() (any, error) { return files.ReadDir("a") },
	} {
		t.Run(name, func(t *testing.T) {
			_, err := read()
			var where *fs.PathError
			if !errors.As(err, &where) || !strings.HasPrefix(where.Path, "a") {
				t.Errorf("got %v", err)
			}
		})
	}
}
