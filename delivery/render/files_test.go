package render

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
)

func TestAFileMayHaveExactlyTheLimit(t *testing.T) {
	files := fstest.MapFS{
		"a/limit.yaml": {Data: make([]byte, MaxFileBytes)},
		"a/over.yaml":  {Data: make([]byte, MaxFileBytes+1)},
		"a/empty.yaml": {},
	}
	for name, size := range map[string]int{"a/limit.yaml": MaxFileBytes, "a/empty.yaml": 0} {
		if data, err := ReadFile(files, name); err != nil || len(data) != size {
			t.Errorf("%s: %d bytes, %v", name, len(data), err)
		}
	}
	if _, err := ReadFile(files, "a/over.yaml"); !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), "has 1048577 bytes; a file may have 1048576") {
		t.Errorf("got %v", err)
	}
}

func TestOnlyPlainFilesOfTheRepositoryAreRead(t *testing.T) {
	files := fstest.MapFS{
		"app/a.yaml":   {Data: []byte("a")},
		"app/link":     {Data: []byte("a.yaml"), Mode: fs.ModeSymlink},
		"app/dir":      {Data: []byte("/etc"), Mode: fs.ModeSymlink},
		"app/module":   {Mode: fs.ModeIrregular},
		"app/sub/b":    {Data: []byte("b")},
		"app/a.yaml.d": {Mode: fs.ModeDir},
	}
	for name, want := range map[string]string{
		"app/link":      "app/link: is a symbolic link; only files and folders of the repository are read",
		"app/dir/x":     "app/dir: is a symbolic link; only files and folders of the repository are read",
		"app/module":    "app/module: is a submodule; only files and folders of the repository are read",
		"app/module/x":  "app/module: is a submodule; only files and folders of the repository are read",
		"app/sub":       "app/sub: is a folder, not a file",
		"app/a.yaml/b":  "app/a.yaml: not a folder",
		"app/none.yaml": "app/none.yaml: not in the repository",
	} {
		data, err := ReadFile(files, name)
		if err == nil || err.Error() != want || data != nil {
			t.Errorf("%s: got %q, %v, want %q", name, data, err, want)
		}
	}
	if data, err := ReadFile(files, "app/sub/b"); err != nil || string(data) != "b" {
		t.Errorf("got %q, %v", data, err)
	}
}

func TestAFolderStaysInsideTheRepository(t *testing.T) {
	files := fstest.MapFS{"app/sub/a.yaml": {}, "file": {}, "link": {Data: []byte("app"), Mode: fs.ModeSymlink}}
	for name, c := range map[string]struct {
		want, err string
		missing   bool
	}{
		"app":           {want: "app"},
		"./app/../app/": {want: "app"},
		".":             {want: "."},
		"../app":        {err: `path "../app" must be relative and stay inside the repository`},
		"app/../..":     {err: `path "app/../.." must be relative and stay inside the repository`},
		"/app":          {err: `path "/app" must be relative and stay inside the repository`},
		"none":          {err: `the repository has no folder "none"`, missing: true},
		"file":          {err: "file: not a folder"},
		"link":          {err: "link: is a symbolic link; only files and folders of the repository are read"},
		"link/sub":      {err: "link: is a symbolic link; only files and folders of the repository are read"},
	} {
		got, err := Folder(files, name, "the repository")
		if got != c.want || (err == nil) != (c.err == "") || err != nil && err.Error() != c.err || errors.Is(err, fs.ErrNotExist) != c.missing {
			t.Errorf("%s: got %q, %v, want %q, %s", name, got, err, c.want, c.err)
		}
	}
}

func TestAWalkEndsAtTheLimitOfEntriesAndPassesHiddenFilesOver(t *testing.T) {
	files := fstest.MapFS{"app/.git/config": {}, "app/.hidden": {}}
	for i := range maxEntries - 2 {
		files[fmt.Sprintf("app/f%05d", i)] = &fstest.MapFile{}
	}
	seen := 0
	count := func(name string, _ fs.DirEntry) error {
		if seen++; strings.Contains(name, ".") {
			t.Errorf("%s is hidden", name)
		}
		return nil
	}
	if err := Walk(files, "app", count); err != nil || seen != maxEntries-2 {
		t.Errorf("at the limit: %d files, %v", seen, err)
	}
	files["app/more"] = &fstest.MapFile{}
	if err := Walk(files, "app", count); !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), "app: holds more than 20000 files and folders") {
		t.Errorf("one more than the limit: %v", err)
	}
}

func TestANameThatNoFileCanHaveIsRefused(t *testing.T) {
	long := strings.Repeat("a", maxPathBytes)
	for name, c := range map[string]struct {
		path, entry string
		ok          bool
	}{
		"a usual name":            {"app/a.yaml", "a.yaml", true},
		"as long as may be":       {long, long, true},
		"one byte more":           {long + "a", long + "a", false},
		"a slash within a name":   {"app/a/b", "a/b", false},
		"the folder above itself": {"b", "../b", false},
	} {
		if err := CheckName(c.path, c.entry); (err == nil) != c.ok {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// broken is a repository in which one file cannot be read.
type broken struct {
	fstest.MapFS
	err error
}

func (b broken) ReadFile(string) ([]byte, error)        { return nil, b.err }
func (b broken) ReadDir(string) ([]fs.DirEntry, error)  { return nil, b.err }
func (b broken) Lstat(name string) (fs.FileInfo, error) { return b.Stat(name) }
func (broken) ReadLink(string) (string, error)          { return "", fs.ErrInvalid }
func (b broken) Stat(name string) (fs.FileInfo, error) {
	if name == "lost" {
		return nil, b.err
	}
	return b.MapFS.Stat(name)
}

func TestAFileThatCannotBeReadIsNotEmpty(t *testing.T) {
	damaged := errors.New("the object is damaged")
	files := broken{fstest.MapFS{"a.yaml": {Data: []byte("a")}, "lost": {}, "folder/b.yaml": {}}, damaged}
	for _, name := range []string{"a.yaml", "lost"} {
		if got, err := ReadFile(files, name); !errors.Is(err, damaged) || err.Error() != "reading "+name+": the object is damaged" {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
	if got, err := Stat(files, "lost"); !errors.Is(err, damaged) {
		t.Errorf("got %v, %v", got, err)
	}
	err := Walk(files, "folder", func(string, fs.DirEntry) error { return nil })
	if !errors.Is(err, damaged) || err.Error() != "reading folder: the object is damaged" {
		t.Errorf("got %v", err)
	}
}
