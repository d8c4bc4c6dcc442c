package files

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
)

// repository is a folder in memory, whose digests are its paths.
type repository struct{ fstest.MapFS }

func (r repository) Digest(path string) (string, error) { return "digest of " + path, nil }

func (r repository) Sub(path string) (repository, error) {
	sub, err := fs.Sub(r.MapFS, path)
	if err != nil {
		return r, err
	}
	within := fstest.MapFS{}
	for name, f := range r.MapFS {
		if rest, ok := strings.CutPrefix(name, path+"/"); ok {
			within[rest] = f
		}
	}
	_, err = fs.Stat(sub, ".")
	return repository{within}, err
}

// TestOnlyPathsBelowTheFolderAreFound: the limit of entries of a folder counts for nothing else.
func TestOnlyPathsBelowTheFolderAreFound(t *testing.T) {
	in := below{dir: "projects/shop"}
	for name, want := range map[string]string{
		"projects/shop": ".", "projects/shop/project.yaml": "project.yaml", "projects/shop/": "", "projects/shop2/project.yaml": "", "projects": "", "kubeop.yaml": "", "": "",
	} {
		if got := in.from(name); got != want {
			t.Errorf("%q is %q in the folder, want %q", name, got, want)
		}
	}
}

func TestAFolderIsReadByThePathsFromTheRoot(t *testing.T) {
	root := Of(repository{fstest.MapFS{"projects/shop/project.yaml": {Data: []byte("kind: Project")}, "kubeop.yaml": {}}})
	in, err := Below(root, "projects/shop")
	if err != nil {
		t.Fatal(err)
	}
	text, err := ReadAtMost(in, "projects/shop/project.yaml", 4)
	if err != nil || string(text) != "kind" {
		t.Errorf("the first bytes are %q, %v", text, err)
	}
	entries, err := fs.ReadDir(in, "projects/shop")
	if err != nil || len(entries) != 1 || entries[0].Name() != "project.yaml" {
		t.Errorf("the entries are %v, %v", entries, err)
	}
	if digest, err := in.Digest("projects/shop/project.yaml"); err != nil || digest != "digest of project.yaml" {
		t.Errorf("the digest is %q, %v", digest, err)
	}
	if _, err := in.Open("kubeop.yaml"); err == nil {
		t.Error("a file beside the folder was opened")
	}
	if _, err := Below(root, "missing"); err == nil {
		t.Error("a missing folder was opened")
	}
	if _, err := ReadAtMost(in, "projects/shop/missing.yaml", 4); err == nil {
		t.Error("a missing file was read")
	}
}
