package disk

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// aged sets when a file was last changed.
func aged(t *testing.T, path string, at time.Time) {
	t.Helper()
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
}

func isThere(t *testing.T, path string) bool {
	t.Helper()
	_, err := os.Stat(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return err == nil
}

func TestAFileIsStaleWhenItWasNotUsedForThatLong(t *testing.T) {
	now := time.Now().Truncate(time.Second)
	path := fileOf(t, t.TempDir(), "a", 1)
	var used Usage
	stale := func(at time.Time, want bool) {
		t.Helper()
		if got, err := used.Stale(path, at, time.Hour); got != want || err != nil {
			t.Errorf("got %v, %v, want %v", got, err, want)
		}
	}
	aged(t, path, now)
	stale(now.Add(time.Hour-1), false)
	stale(now.Add(time.Hour), true)
	used.Mark(path)
	used.Mark(path)
	stale(now.Add(10*time.Hour), false) // It was used, which is written down.
	stale(now.Add(11*time.Hour-1), false)
	stale(now.Add(11*time.Hour), true)
	path += " that is gone"
	stale(now.Add(99*time.Hour), false)
	used.Mark(path)
	stale(now.Add(99*time.Hour), false)
}

func TestUsesOfDeletedFilesAreForgotten(t *testing.T) {
	dir := t.TempDir()
	var used Usage
	used.Tidy()
	there := fileOf(t, dir, "there", 1)
	used.Mark(there)
	used.Mark(filepath.Join(dir, "gone"))
	if used.Len() != 2 {
		t.Fatalf("%d uses, want 2", used.Len())
	}
	used.Tidy()
	if used.Len() != 1 || !used.take(there) || used.take(there) {
		t.Error("the use of what is there is forgotten, or counts twice")
	}
}

func TestUnfinishedFilesOfACrashAreRemovedOnce(t *testing.T) {
	dir := t.TempDir()
	left, whole, top := fileOf(t, dir, "source/tmp-1", 1), fileOf(t, dir, "source/whole", 1), fileOf(t, dir, "tmp-top", 1)
	folder := &Folder{Dir: dir}
	kept, err := folder.Kept()
	if diff := cmp.Diff([]string{whole}, kept); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	if isThere(t, left) || !isThere(t, top) {
		t.Error("what is unfinished is left, or what is in no source went")
	}
	begun := fileOf(t, dir, "source/tmp-2", 1)
	kept, err = folder.Kept()
	if diff := cmp.Diff([]string{whole}, kept); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	if !isThere(t, begun) {
		t.Error("a download that is under way was removed")
	}
}

func TestClearRemovesTheUnusedFilesOfItsOwnFolders(t *testing.T) {
	now := time.Now()
	dir := t.TempDir()
	var emptied []string
	folder := &Folder{Dir: filepath.Join(dir, "charts"), Emptied: func(folder string) { emptied = append(emptied, folder) }}
	one, two := fileOf(t, dir, "charts/source/one", 1), fileOf(t, dir, "charts/source/two", 1)
	foreign, deep := fileOf(t, dir, "git/source/pack", 1), fileOf(t, dir, "charts/source/deep/file", 1)
	used := fileOf(t, dir, "charts/other/used", 1)
	folder.Used.Mark(used)
	clearAt := func(path string, later time.Duration) {
		t.Helper()
		if err := folder.Clear(t.Context(), path, now.Add(later), time.Hour); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	clearAt(one, time.Minute)
	if !isThere(t, one) {
		t.Fatal("a file that is not stale went")
	}
	for _, path := range []string{one, foreign, deep, used, filepath.Join(dir, "charts/source/gone")} {
		clearAt(path, 2*time.Hour)
	}
	for path, want := range map[string]bool{one: false, two: true, foreign: true, deep: true, used: true} {
		if isThere(t, path) != want {
			t.Errorf("%s is there: %v", path, !want)
		}
	}
	if emptied != nil {
		t.Errorf("emptied though something is left: %v", emptied)
	}
	if err := os.RemoveAll(filepath.Dir(deep)); err != nil {
		t.Fatal(err)
	}
	clearAt(two, 2*time.Hour)
	if diff := cmp.Diff([]string{filepath.Dir(two)}, emptied); diff != "" || isThere(t, filepath.Dir(two)) {
		t.Errorf("emptied: %s", diff)
	}
	folder.Emptied = nil
	clearAt(used, 4*time.Hour)
	if isThere(t, filepath.Dir(used)) {
		t.Error("the folder without files stays")
	}
}

// TestClearWaitsForWhoMakesTheFile, and no longer than its context.
func TestClearWaitsForWhoMakesTheFile(t *testing.T) {
	dir := t.TempDir()
	folder := &Folder{Dir: dir}
	path := fileOf(t, dir, "source/file", 1)
	unlock, err := folder.Locks.Lock(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	end()
	if err := folder.Clear(ctx, path, time.Now().Add(99*time.Hour), time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if !isThere(t, path) {
		t.Error("a file that is being made was removed")
	}
	unlock()
	if err := folder.Clear(t.Context(), path, time.Now().Add(99*time.Hour), time.Hour); err != nil || isThere(t, path) {
		t.Errorf("afterwards it stays: %v", err)
	}
	// The lock is free again.
	if err := folder.Clear(t.Context(), path, time.Now(), time.Hour); err != nil {
		t.Error(err)
	}
}

// TestAFileThatCannotBeRemovedIsAFailure, and so is a folder that cannot be listed.
func TestAFileThatCannotBeRemovedIsAFailure(t *testing.T) {
	dir := t.TempDir()
	folder := &Folder{Dir: dir}
	full := filepath.Dir(fileOf(t, dir, "source/full/file", 1))
	if err := folder.Clear(t.Context(), full, time.Now().Add(2*time.Hour), time.Hour); err == nil || !isThere(t, full) {
		t.Errorf("got %v", err)
	}
	if _, err := (&Folder{Dir: "["}).Kept(); !errors.Is(err, filepath.ErrBadPattern) {
		t.Errorf("got %v", err)
	}
}

func TestAFolderForgetsTheUsesOfDeletedFiles(t *testing.T) {
	dir := t.TempDir()
	folder := &Folder{Dir: dir}
	folder.Used.Mark(filepath.Join(dir, "source", "gone"))
	if folder.Tidy(); folder.Used.Len() != 0 {
		t.Errorf("%d uses are left", folder.Used.Len())
	}
}

func TestOnlyAMissingFileIsNoFailure(t *testing.T) {
	if Present(nil) != nil || Present(&fs.PathError{Err: fs.ErrNotExist}) != nil {
		t.Error("what is gone is a failure")
	}
	if err := Present(fs.ErrPermission); !errors.Is(err, fs.ErrPermission) || err.Error() != "sweeping: permission denied" {
		t.Errorf("got %v", err)
	}
	if !slices.Equal([]bool{IsSHA256("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"), IsSHA256(""),
		IsSHA256("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde"), IsSHA256("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0"),
		IsSHA256("0123456789ABCDEF0123456789abcdef0123456789abcdef0123456789abcdef"), IsSHA256("../3456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef")},
		[]bool{true, false, false, false, false, false}) {
		t.Error("a file name is taken for a SHA-256, or not")
	}
}
