package fetch

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// Folder is a folder of a commit, read from the object store. It implements fs.FS, fs.ReadDirFS, fs.ReadFileFS and
// fs.StatFS, and is safe for concurrent use.
//
// Paths are those of fs.ValidPath, so none leads out of the folder. A symbolic link shows as fs.ModeSymlink and a
// submodule as fs.ModeIrregular; opening either, or a path through one, is ErrSymlink or ErrSubmodule. Permissions are
// 0444, or 0555 for executable files and folders; times are zero.
//
// Limits, each ErrTooLarge: a file of 5 MiB; 50,000 files and folders listed below one Folder; 32 folders inside each
// other. A path that is not there is both fs.ErrNotExist and ErrNotFound.
type Folder struct {
	trees  *trees
	hash   plumbing.Hash
	limits limits

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
		err = fail(ErrInvalid, "is a file, not a folder")
	}
	if err != nil {
		return nil, pathError("sub", path, err)
	}
	return &Folder{trees: f.trees, hash: entry.Hash, limits: f.limits}, nil
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
	size, err := f.trees.store.size(entry.Hash)
	if f.trees.store.broken(err) != nil {
		return nil, pathError("read", name, err)
	}
	if size > f.limits.file {
		return nil, pathError("read", name, tooLarge("the file", f.limits.file))
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
			return nil, pathError("readdir", name, fail(ErrInvalid, "holds an entry with the impossible name %q", child.Name))
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
	if f.count+entries > f.limits.files {
		return tooMany("the number of files in this tree", int64(f.limits.files))
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
		return nil, pathError(op, name, tooMany("the number of folders inside each other", int64(f.limits.depth)))
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

// trees decodes folders and remembers them: finding a thousand paths below one folder reads it once.
type trees struct {
	store *generation

	mu    sync.Mutex
	known map[plumbing.Hash]*object.Tree
}

// rememberedTrees bounds the memory of one commit's decoded folders.
const rememberedTrees = 1024

func (t *trees) get(hash plumbing.Hash) (*object.Tree, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if tree, ok := t.known[hash]; ok {
		return tree, nil
	}
	tree, err := t.store.tree(hash)
	if t.store.broken(err) != nil {
		return nil, err
	}
	if len(t.known) >= rememberedTrees {
		clear(t.known)
	}
	t.known[hash] = tree
	return tree, nil
}

// info describes an entry; it is both its fs.DirEntry and its fs.FileInfo.
type info struct {
	store    *generation
	entry    *object.TreeEntry
	name     string
	size     int64
	measured bool
}

func (f *Folder) info(name string, entry *object.TreeEntry) *info {
	return &info{store: f.trees.store, entry: entry, name: path.Base(name)}
}

// measure learns the size, which costs a read and which most walks never ask for.
func (i *info) measure() error {
	if i.measured || i.entry.Mode == filemode.Dir || i.entry.Mode == filemode.Submodule {
		return nil
	}
	size, err := i.store.size(i.entry.Hash)
	if i.store.broken(err) != nil {
		return err
	}
	i.size, i.measured = size, true
	return nil
}

func (i *info) Info() (fs.FileInfo, error) {
	described := &info{store: i.store, entry: i.entry, name: i.name}
	if err := described.measure(); err != nil {
		return nil, pathError("stat", i.name, err)
	}
	return described, nil
}

func (i *info) Name() string       { return i.name }
func (i *info) Size() int64        { return i.size }
func (i *info) ModTime() time.Time { return time.Time{} }
func (i *info) IsDir() bool        { return i.Mode().IsDir() }
func (i *info) Type() fs.FileMode  { return i.Mode().Type() }
func (i *info) Sys() any           { return nil }

func (i *info) Mode() fs.FileMode {
	switch i.entry.Mode {
	case filemode.Dir:
		return fs.ModeDir | 0o555
	case filemode.Symlink:
		return fs.ModeSymlink | 0o444
	case filemode.Submodule:
		return fs.ModeIrregular | 0o444
	case filemode.Executable:
		return 0o555
	}
	return 0o444
}

type openFile struct {
	*strings.Reader
	info *info
}

func (o *openFile) Stat() (fs.FileInfo, error) { return o.info.Info() }
func (o *openFile) Close() error               { return nil }

type openFolder struct {
	info    *info
	entries []fs.DirEntry
}

func (o *openFolder) Stat() (fs.FileInfo, error) { return o.info.Info() }
func (o *openFolder) Close() error               { return nil }

func (o *openFolder) Read([]byte) (int, error) {
	return 0, pathError("read", o.info.name, errors.New("is a folder, not a file"))
}

func (o *openFolder) ReadDir(n int) ([]fs.DirEntry, error) {
	if n <= 0 {
		n = len(o.entries)
	} else if len(o.entries) == 0 {
		return nil, io.EOF
	}
	n = min(n, len(o.entries))
	head := o.entries[:n]
	o.entries = o.entries[n:]
	return head, nil
}
