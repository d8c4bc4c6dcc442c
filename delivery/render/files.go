package render

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

const (
	// MaxFileBytes is the size of one manifest, kustomization or values file.
	MaxFileBytes = 1 << 20
	// maxEntries is the largest number of files and folders that are read for one app.
	maxEntries = 20_000
)

// Folder returns the path of an existing folder in the form that fs.FS expects. Errors call the file system by the name in whole, such as
// "the repository".
func Folder(files fs.FS, name, whole string) (string, error) {
	clean := path.Clean(name)
	if !fs.ValidPath(clean) {
		return "", fmt.Errorf("path %q must be relative and stay inside the repository", name)
	}
	info, err := Stat(files, clean)
	if errors.Is(err, fs.ErrNotExist) {
		return "", Missing(fs.ErrNotExist, "%s has no folder %q", whole, clean)
	}
	if err != nil {
		return "", err
	}
	if !info.IsDir() {
		return "", fmt.Errorf("%s: not a folder", clean)
	}
	return clean, nil
}

// Stat describes a file. It does not follow links anywhere on the way, because a link may point out of the repository. The contents of a
// submodule are not in the repository.
func Stat(files fs.FS, name string) (fs.FileInfo, error) {
	for i, c := range name {
		if c != '/' {
			continue
		}
		if info, err := fs.Lstat(files, name[:i]); err == nil && !info.IsDir() {
			return nil, NotPlain(name[:i], info.Mode())
		}
	}
	info, err := fs.Lstat(files, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, Missing(fs.ErrNotExist, "%s: not in the repository", name)
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	if !info.IsDir() && !info.Mode().IsRegular() {
		return nil, NotPlain(name, info.Mode())
	}
	return info, nil
}

// NotPlain says why an entry of that mode is not read.
func NotPlain(name string, mode fs.FileMode) error {
	switch {
	case mode.IsRegular():
		return Missing(fs.ErrNotExist, "%s: not a folder", name)
	case mode&fs.ModeSymlink != 0:
		return fmt.Errorf("%s: is a symbolic link; only files and folders of the repository are read", name)
	}
	return fmt.Errorf("%s: is a submodule; only files and folders of the repository are read", name)
}

// ReadFile reads a file of at most MaxFileBytes without following links.
func ReadFile(files fs.FS, name string) ([]byte, error) {
	info, err := Stat(files, name)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return nil, fmt.Errorf("%s: is a folder, not a file", name)
	}
	if info.Size() > MaxFileBytes {
		return nil, fmt.Errorf("%s: has %d bytes; a file may have %d: %w", name, info.Size(), MaxFileBytes, ErrTooLarge)
	}
	data, err := fs.ReadFile(files, name)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	return data, nil
}

// Walk calls each with every file and folder below a folder, at most 20,000, in the order of their paths. Names that start with a dot are
// left out.
func Walk(files fs.FS, folder string, each func(name string, entry fs.DirEntry) error) error {
	root, entries := true, 0
	return fs.WalkDir(files, folder, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("reading %s: %w", name, err)
		}
		if root {
			root = false
			return nil
		}
		if entries++; entries > maxEntries {
			return fmt.Errorf("%s: holds more than %d files and folders: %w", folder, maxEntries, ErrTooLarge)
		}
		if err := CheckName(name, entry.Name()); err != nil {
			return err
		}
		if strings.HasPrefix(entry.Name(), ".") {
			return skip(entry)
		}
		return each(name, entry)
	})
}

// maxPathBytes is the longest path of a manifest, as on Linux.
const maxPathBytes = 4096

// CheckName refuses names that no working tree can have but that Git allows: an entry that is named like its own folder ("." or nothing)
// would make a walk endless.
func CheckName(name, entry string) error {
	if path.Base(name) != entry || len(name) > maxPathBytes {
		return fmt.Errorf("%.100s: holds a file with a name that no file can have: %.100q", name, entry)
	}
	return nil
}

func skip(entry fs.DirEntry) error {
	if entry.IsDir() {
		return fs.SkipDir
	}
	return nil
}
