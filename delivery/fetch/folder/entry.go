package folder

import (
	"errors"
	"io"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// info describes an entry; it is both its fs.DirEntry and its fs.FileInfo.
type info struct {
	objects  Objects
	entry    *object.TreeEntry
	name     string
	size     int64
	measured bool
}

func (f *Folder) info(name string, entry *object.TreeEntry) *info {
	return &info{objects: f.trees.objects, entry: entry, name: path.Base(name)}
}

// measure reads the size. It is separate because it costs a read, and most walks need no size.
func (i *info) measure() error {
	if i.measured || i.entry.Mode == filemode.Dir || i.entry.Mode == filemode.Submodule {
		return nil
	}
	size, err := i.objects.Size(i.entry.Hash)
	if err != nil {
		return err
	}
	i.size, i.measured = size, true
	return nil
}

// Info implements fs.DirEntry.
func (i *info) Info() (fs.FileInfo, error) {
	described := &info{objects: i.objects, entry: i.entry, name: i.name}
	if err := described.measure(); err != nil {
		return nil, PathError("stat", i.name, err)
	}
	return described, nil
}

// Name implements fs.DirEntry and fs.FileInfo.
func (i *info) Name() string { return i.name }

// Digest is the Git hash of the file or folder, like Folder.Digest.
func (i *info) Digest() string { return i.entry.Hash.String() }

// Size implements fs.FileInfo; it is 0 until measure was called.
func (i *info) Size() int64 { return i.size }

// ModTime implements fs.FileInfo; a Git tree has no times.
func (i *info) ModTime() time.Time { return time.Time{} }

// IsDir implements fs.DirEntry and fs.FileInfo.
func (i *info) IsDir() bool { return i.Mode().IsDir() }

// Type implements fs.DirEntry.
func (i *info) Type() fs.FileMode { return i.Mode().Type() }

// Sys implements fs.FileInfo.
func (i *info) Sys() any { return nil }

// Mode implements fs.FileInfo.
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

// Stat implements fs.File.
func (o *openFile) Stat() (fs.FileInfo, error) { return o.info.Info() }

// Close implements fs.File; nothing is open.
func (o *openFile) Close() error { return nil }

// OpenFolder returns an opened folder with this FileInfo and these entries.
func OpenFolder(about fs.FileInfo, entries []fs.DirEntry) fs.ReadDirFile {
	return &openFolder{about: about, entries: entries}
}

type openFolder struct {
	about   fs.FileInfo
	entries []fs.DirEntry
}

// Stat implements fs.File.
func (o *openFolder) Stat() (fs.FileInfo, error) { return o.about, nil }

// Close implements fs.File; nothing is open.
func (o *openFolder) Close() error { return nil }

// Read implements fs.File.
func (o *openFolder) Read([]byte) (int, error) {
	return 0, PathError("read", o.about.Name(), errors.New("is a folder, not a file"))
}

// ReadDir implements fs.ReadDirFile.
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
