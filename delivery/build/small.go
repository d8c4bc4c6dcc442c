package build

import (
	"bytes"
	"errors"
	"io/fs"
	"slices"

	"github.com/kubeop/kubeop/delivery/render/kustomize"
)

const (
	// smallBytes is the largest total size of plain manifests that are read in this process. Starting another process costs more than
	// reading them, and so few bytes cannot hold many values.
	smallBytes = 8 << 10
	// smallEntries is the largest number of entries of a folder that is read in this process.
	smallEntries = 64
)

var errNotSmall = errors.New("not small")

// Small builds the objects in this process if that takes little work: plain manifests of a few KiB, without decryption, kustomize,
// variables or aliases. Otherwise did is false.
func (s *Source) Small() (made Made, did bool, err error) {
	if s.Keys != nil || len(s.Patches) > 0 || s.Git != nil && changes(s) {
		return Made{}, false, nil
	}
	size := 0
	if s.Raw != nil {
		for i := range s.Raw.Manifests {
			size += len(s.Raw.Manifests[i].Raw)
		}
	}
	if size > smallBytes {
		return Made{}, false, nil
	}
	plain := *s
	of := &small{FS: s.Files, left: smallBytes}
	if s.Files != nil {
		plain.Files = of
	}
	made, err = safely(&plain, func(string) {}, nil)
	if of.over {
		return Made{}, false, nil
	}
	return made, true, err
}

// changes reports whether the spec changes the objects of the files.
func changes(s *Source) bool {
	b := &s.Git.Build
	return kustomize.Changes(b) || len(b.Substitute)+len(b.SubstituteFrom) > 0
}

// small is a file system from which only a few KiB can be read, and no kustomization.
type small struct {
	fs.FS
	left int64
	// over is set if there was more to read.
	over bool
}

var (
	_ fs.ReadFileFS = (*small)(nil)
	_ fs.ReadDirFS  = (*small)(nil)
	_ fs.StatFS     = (*small)(nil)
)

// Stat describes a file. It does not follow links.
func (s *small) Stat(name string) (fs.FileInfo, error) { return fs.Lstat(s.FS, name) }

// ReadFile reads a file if it is small enough.
func (s *small) ReadFile(name string) ([]byte, error) {
	is, err := fs.Lstat(s.FS, name)
	if err != nil {
		return nil, err
	}
	if s.left -= is.Size(); s.left < 0 || s.over {
		return nil, s.tooMuch()
	}
	data, err := fs.ReadFile(s.FS, name)
	if err == nil && bytes.IndexByte(data, '&') >= 0 && bytes.IndexByte(data, '*') >= 0 {
		return nil, s.tooMuch()
	}
	return data, err
}

// ReadDir lists a folder if it has few entries.
func (s *small) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(s.FS, name)
	if err != nil {
		return entries, err
	}
	kustomized := slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return kustomize.IsFile(e.Name()) })
	if s.over || kustomized || len(entries) > smallEntries {
		return nil, s.tooMuch()
	}
	return entries, nil
}

func (s *small) tooMuch() error {
	s.over = true
	return errNotSmall
}
