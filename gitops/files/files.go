// Package files has the files of a commit, as a folder that is read by paths.
package files

import (
	"io"
	"io/fs"
)

// Files are the files of a commit. Symbolic links show as fs.ModeSymlink and submodules as fs.ModeIrregular. If the entries of a folder
// have a method Digest() string, Files.Digest is not called for them.
type Files interface {
	fs.FS
	// Digest is the Git hash of the file or folder: equal hashes mean equal content.
	Digest(path string) (string, error)
	// Sub returns the folder at path, with its own limit of entries that may be listed.
	Sub(path string) (Files, error)
}

// Of returns the files of a commit, whose root folder has the methods of Files.
func Of[F folder[F]](root F) Files { return commit[F]{root} }

type folder[F any] interface {
	fs.ReadDirFS
	fs.ReadFileFS
	fs.StatFS
	Digest(path string) (string, error)
	Sub(path string) (F, error)
}

type commit[F folder[F]] struct{ folder[F] }

// Sub implements Files.
func (c commit[F]) Sub(path string) (Files, error) {
	sub, err := c.folder.Sub(path)
	return commit[F]{sub}, err
}

// Below returns the files of one folder of a commit, by their paths from the root. They have the folder's own limit of entries that may be listed.
func Below(root Files, dir string) (Files, error) {
	sub, err := root.Sub(dir)
	if err != nil {
		return nil, err
	}
	return below{sub, dir}, nil
}

type below struct {
	Files
	dir string
}

// Open implements fs.FS.
func (b below) Open(name string) (fs.File, error) { return b.Files.Open(b.from(name)) }

// ReadDir implements fs.ReadDirFS.
func (b below) ReadDir(name string) ([]fs.DirEntry, error) { return fs.ReadDir(b.Files, b.from(name)) }

// Digest implements Files.
func (b below) Digest(name string) (string, error) { return b.Files.Digest(b.from(name)) }

// from converts a path from the root to a path from the folder; "" for a path outside of the folder.
func (b below) from(name string) string {
	if name == b.dir {
		return "."
	}
	if len(name) <= len(b.dir) || name[:len(b.dir)+1] != b.dir+"/" {
		return "" // The empty path is invalid, so the file is not found.
	}
	return name[len(b.dir)+1:]
}

// ReadAtMost reads a file, and of a larger one only its beginning.
func ReadAtMost(files fs.FS, name string, bytes int64) ([]byte, error) {
	f, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, bytes))
}
