// Package folder reads the files of a commit from its Git objects. Nothing is checked out, so symbolic links, submodules and ".." have no
// meaning.
package folder

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/limit"
)

// Folder is a folder of a commit, read from the object store. It implements fs.FS, fs.ReadDirFS, fs.ReadFileFS and fs.StatFS, and is safe
// for concurrent use.
//
// Paths are those of fs.ValidPath, so none leads out of the folder. A symbolic link shows as fs.ModeSymlink and a submodule as
// fs.ModeIrregular; opening either, or a path through one, returns ErrSymlink or ErrSubmodule. Permissions are 0444, or 0555 for executable
// files and folders; times are zero.
//
// Limits, each ErrTooLarge, for which failure.OversizedPath returns the file or folder: a file of 5 MiB; 50,000 files and folders listed
// below one Folder; 32 nested folders. A path that does not exist is ErrNotExist.
type Folder struct {
	trees  *trees
	hash   plumbing.Hash
	limits Limits
	// filesOfSub is the limit of files for Sub, if it differs from the folder's own; 0 means the same.
	filesOfSub int

	mu     sync.Mutex
	listed map[string]struct{}
	count  int
}

var (
	_ fs.ReadDirFS  = (*Folder)(nil)
	_ fs.ReadFileFS = (*Folder)(nil)
	_ fs.StatFS     = (*Folder)(nil)
)

// Limits of reading a commit.
type Limits struct {
	// File is the largest file, in bytes.
	File int64
	// Files is how many files and folders may be listed below one Folder.
	Files int
	// Depth is how many folders may be nested.
	Depth int
}

// DefaultLimits are the limits that the comment of Folder lists.
func DefaultLimits() Limits { return Limits{File: 5 * limit.MiB, Files: 50_000, Depth: 32} }

// New returns the folder of a tree.
func New(objects Objects, tree plumbing.Hash, limits Limits) *Folder {
	return &Folder{trees: newTrees(objects), hash: tree, limits: limits}
}

// Digest is the Git hash of the file or folder at path; "." is the folder itself. Two folders with the same digest have the same content.
// git.Store.Folder takes the digest of a folder.
func (f *Folder) Digest(path string) (string, error) {
	entry, err := f.find("digest", path)
	if err != nil {
		return "", err
	}
	return entry.Hash.String(), nil
}

// Sub returns the folder at path, with its own count of listed files and folders.
func (f *Folder) Sub(path string) (*Folder, error) {
	entry, err := f.find("sub", path)
	if err == nil {
		err = followable(entry.Mode)
	}
	if err == nil && entry.Mode != filemode.Dir {
		err = failure.New(failure.ErrInvalid, "is a file, not a folder")
	}
	if err != nil {
		return nil, PathError("sub", path, err)
	}
	sub := &Folder{trees: f.trees, hash: entry.Hash, limits: f.limits}
	sub.limits.Files = f.subLimit()
	return sub, nil
}

// Bounded returns the same folder with another limit of files and folders listed below it. It is for a folder that many tenants share: each
// tenant's folder is then read through Sub, which has the limit of this Folder.
func (f *Folder) Bounded(entries int) *Folder {
	bounded := &Folder{trees: f.trees, hash: f.hash, limits: f.limits, filesOfSub: f.subLimit()}
	bounded.limits.Files = entries
	return bounded
}

// subLimit is the limit of files of a folder that is read through Sub.
func (f *Folder) subLimit() int {
	if f.filesOfSub > 0 {
		return f.filesOfSub
	}
	return f.limits.Files
}

// Open implements fs.FS.
func (f *Folder) Open(name string) (fs.File, error) {
	entry, err := f.find("open", name)
	if err == nil {
		err = followable(entry.Mode)
	}
	if err != nil {
		return nil, PathError("open", name, err)
	}
	if entry.Mode == filemode.Dir {
		entries, err := f.ReadDir(name)
		if err != nil {
			return nil, err
		}
		return OpenFolder(f.info(name, entry), entries), nil
	}
	content, err := f.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return &openFile{info: f.info(name, entry), Reader: strings.NewReader(string(content))}, nil
}

// ReadFile implements fs.ReadFileFS.
func (f *Folder) ReadFile(name string) ([]byte, error) {
	entry, err := f.find("read", name)
	if err == nil {
		err = followable(entry.Mode)
	}
	if err == nil && entry.Mode == filemode.Dir {
		err = errors.New("is a folder, not a file")
	}
	if err != nil {
		return nil, PathError("read", name, err)
	}
	size, err := f.trees.objects.Size(entry.Hash)
	if err != nil {
		return nil, PathError("read", name, err)
	}
	if size > f.limits.File {
		return nil, PathError("read", name, failure.TooLarge("the file", f.limits.File))
	}
	content, err := f.trees.objects.Blob(entry.Hash, f.limits.File)
	if err != nil {
		return nil, PathError("read", name, err)
	}
	return content, nil
}

// Stat implements fs.StatFS. It does not follow links: of a symbolic link it describes the link.
func (f *Folder) Stat(name string) (fs.FileInfo, error) {
	entry, err := f.find("stat", name)
	if err != nil {
		return nil, err
	}
	info := f.info(name, entry)
	if err := info.measure(); err != nil {
		return nil, PathError("stat", name, err)
	}
	return info, nil
}

// ReadDir implements fs.ReadDirFS. The entries are sorted by name.
func (f *Folder) ReadDir(name string) ([]fs.DirEntry, error) {
	entry, err := f.find("readdir", name)
	if err == nil {
		err = followable(entry.Mode)
	}
	if err == nil && entry.Mode != filemode.Dir {
		err = errors.New("is a file, not a folder")
	}
	if err != nil {
		return nil, PathError("readdir", name, err)
	}
	tree, err := f.trees.get(entry.Hash)
	if err != nil {
		return nil, PathError("readdir", name, err)
	}
	if err := f.spend(name, len(tree.Entries)); err != nil {
		return nil, PathError("readdir", name, err)
	}
	entries := make([]fs.DirEntry, 0, len(tree.Entries))
	for i := range tree.Entries {
		child := &tree.Entries[i]
		if !fs.ValidPath(child.Name) || child.Name == "." || strings.Contains(child.Name, "/") {
			return nil, PathError("readdir", name, failure.New(failure.ErrInvalid, "holds an entry with the impossible name %q", child.Name))
		}
		entries = append(entries, f.info(child.Name, child))
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, nil
}

// Entries returns the entries of a folder as Git has them, in Git's order.
func (f *Folder) Entries(name string) ([]object.TreeEntry, error) {
	entry, err := f.find("list", name)
	if err != nil {
		return nil, err
	}
	if entry.Mode != filemode.Dir {
		return nil, PathError("list", name, errors.New("is no folder"))
	}
	tree, err := f.trees.get(entry.Hash)
	if err != nil {
		return nil, PathError("list", name, err)
	}
	return tree.Entries, nil
}

// spend counts the entries of a folder the first time it is listed.
func (f *Folder) spend(name string, entries int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, done := f.listed[name]; done {
		return nil
	}
	if entries > f.limits.Files {
		return failure.TooMany("the number of files in this folder", int64(f.limits.Files))
	}
	if f.count+entries > f.limits.Files {
		return failure.TooMany("the number of files in this tree", int64(f.limits.Files))
	}
	if f.listed == nil {
		f.listed = map[string]struct{}{}
	}
	f.listed[name] = struct{}{}
	f.count += entries
	return nil
}

// find walks to the entry at name.
func (f *Folder) find(op, name string) (*object.TreeEntry, error) {
	if !fs.ValidPath(name) {
		return nil, PathError(op, name, fs.ErrInvalid)
	}
	at := &object.TreeEntry{Name: ".", Mode: filemode.Dir, Hash: f.hash}
	if name == "." {
		return at, nil
	}
	parts := strings.Split(name, "/")
	if len(parts) > f.limits.Depth {
		return nil, PathError(op, name, failure.TooMany("the number of folders inside each other", int64(f.limits.Depth)))
	}
	for _, part := range parts {
		if err := followable(at.Mode); err != nil {
			return nil, PathError(op, name, fmt.Errorf("%s %w", at.Name, err))
		}
		if at.Mode != filemode.Dir {
			return nil, PathError(op, name, ErrNotExist)
		}
		tree, err := f.trees.get(at.Hash)
		if err != nil {
			return nil, PathError(op, name, err)
		}
		if at = entryOf(tree, part); at == nil {
			return nil, PathError(op, name, ErrNotExist)
		}
	}
	return at, nil
}

// entryOf does not use object.Tree.FindEntry, which refuses names that are only unsafe in a working tree.
func entryOf(tree *object.Tree, name string) *object.TreeEntry {
	for i := range tree.Entries {
		if tree.Entries[i].Name == name {
			return &tree.Entries[i]
		}
	}
	return nil
}
