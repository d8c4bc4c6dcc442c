// Package artifact fetches archives of manifests from OCI registries and from Flux sources.
package artifact

import (
	"archive/zip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"weak"

	"github.com/kubeop/kubeop/delivery/fetch/disk"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/limit"
	"github.com/kubeop/kubeop/delivery/fetch/singleflight"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
	"github.com/kubeop/kubeop/delivery/few"
)

// Artifact is an unpacked archive of manifests on disk.
type Artifact struct {
	// Revision is the revision in Flux's format, such as "latest@sha256:<hex>".
	Revision string
	// Digest is "sha256:<hex>" of the manifest of an OCI artifact, or of the archive of a Flux source.
	Digest string

	path string
}

// Store keeps archives of manifests on disk. Each is unpacked and checked once for all callers, in a folder for each pair of source and
// credentials: what one credential fetched is never returned for another. Safe for concurrent use; only one process at a time may use a
// directory.
//
//	<dir>/<source>/<sha256>.zip  an artifact
//	<dir>/<source>/tmp-…         unfinished
//
// Limits, each ErrTooLarge: an archive of 64 MiB, 256 MiB unpacked; a file of 16 MiB; 50,000 files and folders, nested 32 deep; a path of
// 1,024 bytes, and 8 MiB of paths. Links, devices and paths that lead out of the archive are ErrInvalid.
type Store struct {
	disk.Folder
	network *transport.Network
	hosts   []string
	limits  limits
	// arrivals is the clock of the groups.
	arrivals atomic.Int64
	finds    singleflight.Group[tagged]

	mu sync.Mutex
	// open are the artifacts that are being read.
	open map[string]weak.Pointer[unpackedFiles]
}

// NewStore returns a Store below dir, which works like the store of charts. Download fetches only from hosts; "*" stands for one label of a
// name.
func NewStore(dir string, network *transport.Network, hosts ...string) *Store {
	s := &Store{
		Folder: disk.Folder{Dir: dir}, network: network, hosts: hosts, limits: defaultLimits(),
		open: map[string]weak.Pointer[unpackedFiles]{},
	}
	s.finds.Clock = &s.arrivals
	return s
}

const artifactEnd = ".zip"

// artifactPath is the path of an artifact; digest is "sha256:<hex>".
func artifactPath(folder, digest string) string {
	return filepath.Join(folder, strings.TrimPrefix(digest, "sha256:")+artifactEnd)
}

// unpackedFiles are the files of an artifact. The zip file is closed when they are garbage collected.
type unpackedFiles struct{ zip *zip.Reader }

// Open implements fs.FS.
func (u *unpackedFiles) Open(name string) (fs.File, error) { return u.zip.Open(name) }

// Files returns the files of an artifact, read-only. They stay readable after the artifact is swept. The error is ErrNotFound if it was
// swept before: fetch it again.
func (s *Store) Files(a Artifact) (fs.FS, error) {
	s.Used.Mark(a.path)
	s.mu.Lock()
	defer s.mu.Unlock()
	if held := s.open[a.path].Value(); held != nil {
		return held, nil
	}
	file, err := os.Open(a.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, failure.New(failure.ErrNotFound, "artifact %s is not in the store: fetch first", a.Digest)
	}
	if err != nil {
		return nil, fmt.Errorf("opening the artifact: %w", err)
	}
	about, err := file.Stat()
	if err == nil {
		var entries *zip.Reader
		if entries, err = zip.NewReader(file, about.Size()); err == nil {
			held := &unpackedFiles{zip: entries}
			runtime.AddCleanup(held, func(f *os.File) { _ = f.Close() }, file)
			s.forgetUnread()
			s.open[a.path] = weak.Make(held)
			return held, nil
		}
	}
	_ = file.Close()
	_ = os.Remove(a.path) // A file that a crash or a full disk damaged is downloaded again.
	return nil, fmt.Errorf("reading the artifact: %w", err)
}

// forgetUnread drops the entries of artifacts that are not read any more.
func (s *Store) forgetUnread() {
	for path, held := range s.open {
		if held.Value() == nil {
			delete(s.open, path)
		}
	}
}

// archived is an archive to be downloaded.
type archived struct {
	folder string
	// name is the digest under which the archive is stored.
	name   string
	tenant string
	// get begins the download, and returns the digest that the archive must have.
	get func(context.Context) (body io.ReadCloser, digest string, err error)
}

// keep downloads, checks and unpacks an archive unless it is on disk, once for all callers.
func (s *Store) keep(ctx context.Context, a archived) (string, error) {
	path := artifactPath(a.folder, a.name)
	unlock, err := s.Locks.Lock(ctx, path)
	if err != nil {
		return "", err
	}
	defer unlock()
	if _, err := os.Stat(path); err == nil {
		s.Used.Mark(path)
		s.Disk.Claim(a.tenant, path)
		return path, nil
	}
	body, digest, err := a.get(ctx)
	if err != nil {
		return "", err
	}
	body = s.Disk.Meter(ctx, a.tenant, body)
	defer body.Close()
	file, err := disk.CreateIn(a.folder)
	if err != nil {
		return "", err
	}
	defer disk.Discard(file)
	if err := s.receive(file, body, digest); err != nil {
		return "", disk.DownloadFailed("the artifact", a.folder, err)
	}
	if err := os.Rename(file.Name(), path); err != nil {
		return "", disk.Writing(a.folder, err)
	}
	s.Used.Mark(path)
	s.Disk.Claim(a.tenant, path)
	return path, nil
}

// receive unpacks an archive into a file and compares its digest.
func (s *Store) receive(file *os.File, body io.Reader, digest string) error {
	sum := sha256.New()
	archive := io.TeeReader(limit.NewReader(body, s.limits.archive, failure.TooLarge("the artifact", s.limits.archive)), sum)
	unpacked := unpack(archive, file, s.limits)
	if errors.Is(unpacked, failure.ErrTooLarge) {
		return unpacked
	}
	// Bytes after the end of the archive also count for its digest.
	if _, err := io.Copy(io.Discard, archive); err != nil {
		return err
	}
	if "sha256:"+hex.EncodeToString(sum.Sum(nil)) != digest {
		// The message leaves out the actual digest: with it, someone who may not see the artifact could request it.
		return failure.New(failure.ErrServer, "the artifact has another digest than the %s that is expected", few.Quote(digest))
	}
	if unpacked != nil {
		return unpacked
	}
	return file.Sync()
}
