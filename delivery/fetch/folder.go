package fetch

import (
	"errors"
	"fmt"
	"io/fs"
	"sort"
	"strings"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/limit"
)

// Folder is a folder of a commit, read from the object store. It implements fs.FS, fs.ReadDirFS, fs.ReadFileFS and
// fs.StatFS, and is safe for concurrent use.
//
// Paths are those of fs.ValidPath, so none leads out of the folder. A symbolic link shows as fs.ModeSymlink and a
// submodule as fs.ModeIrregular; opening either, or a path through one, is ErrSymlink or ErrSubmodule. Permissions are
// 0444, or 0555 for executable files and folders; times are zero.
//
// Limits, each ErrTooLarge, of which OversizedPath tells the file or folder: a file of 5 MiB; 50,000 files and folders listed below one Folder; 32 folders inside each
// other. A path that is not there is both fs.ErrNotExist and ErrNotFound.
type Folder struct {
	trees  *trees
	hash   plumbing.Hash
	limits limits
	// usual is the limit of files of a folder within this one, where that is another.
	usual int

	mu     sync.Mutex
	listed map[string]struct{}
	count  int
}

var (
	_ fs.ReadDirFS  = (*Folder)(nil)
	_ fs.ReadFileFS = (*Folder)(nil)
	_ fs.StatFS     = (*Folder)(nil)
)

func newFolder(g *generation, hash plumbing.Hash, limits limits) *Folder {
	return &Folder{trees: &trees{store: g, known: map[plumbing.Hash]*object.Tree{}}, hash: hash, limits: limits}
}

// Digest is the Git hash of the file or folder at path; of the folder itself for ".". Two folders with the same digest
// have the same content. The digest of a folder can be given to GitStore.Folder.
func (f *Folder) Digest(path string) (string, error) {
	entry, err := f.find("digest", path)
	if err != nil {
		return "", err
	}
	return entry.Hash.String(), nil
}

// Sub is the folder at path. It counts what is listed on its own.
func (f *Folder) Sub(path string) (*Folder, error) {
	entry, err := f.find("sub", path)
	if err == nil {
		err = closed(entry.Mode)
	}
	if err == nil && entry.Mode != filemode.Dir {
		err = failure.New(failure.ErrInvalid, "is a file, not a folder")
	}
	if err != nil {
		return nil, pathError("sub", path, err)
	}
	sub := &Folder{trees: f.trees, hash: entry.Hash, limits: f.limits}
	sub.limits.files = f.usualFiles()
	return sub, nil
}

// Bounded is the same folder with a limit of its own on what is listed below it, for one that holds what many people own: each
// of theirs is then read through Sub, and has the usual limit.
func (f *Folder) Bounded(entries int) *Folder {
	bounded := &Folder{trees: f.trees, hash: f.hash, limits: f.limits, usual: f.usualFiles()}
	bounded.limits.files = entries
	return bounded
}

// usualFiles is the limit of a folder that is read through Sub.
func (f *Folder) usualFiles() int {
	if f.usual > 0 {
		return f.usual
	}
	return f.limits.files
}

// Open implements fs.FS.
func (f *Folder) Open(name string) (fs.File, error) {
	entry, err := f.find("open", name)
	if err == nil {
		err = closed(entry.Mode)
	}
	if err != nil {
		return nil, pathError("open", name, err)
	}
	if entry.Mode == filemode.Dir {
		entries, err := f.ReadDir(name)
		if err != nil {
			return nil, err
		}
		return &openFolder{info: f.info(name, entry), entries: entries}, nil
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
		err = closed(entry.Mode)
	}
	if err == nil && entry.Mode == filemode.Dir {
		err = errors.New("is a folder, not a file")
	}
	if err != nil {
		return nil, pathError("read", name, err)
	}
	size, err := f.trees.store.blobSize(entry.Hash)
	if f.trees.store.broken(err) != nil {
		return nil, pathError("read", name, err)
	}
	if size > f.limits.file {
		return nil, pathError("read", name, limit.TooLarge("the file", f.limits.file))
	}
	content, err := f.trees.store.read(plumbing.BlobObject, entry.Hash, f.limits.file)
	if f.trees.store.broken(err) != nil {
		return nil, pathError("read", name, err)
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
		return nil, pathError("stat", name, err)
	}
	return info, nil
}

// ReadDir implements fs.ReadDirFS. The entries are sorted by name.
func (f *Folder) ReadDir(name string) ([]fs.DirEntry, error) {
	entry, err := f.find("readdir", name)
	if err == nil {
		err = closed(entry.Mode)
	}
	if err == nil && entry.Mode != filemode.Dir {
		err = errors.New("is a file, not a folder")
	}
	if err != nil {
		return nil, pathError("readdir", name, err)
	}
	tree, err := f.trees.get(entry.Hash)
	if err != nil {
		return nil, pathError("readdir", name, err)
	}
	if err := f.spend(name, len(tree.Entries)); err != nil {
		return nil, pathError("readdir", name, err)
	}
	entries := make([]fs.DirEntry, 0, len(tree.Entries))
	for i := range tree.Entries {
		child := &tree.Entries[i]
		if !fs.ValidPath(child.Name) || child.Name == "." || strings.Contains(child.Name, "/") {
			return nil, pathError("readdir", name, failure.New(failure.ErrInvalid, "holds an entry with the impossible name %q", child.Name))
		}
		entries = append(entries, f.info(child.Name, child))
	}
	sort.Slice(entries, func(i, j int) bool { return entries[i].Name() < entries[j].Name() })
	return entries, nil
}

// spend counts the entries of a folder the first time it is listed.
func (f *Folder) spend(name string, entries int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, done := f.listed[name]; done {
		return nil
	}
	if entries > f.limits.files {
		return limit.TooMany("the number of files in this folder", int64(f.limits.files))
	}
	if f.count+entries > f.limits.files {
		return limit.TooMany("the number of files in this tree", int64(f.limits.files))
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
		return nil, pathError(op, name, fs.ErrInvalid)
	}
	at := &object.TreeEntry{Name: ".", Mode: filemode.Dir, Hash: f.hash}
	if name == "." {
		return at, nil
	}
	parts := strings.Split(name, "/")
	if len(parts) > f.limits.depth {
		return nil, pathError(op, name, limit.TooMany("the number of folders inside each other", int64(f.limits.depth)))
	}
	for _, part := range parts {
		if err := closed(at.Mode); err != nil {
			return nil, pathError(op, name, fmt.Errorf("%s %w", at.Name, err))
		}
		if at.Mode != filemode.Dir {
			return nil, pathError(op, name, missing{})
		}
		tree, err := f.trees.get(at.Hash)
		if err != nil {
			return nil, pathError(op, name, err)
		}
		if at = entryOf(tree, part); at == nil {
			return nil, pathError(op, name, missing{})
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

// closed refuses what is visible but never followed.
func closed(mode filemode.FileMode) error {
	switch mode {
	case filemode.Symlink:
		return ErrSymlink
	case filemode.Submodule:
		return ErrSubmodule
	}
	return nil
}

func pathError(op, name string, err error) error {
	var already *fs.PathError
	if errors.As(err, &already) {
		return err
	}
	return &fs.PathError{Op: op, Path: name, Err: err}
}

var (
	// ErrSymlink is what opening a symbolic link returns.
	ErrSymlink = errors.New("is a symbolic link, and links are not followed: commit the file itself")
	// ErrSubmodule is what opening a submodule returns.
	ErrSubmodule = errors.New("is a submodule, and submodules are not fetched: commit its files or deliver it as its own Git app")
)

// missing says that a path is not in a folder; it is both fs.ErrNotExist, for the packages that read an fs.FS, and
// ErrNotFound, for those that decide by the kinds of this package.
type missing struct{}

func (missing) Error() string { return "no such file or folder" }

// Is makes it both kinds.
func (missing) Is(target error) bool {
	return target == fs.ErrNotExist || target == failure.ErrNotFound
}
