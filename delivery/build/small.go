package build

import (
	"bytes"
	"errors"
	"io/fs"
	"slices"

	"github.com/kubeop/kubeop/delivery/render/kustomize"
)

const (
	// smallBytes is what plain manifests may have together that are read in this process. The way to another one and back costs more
	// than to read them, and so few bytes hold few values.
	smallBytes = 8 << 10
	// smallEntries is how many entries a folder may have for that.
	smallEntries = 64
)

var errNotSmall = errors.New("not small")

// Small makes the objects in this process where that is little work: plain manifests of a few KiB, with nothing to decrypt, to build or
// to set, and without aliases. Did is false where it is not.
func (s *Source) Small() (made Made, did bool, err error) {
	if s.Keys != nil || s.Git != nil && changes(s) {
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

// changes reports whether the spec does anything to what is in the files.
func changes(s *Source) bool {
	b := &s.Git.Build
	return kustomize.Changes(b) || len(b.Substitute)+len(b.SubstituteFrom) > 0
}

// small are files of which only a few KiB are read, and no kustomization.
type small struct {
	fs.FS
	left int64
	// over is set once there was more.
	over bool
}

var (
	_ fs.ReadFileFS = (*small)(nil)
	_ fs.ReadDirFS  = (*small)(nil)
	_ fs.StatFS     = (*small)(nil)
)

// Stat describes a file, and a link itself instead of what it points to.
func (s *small) Stat(name string) (fs.FileInfo, error) { return fs.Lstat(s.FS, name) }

// ReadFile reads a file that fits in.
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

// ReadDir lists a folder of few entries.
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
