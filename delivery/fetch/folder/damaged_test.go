package folder

import (
	"errors"
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
)

var errDamaged = errors.New("the object is damaged")

// damaged are objects of which one cannot be read: the one that is read as number fails, from 1.
type damaged struct {
	Objects
	fails, done int
}

func (d *damaged) next() error {
	if d.done++; d.done == d.fails {
		return errDamaged
	}
	return nil
}

func (d *damaged) Tree(hash plumbing.Hash) (*object.Tree, error) {
	if err := d.next(); err != nil {
		return nil, err
	}
	return d.Objects.Tree(hash)
}

func (d *damaged) Size(hash plumbing.Hash) (int64, error) {
	if err := d.next(); err != nil {
		return 0, err
	}
	return d.Objects.Size(hash)
}

func (d *damaged) Blob(hash plumbing.Hash, most int64) ([]byte, error) {
	if err := d.next(); err != nil {
		return nil, err
	}
	return d.Objects.Blob(hash, most)
}

// TestAnObjectThatCannotBeReadIsAnErrorOfEveryAnswer: a folder that seems to lack a file would be delivered without it.
func TestAnObjectThatCannotBeReadIsAnErrorOfEveryAnswer(t *testing.T) {
	m := newMemory()
	root := m.folder("root", m.folder("app", m.file("a.yaml", "a"), m.folder("sub", m.file("b.yaml", "b"))))
	for name, c := range map[string]struct {
		read  func(*Folder) error
		reads int
	}{
		"open a file":        {func(f *Folder) error { _, err := f.Open("app/a.yaml"); return err }, 4},
		"open a folder":      {func(f *Folder) error { _, err := f.Open("app"); return err }, 2},
		"read a file":        {func(f *Folder) error { _, err := f.ReadFile("app/a.yaml"); return err }, 4},
		"describe a file":    {func(f *Folder) error { _, err := f.Stat("app/a.yaml"); return err }, 3},
		"list a folder":      {func(f *Folder) error { _, err := f.ReadDir("app/sub"); return err }, 3},
		"list it as Git":     {func(f *Folder) error { _, err := f.Entries("app/sub"); return err }, 3},
		"digest a file":      {func(f *Folder) error { _, err := f.Digest("app/a.yaml"); return err }, 2},
		"digest reads":       {func(f *Folder) error { _, err := f.DigestOf(Reads{"app/gone"}); return err }, 2},
		"a folder in it":     {func(f *Folder) error { _, err := f.Sub("app/sub"); return err }, 2},
		"describe an opened": {func(f *Folder) error { return described(f, "app/a.yaml") }, 5},
		"describe a listed":  {func(f *Folder) error { return listed(f, "app") }, 3},
		"through a reading": {func(f *Folder) error {
			r := f.Reading()
			if _, err := r.ReadFile("app/a.yaml"); err != nil {
				return err
			}
			_, _, err := r.Done()
			return err
		}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			for n := 1; n <= c.reads+1; n++ {
				objects := &damaged{Objects: m, fails: n}
				err := c.read(New(objects, root.Hash, DefaultLimits()))
				if fails := n <= c.reads; fails != errors.Is(err, errDamaged) || !fails && err != nil {
					t.Errorf("object %d of %d fails: %v", n, objects.done, err)
				}
			}
		})
	}
}

func described(f *Folder, name string) error {
	file, err := f.Open(name)
	if err == nil {
		_, err = file.Stat()
	}
	return err
}

func listed(f *Folder, name string) error {
	entries, err := f.ReadDir(name)
	if err == nil {
		_, err = entries[0].Info()
	}
	return err
}

// unlisted are files of which no folder can be listed.
type unlisted struct{ fstest.MapFS }

func (unlisted) ReadDir(string) ([]fs.DirEntry, error) { return nil, errDamaged }

func TestFilesOutsideGitThatCannotBeRead(t *testing.T) {
	if got, err := FromFS(unlisted{fstest.MapFS{"app/a.yaml": {}}}).Folder("app").ReadDir("."); !errors.Is(err, errDamaged) {
		t.Errorf("got %v, %v", got, err)
	}
	files := FromFS(fstest.MapFS{"app/device": {Mode: fs.ModeDevice}, "large/a.yaml": {Data: []byte("large")}})
	if got, err := files.Folder("app").ReadDir("."); err == nil {
		t.Errorf("got %v of a folder with a device", got)
	}
	unknown := plumbing.ComputeHash(plumbing.BlobObject, []byte("unknown"))
	_, treeErr := files.Tree(unknown)
	_, sizeErr := files.Size(unknown)
	_, blobErr := files.Blob(unknown, 1)
	if treeErr == nil || sizeErr == nil || blobErr == nil {
		t.Errorf("a hash of no file: %v, %v, %v", treeErr, sizeErr, blobErr)
	}
	tree, err := files.Tree(files.note("large", 0))
	if err != nil {
		t.Fatal(err)
	}
	for most, fits := range map[int64]bool{5: true, 4: false} {
		if got, err := files.Blob(tree.Entries[0].Hash, most); (err == nil) != fits || fits && string(got) != "large" {
			t.Errorf("at most %d bytes: %q, %v", most, got, err)
		}
	}
}

func TestOnlyAFolderHasEntries(t *testing.T) {
	m := newMemory()
	f := New(m, m.folder("root", m.file("a.yaml", "a")).Hash, DefaultLimits())
	if got, err := f.Entries("a.yaml"); err == nil {
		t.Errorf("got %v of a file", got)
	}
	if got, err := f.Entries("gone"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, %v of what is not there", got, err)
	}
	if got, err := f.Entries("."); err != nil || len(got) != 1 || got[0].Name != "a.yaml" {
		t.Errorf("got %v, %v", got, err)
	}
}
