package folder

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
)

// Reads are the paths of a Folder that were read, in order. For a listed folder, which ends with "/", everything inside counts, at any
// depth. For a folder that was only passed through, it counts that it is a folder.
type Reads []string

// Limits of what one reading records: the number of paths, and their length together. A reading that exceeds one counts as having read
// everything.
const (
	maxReads     = 200
	maxReadBytes = 16 << 10
)

// everything is the Reads of a reader that listed the root.
var everything = Reads{"./"}

// DigestOf returns a digest of the answers to reads. Two folders with the same digest are the same to a reader of only these paths. A path
// that does not exist is also an answer.
func (f *Folder) DigestOf(reads Reads) (string, error) {
	var answers strings.Builder
	for _, read := range reads {
		answer, err := f.answer(read)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&answers, "%q %s\n", read, answer)
	}
	return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(answers.String()))), nil
}

func (f *Folder) answer(read string) (string, error) {
	name, listed := strings.CutSuffix(read, "/")
	entry, err := f.find("digest", name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "missing", nil
	case errors.Is(err, ErrSymlink):
		return "behind a link", nil
	case errors.Is(err, ErrSubmodule):
		return "in a submodule", nil
	case errors.Is(err, failure.ErrTooLarge):
		return "too deep", nil
	case err != nil:
		return "", err
	case entry.Mode == filemode.Dir && !listed:
		return "folder", nil
	}
	return fmt.Sprintf("%s %s", entry.Mode, entry.Hash), nil
}

// Reading is a Folder that records what is read from it. It is safe for concurrent use.
type Reading struct {
	folder *Folder

	mu sync.Mutex
	// read are the paths that were read. listed are the folders that were listed, of which every file counts.
	read, listed map[string]struct{}
	// bytes is the length of these paths together.
	bytes int
}

var (
	_ fs.ReadDirFS  = (*Reading)(nil)
	_ fs.ReadFileFS = (*Reading)(nil)
	_ fs.StatFS     = (*Reading)(nil)
)

// Reading starts a reading of the folder, with its own count of listed files and folders.
func (f *Folder) Reading() *Reading {
	own := &Folder{trees: f.trees, hash: f.hash, limits: f.limits}
	return &Reading{folder: own, read: map[string]struct{}{}, listed: map[string]struct{}{}}
}

// Done returns the paths that were read, and the digest of the answers. For more than 200 paths, or more than 16 KiB of them, it returns
// everything.
func (r *Reading) Done() (Reads, string, error) {
	reads := r.reads()
	digest, err := r.folder.DigestOf(reads)
	return reads, digest, err
}

// DigestOf is the Folder's DigestOf. It does not count as a read.
func (r *Reading) DigestOf(reads Reads) (string, error) { return r.folder.DigestOf(reads) }

func (r *Reading) reads() Reads {
	r.mu.Lock()
	defer r.mu.Unlock()
	var reads Reads
	for name := range r.listed {
		if name == "." || !r.covered(path.Dir(name)) {
			reads = append(reads, name+"/")
		}
	}
	for name := range r.read {
		if !r.covered(name) {
			reads = append(reads, name)
		}
	}
	slices.Sort(reads)
	return reads
}

// note records a read. A path that no folder can contain is not recorded, because its answer is always the same.
func (r *Reading) note(name string, listed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !fs.ValidPath(name) || r.covered(name) {
		return
	}
	into := r.read
	if listed {
		into = r.listed
	}
	if _, known := into[name]; known {
		return
	}
	into[name] = struct{}{}
	if r.bytes += len(name); len(r.read)+len(r.listed) > maxReads || r.bytes > maxReadBytes {
		r.read, r.listed = nil, map[string]struct{}{".": {}}
	}
}

// covered reports whether a path is, or is inside, a folder that was listed.
func (r *Reading) covered(name string) bool {
	_, found := r.listed["."]
	for ; name != "." && !found; name = path.Dir(name) {
		_, found = r.listed[name]
	}
	return found
}

// Open implements fs.FS.
func (r *Reading) Open(name string) (fs.File, error) {
	file, err := r.folder.Open(name)
	_, isFile := file.(*openFile)
	r.note(name, !isFile)
	return file, err
}

// ReadFile implements fs.ReadFileFS.
func (r *Reading) ReadFile(name string) ([]byte, error) {
	r.note(name, false)
	return r.folder.ReadFile(name)
}

// Stat implements fs.StatFS.
func (r *Reading) Stat(name string) (fs.FileInfo, error) {
	r.note(name, false)
	return r.folder.Stat(name)
}

// ReadDir implements fs.ReadDirFS.
func (r *Reading) ReadDir(name string) ([]fs.DirEntry, error) {
	r.note(name, true)
	return r.folder.ReadDir(name)
}
