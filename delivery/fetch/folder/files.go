package folder

import (
	"fmt"
	"io/fs"
	"path"
	"sort"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
)

// Files are files that are in no Git repository, as Git objects. It implements Objects. The hash of an object is made from its path, so listing
// a folder reads no file, and a Folder must not be used any more once a file changes.
type Files struct {
	files fs.FS

	mu sync.Mutex
	// known are the paths and sizes of what was listed, by hash.
	known map[plumbing.Hash]file
}

type file struct {
	path string
	size int64
}

// FromFS returns files as Git objects.
func FromFS(files fs.FS) *Files {
	return &Files{files: files, known: map[plumbing.Hash]file{}}
}

// Folder returns a folder of the files.
func (f *Files) Folder(name string) *Folder {
	return New(f, f.note(name, 0), DefaultLimits())
}

func (f *Files) note(name string, size int64) plumbing.Hash {
	hash := plumbing.ComputeHash(plumbing.BlobObject, []byte(name))
	f.mu.Lock()
	defer f.mu.Unlock()
	f.known[hash] = file{name, size}
	return hash
}

func (f *Files) find(hash plumbing.Hash) (file, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	found, known := f.known[hash]
	if !known {
		return file{}, fmt.Errorf("no file has the hash %s", hash)
	}
	return found, nil
}

// Tree implements Objects, as the other methods do.
func (f *Files) Tree(hash plumbing.Hash) (*object.Tree, error) {
	at, err := f.find(hash)
	if err != nil {
		return nil, err
	}
	entries, err := fs.ReadDir(f.files, at.path)
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", at.path, err)
	}
	tree := &object.Tree{Hash: hash}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			return nil, fmt.Errorf("listing %s: %w", at.path, err)
		}
		mode, err := filemode.NewFromOSFileMode(info.Mode())
		if err != nil {
			return nil, fmt.Errorf("%s is no file that Git keeps: %w", path.Join(at.path, e.Name()), err)
		}
		tree.Entries = append(tree.Entries, object.TreeEntry{Name: e.Name(), Mode: mode, Hash: f.note(path.Join(at.path, e.Name()), info.Size())})
	}
	sort.Sort(object.TreeEntrySorter(tree.Entries))
	return tree, nil
}

// Size returns the size that the file had when its folder was listed.
func (f *Files) Size(hash plumbing.Hash) (int64, error) {
	found, err := f.find(hash)
	return found.size, err
}

// Blob reads a file.
func (f *Files) Blob(hash plumbing.Hash, most int64) ([]byte, error) {
	found, err := f.find(hash)
	if err != nil {
		return nil, err
	}
	if found.size > most {
		return nil, failure.New(failure.ErrTooLarge, "a file of %d bytes, at most %d", found.size, most)
	}
	return fs.ReadFile(f.files, found.path)
}
