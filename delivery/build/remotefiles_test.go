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

// TestAFileThatCameWithItsFolderIsNotRequested, and its content is not kept after it was read.
func TestAFileThatCameWithItsFolderIsNotRequested(t *testing.T) {
	requests := 0
	files := newRemoteFiles(func([]byte) ([]byte, error) {
		requests++
		return nil, errors.New("requested")
	}, func(string) {})
	files.infos["a.yaml"] = &reply{Info: &info{Called: "a.yaml"}, Data: []byte("a: b"), HasData: true}
	if data, err := files.ReadFile("a.yaml"); err != nil || string(data) != "a: b" || requests != 0 {
		t.Errorf("got %q, %v after %d requests", data, err, requests)
	}
	if _, err := files.ReadFile("a.yaml"); err == nil || requests != 1 {
		t.Errorf("the second time: %v after %d requests", err, requests)
	}
}
