package folder

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage/filesystem"

	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

// gitObjects are those of a repository of Git itself.
type gitObjects struct{ *filesystem.Storage }

// Tree implements Objects.
func (g gitObjects) Tree(hash plumbing.Hash) (*object.Tree, error) { return object.GetTree(g, hash) }

// Size implements Objects.
func (g gitObjects) Size(hash plumbing.Hash) (int64, error) { return g.EncodedObjectSize(hash) }

// Blob implements Objects.
func (g gitObjects) Blob(hash plumbing.Hash, _ int64) ([]byte, error) {
	blob, err := object.GetBlob(g, hash)
	if err != nil {
		return nil, err
	}
	reader, err := blob.Reader()
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	return io.ReadAll(reader)
}

// newest is the tree of the newest commit of a repository.
func newest(repo *sources.GitRepo, limits Limits) *Folder {
	objects := gitObjects{filesystem.NewStorage(osfs.New(filepath.Join(repo.Work, ".git")), cache.NewObjectLRUDefault())}
	return New(objects, plumbing.NewHash(repo.Git("rev-parse", "HEAD^{tree}")), limits)
}

// commitFolder commits what write puts into a repository, and returns the tree of the commit.
func commitFolder(t *testing.T, lower func(*Limits), write func(*sources.GitRepo)) *Folder {
	t.Helper()
	repo := sources.NewGitRepo(t)
	write(repo)
	repo.Push("first")
	limits := DefaultLimits()
	if lower != nil {
		lower(&limits)
	}
	return newest(repo, limits)
}

func TestFolderIsAnFS(t *testing.T) {
	root := commitFolder(t, nil, func(r *sources.GitRepo) {
		r.Write("kubeop.yaml", "version: 1\n")
		r.Write("apps/web/app.yaml", "kind: App\n")
		// Git sorts "apps" as "apps/", after this; an fs.FS sorts by name.
		r.Write("apps.txt", "x")
		r.Write("empty", "")
		r.Write("large", strings.Repeat("0123456789abcdef", 4096))
	})
	if err := fstest.TestFS(root, "kubeop.yaml", "apps/web/app.yaml", "apps.txt", "empty", "large"); err != nil {
		t.Error(err)
	}
	sub, err := root.Sub("apps")
	if err != nil {
		t.Fatal(err)
	}
	if err := fstest.TestFS(sub, "web/app.yaml"); err != nil {
		t.Error(err)
	}
}

func TestTheDigestOfAFolderChangesOnlyWithItsFiles(t *testing.T) {
	repo := sources.NewGitRepo(t)
	repo.Write("apps/a/app.yaml", "1")
	repo.Write("apps/b/app.yaml", "2")
	repo.Push("first")
	before := newest(repo, DefaultLimits())
	repo.Write("apps/b/app.yaml", "3")
	repo.Push("second")
	after := newest(repo, DefaultLimits())

	changed := map[string]bool{}
	for _, path := range []string{".", "apps", "apps/a", "apps/a/app.yaml", "apps/b"} {
		old, err := before.Digest(path)
		if err != nil {
			t.Fatal(err)
		}
		fresh, err := after.Digest(path)
		if err != nil {
			t.Fatal(err)
		}
		if want := repo.Git("rev-parse", "HEAD:"+strings.TrimPrefix(path, ".")); fresh != want {
			t.Errorf("%s: got %s, git says %s", path, fresh, want)
		}
		changed[path] = old != fresh
	}
	want := map[string]bool{".": true, "apps": true, "apps/a": false, "apps/a/app.yaml": false, "apps/b": true}
	if diff := cmp.Diff(want, changed); diff != "" {
		t.Error(diff)
	}
}

func TestFolderFollowsNothing(t *testing.T) {
	root := commitFolder(t, nil, func(r *sources.GitRepo) {
		r.Write("dir/file", "x")
		for name, to := range map[string]string{"link": "/etc/passwd", "up": "../../..", "linkdir": "dir"} {
			if err := os.Symlink(to, filepath.Join(r.Work, name)); err != nil {
				r.T.Fatal(err)
			}
		}
		r.Git("update-index", "--add", "--cacheinfo", "160000,"+strings.Repeat("ab", 20)+",module")
		r.Write(".gitmodules", "[submodule \"module\"]\npath = module\nurl = https://example.com\n")
		if err := os.Mkdir(filepath.Join(r.Work, "module"), 0o755); err != nil {
			r.T.Fatal(err)
		}
	})
	entries, err := root.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	types := map[string]fs.FileMode{}
	for _, entry := range entries {
		types[entry.Name()] = entry.Type()
	}
	want := map[string]fs.FileMode{
		".gitmodules": 0, "dir": fs.ModeDir, "link": fs.ModeSymlink, "linkdir": fs.ModeSymlink,
		"module": fs.ModeIrregular, "up": fs.ModeSymlink,
	}
	if diff := cmp.Diff(want, types); diff != "" {
		t.Error(diff)
	}
	for path, kind := range map[string]error{
		"link": ErrSymlink, "up": ErrSymlink, "linkdir": ErrSymlink, "linkdir/file": ErrSymlink, "up/x": ErrSymlink,
		"module": ErrSubmodule, "module/x": ErrSubmodule,
	} {
		for op, err := range everyWay(root, path) {
			if !errors.Is(err, kind) {
				t.Errorf("%s %s: %v", op, path, err)
			}
		}
	}
	info, err := fs.Stat(root, "link")
	if err != nil || info.Mode().Type() != fs.ModeSymlink || info.Size() != int64(len("/etc/passwd")) {
		t.Errorf("Stat: %v, %v", info, err)
	}
	// A walk passes by them.
	if err := fs.WalkDir(root, ".", func(_ string, _ fs.DirEntry, err error) error { return err }); err != nil {
		t.Error(err)
	}
}

// everyWay opens a path by each method that reads what is there.
func everyWay(root *Folder, path string) map[string]error {
	_, open := root.Open(path)
	_, read := root.ReadFile(path)
	_, list := root.ReadDir(path)
	_, sub := root.Sub(path)
	return map[string]error{"open": open, "read": read, "list": list, "sub": sub}
}

func TestPathsThatLeaveAFolderAreRefused(t *testing.T) {
	root := commitFolder(t, nil, func(r *sources.GitRepo) { r.Write("dir/file", "x") })
	for _, path := range []string{"", "/", "..", "../x", "dir/../dir", "/dir", "dir/", "./dir", "dir//file"} {
		for op, err := range everyWay(root, path) {
			if !errors.Is(err, fs.ErrInvalid) {
				t.Errorf("%s %q: %v", op, path, err)
			}
		}
	}
	for _, path := range []string{"gone", "dir/gone", "gone/file", "dir/file/x", "dir\\file"} {
		for op, err := range everyWay(root, path) {
			if !errors.Is(err, fs.ErrNotExist) || !errors.Is(err, failure.ErrNotFound) {
				t.Errorf("%s %q: %v", op, path, err)
			}
		}
		if _, err := root.Digest(path); !errors.Is(err, failure.ErrNotFound) {
			t.Errorf("digest %q: %v", path, err)
		}
	}
	if _, err := root.Sub("dir/file"); err == nil {
		t.Error("a file is no folder")
	}
}

func TestAFolderBeyondTheLimitsIsRefused(t *testing.T) {
	deep := strings.Repeat("d/", 8)
	root := commitFolder(t, func(l *Limits) { *l = Limits{File: 1024, Files: 40, Depth: 6} }, func(r *sources.GitRepo) {
		r.Write("large", strings.Repeat("x", 1025))
		r.Write("fits", strings.Repeat("x", 1024))
		r.Write(deep+"file", "x")
		for i := range 20 {
			r.Write(fmt.Sprintf("many/a%d", i), "x")
			r.Write(fmt.Sprintf("more/b%d", i), "x")
		}
	})
	if _, err := root.ReadFile("fits"); err != nil {
		t.Error(err)
	}
	_, err := root.ReadFile("large")
	sources.WantError(t, err, failure.ErrTooLarge, "read large: the file is larger than the limit of 1 KiB")
	_, err = root.ReadFile(deep + "file")
	sources.WantError(t, err, failure.ErrTooLarge, "the number of folders inside each other is over the limit of 6")
	for range 3 {
		if _, err := root.ReadDir("many"); err != nil {
			t.Errorf("listing the same folder again: %v", err)
		}
	}
	err = fs.WalkDir(root, ".", func(_ string, _ fs.DirEntry, err error) error { return err })
	sources.WantError(t, err, failure.ErrTooLarge, "limit of")
	sub, err := root.Sub("more")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sub.ReadDir("."); err != nil {
		t.Errorf("a folder of its own counts on its own: %v", err)
	}
}

// TestTooLargeErrorsNameTheFileOrFolder: the error names file or folder, and everything beside it is read.
func TestTooLargeErrorsNameTheFileOrFolder(t *testing.T) {
	root := commitFolder(t, func(l *Limits) { *l = Limits{File: 1024, Files: 25, Depth: 6} }, func(r *sources.GitRepo) {
		r.Write("apps/web/app.yaml", "x")
		r.Write("apps/web/large", strings.Repeat("x", 1025))
		r.Write("apps/db/app.yaml", "y")
		for i := range 26 {
			r.Write(fmt.Sprintf("apps/many/f%d", i), "x")
		}
		for i := range 20 {
			r.Write(fmt.Sprintf("teams/t%d/f", i), "x")
		}
	})
	read := func(name string) error { _, err := root.ReadFile(name); return err }
	list := func(name string) error { _, err := root.ReadDir(name); return err }
	for name, tc := range map[string]struct {
		err  error
		path string
		says string
	}{
		"a file":   {read("apps/web/large"), "apps/web/large", "the file is larger than the limit of 1 KiB"},
		"a folder": {list("apps/many"), "apps/many", "the number of files in this folder is over the limit of 25"},
	} {
		sources.WantError(t, tc.err, failure.ErrTooLarge, tc.says)
		if path, is := failure.OversizedPath(tc.err); !is || path != tc.path {
			t.Errorf("%s: it is about %q, %t", name, path, is)
		}
	}
	for _, err := range []error{read("apps/web/app.yaml"), read("apps/db/app.yaml"), list("apps"), list("apps/db")} {
		if err != nil {
			t.Error(err)
		}
	}
	if _, is := failure.OversizedPath(read("gone")); is {
		t.Error("a file that is not there is too large")
	}
	if _, is := failure.OversizedPath(failure.TooLarge("the pack", 1)); is {
		t.Error("what is too large as a whole is a file")
	}

	walk := func(f *Folder) error {
		return fs.WalkDir(f, "teams", func(_ string, _ fs.DirEntry, err error) error { return err })
	}
	sources.WantError(t, walk(root), failure.ErrTooLarge, "in this tree is over the limit of 25")
	bounded := root.Bounded(1000)
	if err := walk(bounded); err != nil {
		t.Error(err)
	}
	many, err := bounded.Sub("apps/many")
	if err != nil {
		t.Fatal(err)
	}
	_, err = many.ReadDir(".")
	sources.WantError(t, err, failure.ErrTooLarge, "in this folder is over the limit of 25")
}
