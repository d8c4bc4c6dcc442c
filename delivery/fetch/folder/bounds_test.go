package folder

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

// memory has the Git objects of a test, by names that it makes up, and counts the folders that are read.
type memory struct {
	folders map[plumbing.Hash]*object.Tree
	files   map[plumbing.Hash]string
	read    int
}

func newMemory() *memory {
	return &memory{folders: map[plumbing.Hash]*object.Tree{}, files: map[plumbing.Hash]string{}}
}

func (m *memory) Tree(hash plumbing.Hash) (*object.Tree, error) {
	m.read++
	if m.folders[hash] == nil {
		return nil, plumbing.ErrObjectNotFound
	}
	return m.folders[hash], nil
}

func (m *memory) Size(hash plumbing.Hash) (int64, error) {
	if _, there := m.files[hash]; !there {
		return 0, plumbing.ErrObjectNotFound
	}
	return int64(len(m.files[hash])), nil
}

func (m *memory) Blob(hash plumbing.Hash, _ int64) ([]byte, error) { return []byte(m.files[hash]), nil }

func (m *memory) file(name, text string) object.TreeEntry {
	hash := plumbing.ComputeHash(plumbing.BlobObject, []byte(text))
	m.files[hash] = text
	return object.TreeEntry{Name: name, Mode: filemode.Regular, Hash: hash}
}

func (m *memory) folder(name string, entries ...object.TreeEntry) object.TreeEntry {
	hash := plumbing.ComputeHash(plumbing.TreeObject, fmt.Append(nil, entries))
	m.folders[hash] = &object.Tree{Entries: entries}
	return object.TreeEntry{Name: name, Mode: filemode.Dir, Hash: hash}
}

// numbered are so many files, each with a name of its own.
func (m *memory) numbered(prefix string, count int) (entries []object.TreeEntry) {
	for i := range count {
		entries = append(entries, m.file(fmt.Sprint(prefix, i), "x"))
	}
	return entries
}

func list(f *Folder, name string) error {
	_, err := f.ReadDir(name)
	return err
}

func TestAFolderListsAsManyEntriesAsItsLimit(t *testing.T) {
	m := newMemory()
	root := m.folder("", m.folder("three", m.numbered("a", 3)...), m.folder("four", m.numbered("b", 4)...), m.folder("one", m.numbered("c", 1)...), m.folder("none"))
	f := New(m, root.Hash, Limits{File: 9, Files: 4, Depth: 9})
	for _, name := range []string{"three", "three", "one", "one", "none"} {
		if err := list(f, name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	err := list(f, "four")
	sources.WantError(t, err, failure.ErrTooLarge, "readdir four: the number of files in this tree is over the limit of 4")
	if at, is := failure.OversizedPath(err); at != "four" || !is {
		t.Errorf("the error is about %q, %v", at, is)
	}
	sources.WantError(t, list(New(m, root.Hash, Limits{File: 9, Files: 3, Depth: 9}), "four"), failure.ErrTooLarge, "the number of files in this folder is over the limit of 3")
	if err := list(f, "three"); err != nil {
		t.Errorf("what was listed before is refused: %v", err)
	}
}

// TestABoundedFolderGivesItsPartsTheOldLimit: it is shared by tenants, each of whom has a part.
func TestABoundedFolderGivesItsPartsTheOldLimit(t *testing.T) {
	m := newMemory()
	root := m.folder("", m.folder("team", m.folder("app", m.numbered("a", 3)...)))
	f := New(m, root.Hash, Limits{File: 9, Files: 3, Depth: 9})
	shared := f.Bounded(2).Bounded(1)
	sources.WantError(t, list(shared, "team/app"), failure.ErrTooLarge, "limit of 1")
	for range 2 { // Each counts on its own.
		team, err := shared.Sub("team")
		if err != nil {
			t.Fatal(err)
		}
		if err := list(team, "app"); err != nil {
			t.Errorf("the part has another limit than before: %v", err)
		}
		app, err := team.Sub("app")
		if err != nil {
			t.Fatal(err)
		}
		if err := list(app, "."); err != nil {
			t.Errorf("the part of a part has another limit: %v", err)
		}
	}
	if err := list(f, "team/app"); err != nil {
		t.Errorf("the folder itself has another limit: %v", err)
	}
}

func TestFoldersInsideEachOtherAreBounded(t *testing.T) {
	m := newMemory()
	root := m.folder("", m.folder("a", m.folder("b", m.file("c", "text"))))
	three, two := New(m, root.Hash, Limits{File: 9, Files: 9, Depth: 3}), New(m, root.Hash, Limits{File: 9, Files: 9, Depth: 2})
	if _, err := three.ReadFile("a/b/c"); err != nil {
		t.Errorf("at the limit: %v", err)
	}
	_, err := two.ReadFile("a/b/c")
	sources.WantError(t, err, failure.ErrTooLarge, "read a/b/c: the number of folders inside each other is over the limit of 2")
	digest, err := two.DigestOf(Reads{"a/b/c"})
	other, otherErr := two.DigestOf(Reads{"a/b/d"})
	if err != nil || otherErr != nil || digest == other {
		t.Errorf("what is too deep is an answer, for each path: %v, %v", err, otherErr)
	}
}

func TestAFolderIsReadOnceForAllPathsBelowIt(t *testing.T) {
	m := newMemory()
	f := New(m, m.folder("", m.folder("a", m.numbered("f", 5)...)).Hash, DefaultLimits())
	for i := range 5 {
		if _, err := f.ReadFile(fmt.Sprint("a/f", i)); err != nil {
			t.Fatal(err)
		}
	}
	if m.read != 2 {
		t.Errorf("%d folders were read, want 2", m.read)
	}
}

func TestEntriesThatNoFolderCanHoldAreRefused(t *testing.T) {
	for _, name := range []string{"..", ".", "a/b", "", "/a"} {
		m := newMemory()
		f := New(m, m.folder("", m.folder("bad", m.file(name, "x")), m.folder("good", m.file("a", "x"))).Hash, DefaultLimits())
		sources.WantError(t, list(f, "bad"), failure.ErrInvalid, fmt.Sprintf("readdir bad: holds an entry with the impossible name %q", name))
		if err := list(f, "good"); err != nil {
			t.Errorf("%q: the folder beside it: %v", name, err)
		}
	}
}

func TestLinksAndSubmodulesAreSeenAndNotFollowed(t *testing.T) {
	m := newMemory()
	link, module := m.file("link", "../../etc/passwd"), object.TreeEntry{Name: "module", Mode: filemode.Submodule}
	link.Mode = filemode.Symlink
	f := New(m, m.folder("", link, module, m.file("file", "x")).Hash, DefaultLimits())
	for name, want := range map[string]error{"link": ErrSymlink, "link/x": ErrSymlink, "module": ErrSubmodule, "module/x": ErrSubmodule, "file/x": ErrNotExist, "gone": ErrNotExist} {
		_, opened := f.Open(name)
		_, read := f.ReadFile(name)
		_, sub := f.Sub(name)
		for what, err := range map[string]error{"open": opened, "read": read, "sub": sub, "list": list(f, name)} {
			if !errors.Is(err, want) {
				t.Errorf("%s %s: %v", what, name, err)
			}
		}
	}
	for name, want := range map[string]fs.FileMode{"link": fs.ModeSymlink | 0o444, "module": fs.ModeIrregular | 0o444, "file": 0o444, ".": fs.ModeDir | 0o555} {
		if about, err := f.Stat(name); err != nil || about.Mode() != want {
			t.Errorf("%s: %v, %v", name, about, err)
		}
	}
	_, err := f.Sub("file")
	sources.WantError(t, err, failure.ErrInvalid, "sub file: is a file, not a folder")
	if !errors.Is(ErrNotExist, fs.ErrNotExist) || !errors.Is(ErrNotExist, failure.ErrNotFound) || errors.Is(ErrNotExist, fs.ErrPermission) {
		t.Error("what is not there is of other kinds")
	}
}

func TestAnOpenFolderGivesItsEntriesInPieces(t *testing.T) {
	m := newMemory()
	f := New(m, m.folder("", m.file("c", "x"), m.file("a", "x"), m.file("b", "x")).Hash, DefaultLimits())
	opened, err := f.Open(".")
	if err != nil {
		t.Fatal(err)
	}
	from := opened.(fs.ReadDirFile)
	var got []string
	for _, n := range []int{1, 5, 1, 0} {
		entries, err := from.ReadDir(n)
		for _, e := range entries {
			got = append(got, e.Name())
		}
		got = append(got, fmt.Sprint(err))
	}
	if diff := cmp.Diff([]string{"a", "<nil>", "b", "c", "<nil>", io.EOF.Error(), "<nil>"}, got); diff != "" {
		t.Error(diff)
	}
	if _, err := opened.Read(make([]byte, 1)); err == nil || !strings.Contains(err.Error(), "is a folder, not a file") {
		t.Errorf("got %v", err)
	}
}

func TestADigestOfReadsDistinguishesListedFromTraversedFolders(t *testing.T) {
	digest := func(read string, entries ...object.TreeEntry) string {
		t.Helper()
		m := newMemory()
		f := New(m, m.folder("", m.folder("a", entries...)).Hash, DefaultLimits())
		got, err := f.DigestOf(Reads{read})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	m := newMemory()
	one, two := m.file("one", "x"), m.file("two", "x")
	if digest("a", one) != digest("a", two) {
		t.Error("what is in a folder counts that was only passed through")
	}
	if digest("a/", one) == digest("a/", two) {
		t.Error("what is in a folder does not count that was listed")
	}
	if digest("a/one", one) == digest("a/one", two) {
		t.Error("a file that is there and one that is not are the same")
	}
	if digest("a/one", one) == digest("a/one", m.file("one", "changed")) {
		t.Error("the content of a file does not count")
	}
}
