package plan

import (
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
