package fetch

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/go-git/go-git/v5/plumbing/filemode"
)

// Reads are the paths of a Folder that somebody asked about, in order. Of a folder that was listed, a "/" at its end, all that is
// in it counts, at any depth; of one that was only passed through, that it is one.
type Reads []string

// maxReads bounds what is remembered of one reading. One that asks about more has asked about everything.
const maxReads = 200

// Everything are the Reads of who listed the root.
var Everything = Reads{"./"}

// DigestOf is a digest of the answers to reads. Two folders for which it is the same are the same to whoever asks only that,
// also where the answer is that nothing is there.
func (f *Folder) DigestOf(reads Reads) (string, error) {
	var answers strings.Builder
	for _, read := range reads {
		answer, err := f.answer(read)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&answers, "%q %s\n", read, answer)
	}
	return digestOfText([]byte(answers.String())), nil
}

func (f *Folder) answer(read string) (string, error) {
	name, listed := strings.CutSuffix(read, "/")
	entry, err := f.find("digest", name)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrInvalid), errors.Is(err, ErrSymlink), errors.Is(err, ErrSubmodule), errors.Is(err, ErrTooLarge):
		return err.Error(), nil
	case err != nil:
		return "", err
	case entry.Mode == filemode.Dir && !listed:
		return "folder", nil
	}
	return fmt.Sprintf("%s %s", entry.Mode, entry.Hash), nil
}

// Reading is a Folder that remembers what is asked of it. It is safe for concurrent use.
type Reading struct {
	folder *Folder

	mu    sync.Mutex
	reads map[string]struct{}
}

var (
	_ fs.ReadDirFS  = (*Reading)(nil)
	_ fs.ReadFileFS = (*Reading)(nil)
	_ fs.StatFS     = (*Reading)(nil)
)

// Reading begins a reading of the folder.
func (f *Folder) Reading() *Reading {
	return &Reading{folder: f, reads: map[string]struct{}{}}
}

// Done is what was asked, and the digest of the answers; of whoever asked about more than 200 paths, everything.
func (r *Reading) Done() (Reads, string, error) {
	reads := r.asked()
	digest, err := r.folder.DigestOf(reads)
	return reads, digest, err
}

func (r *Reading) asked() Reads {
	r.mu.Lock()
	defer r.mu.Unlock()
	reads := slices.DeleteFunc(slices.Sorted(maps.Keys(r.reads)), r.covered)
	if len(reads) > maxReads {
		return Everything
	}
	return reads
}

// note remembers a read. Of what a path that no folder can hold leads to, the answer is always the same.
func (r *Reading) note(read string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if fs.ValidPath(strings.TrimSuffix(read, "/")) && !r.covered(read) {
		r.reads[read] = struct{}{}
	}
}

// covered reports whether a read is about what is in a folder that was listed.
func (r *Reading) covered(read string) bool {
	at, listed := strings.CutSuffix(read, "/")
	for ; at != "."; at = path.Dir(at) {
		if _, ok := r.reads[at+"/"]; ok && !listed {
			return true
		}
		listed = false // What is above it covers it as well.
	}
	_, all := r.reads["./"]
	return all && read != "./"
}

// Open implements fs.FS.
func (r *Reading) Open(name string) (fs.File, error) {
	r.note(name)
	file, err := r.folder.Open(name)
	if _, listed := file.(*openFolder); listed {
		r.note(name + "/")
	}
	return file, err
}

// ReadFile implements fs.ReadFileFS.
func (r *Reading) ReadFile(name string) ([]byte, error) {
	r.note(name)
	return r.folder.ReadFile(name)
}

// Stat implements fs.StatFS.
func (r *Reading) Stat(name string) (fs.FileInfo, error) {
	r.note(name)
	return r.folder.Stat(name)
}

// ReadDir implements fs.ReadDirFS.
func (r *Reading) ReadDir(name string) ([]fs.DirEntry, error) {
	r.note(name + "/")
	return r.folder.ReadDir(name)
}
