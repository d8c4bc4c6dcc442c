package plan

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/kubeop/kubeop/cmd/kubeop/git"
)

// TestASnapshotHasChangesOfTheLastMoment: a file changes within the clock tick of the commit, and keeps its size.
func TestASnapshotHasChangesOfTheLastMoment(t *testing.T) {
	dir := t.TempDir()
	run := func(args ...string) {
		t.Helper()
		if _, err := git.Run(t.Context(), dir, args...); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, "value")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run("init", "--quiet")
	write("12")
	run("add", ".")
	before, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	write("18")
	for _, of := range []string{file, filepath.Join(dir, ".git", "index")} {
		if err := os.Chtimes(of, before.ModTime(), before.ModTime()); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(time.Second) // Git compares whole seconds, and the time of a change of an inode cannot be set.
	s, err := take(t.Context(), dir, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if got, err := fs.ReadFile(s.Root, "value"); err != nil || string(got) != "18" {
		t.Errorf("the snapshot has %q, %v", got, err)
	}
}

// TestASnapshotHasTheCloneOrTheFolderOfKubeop: a folder in a clone gives the whole clone, and a folder outside of one has to have a kubeop.yaml.
func TestASnapshotHasTheCloneOrTheFolderOfKubeop(t *testing.T) {
	for _, name := range []string{"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"} {
		t.Setenv(name, os.DevNull)
	}
	base := t.TempDir()
	write := func(name string) {
		t.Helper()
		at := filepath.Join(base, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o700), os.WriteFile(at, []byte("layout: v1\n"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"folder/kubeop.yaml", "folder/apps/web.yaml", "other/web.yaml", "clone/a/b.yaml", "clone/.gitignore", "named/kubeop.yaml"} {
		write(name)
	}
	if err := os.WriteFile(filepath.Join(base, "clone/.gitignore"), []byte("*.tmp\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	write("clone/a/c.tmp")
	for _, args := range [][]string{{"clone", "init", "--quiet"}, {"named", "init", "--quiet"}, {"named", "config", "user.name", "Ada"}} {
		if _, err := git.Run(t.Context(), filepath.Join(base, args[0]), args[1:]...); err != nil {
			t.Fatal(err)
		}
	}
	for arg, want := range map[string]struct{ root, file, none, author, says string }{
		"folder":             {root: "folder", file: "apps/web.yaml", author: "you"},
		"folder/kubeop.yaml": {root: "folder", file: "apps/web.yaml", author: "you"},
		"other":              {says: filepath.Join(base, "other") + " is neither in a clone nor a folder with a kubeop.yaml"},
		"clone/a":            {root: "clone", file: "a/b.yaml", none: "a/c.tmp", author: "you"},
		"named":              {root: "named", file: "kubeop.yaml", author: "Ada"},
		"other/web.yaml/x":   {says: "stat " + filepath.Join(base, "other/web.yaml/x") + ": not a directory"},
	} {
		t.Run(arg, func(t *testing.T) {
			s, err := take(t.Context(), filepath.Join(base, arg), t.TempDir())
			if want.says != "" {
				if err == nil || err.Error() != want.says {
					t.Errorf("got %v, want %s", err, want.says)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if s.root != filepath.Join(base, want.root) || s.Author != want.author || s.Revision != "worktree@sha1:0000000000000000000000000000000000000000" {
				t.Errorf("got %s by %s of %s", s.Revision, s.Author, s.root)
			}
			if _, err := fs.Stat(s.Root, want.file); err != nil {
				t.Errorf("it has no %s: %v", want.file, err)
			}
			if _, err := fs.Stat(s.Root, cmp.Or(want.none, "none")); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("it has %s, which Git ignores: %v", want.none, err)
			}
		})
	}
}

// TestASnapshotOfACommitHasItsAuthor, also if the name of the author has several words.
func TestASnapshotOfACommitHasItsAuthor(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for _, args := range [][]string{
		{"init", "--quiet"}, {"-c", "user.name=Ada King, Countess", "-c", "user.email=a@b", "commit", "--quiet", "--allow-empty", "-m", "x"},
		{"tag", "v1"}, {"-c", "user.name=Another", "-c", "user.email=a@b", "commit", "--quiet", "--allow-empty", "-m", "y"},
	} {
		if _, err := git.Run(t.Context(), dir, args...); err != nil {
			t.Fatal(err)
		}
	}
	hash, err := git.Line(t.Context(), dir, "rev-parse", "v1")
	if err != nil {
		t.Fatal(err)
	}
	s, err := take(t.Context(), "v1", "")
	if err != nil || s.Author != "Ada King, Countess" || s.Revision != "v1@sha1:"+hash || s.objects != filepath.Join(s.root, ".git") {
		t.Errorf("got %+v, %v", s, err)
	}
}
