// Package chart fetches Helm charts from Helm repositories and OCI registries as archives on disk, and the dependencies of charts in
// folders.
package chart

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/kubeop/kubeop/delivery/fetch/chart/index"
	"github.com/kubeop/kubeop/delivery/fetch/disk"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/singleflight"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
	"github.com/kubeop/kubeop/delivery/few"
	"github.com/kubeop/kubeop/delivery/lru"
)

// Source is a Helm chart in a repository, with credentials.
type Source struct {
	// Repository is the https:// or http:// URL of a Helm repository, or the oci:// URL of the path in a registry that contains the chart.
	Repository string
	// Name of the chart.
	Name string
	// Version is a version or a semver range; the newest match is used. Default "*", the newest stable version. Prereleases match only a
	// range that names one.
	Version string
	// Digest pins the chart's archive, as "sha256:<hex>": what "sha256sum chart-1.2.3.tgz" prints, and what a Helm repository's index
	// lists. In a registry it is the digest of the layer with the archive, not of the manifest. Default: not pinned.
	Digest string
	// Insecure connects to an oci:// registry without TLS.
	Insecure bool
	// Mirror is asked before an oci:// registry; nil is none.
	Mirror *transport.Mirror
	// Auth is sent to the host of Repository only; a registry may name another host that checks it (its token service).
	Auth transport.Auth
	// Tenant for whom it is fetched, and whose share of the disk it uses.
	Tenant string
}

// Archive is a packaged chart on disk.
type Archive struct {
	// Path of the .tgz. It is never changed.
	Path string
	// Name and Version of the chart, as the repository lists them.
	Name, Version string
	// Digest of the file, "sha256:<hex>".
	Digest string
	// Manifest is the digest of the chart's manifest in an OCI registry; "" for a chart of a Helm repository.
	Manifest string
}

// Store keeps fetched charts on disk, one file per content and source. A source is a pair of repository and credentials: what one
// credential fetched is never returned for another. Safe for concurrent use; only one process at a time may use a directory.
//
//	<dir>/<source>/index.zip     the repository's index.yaml, see package index
//	<dir>/<source>/<sha256>.tgz  an archive
//	<dir>/<source>/tmp-…         unfinished
type Store struct {
	disk.Folder
	network *transport.Network
	limits  limits
	// arrivals is the clock of the groups.
	arrivals  atomic.Int64
	refreshes singleflight.Group[struct{}]
	finds     singleflight.Group[found]
	downloads singleflight.Group[string]

	mu      sync.Mutex
	indexes *lru.Cache[string, *helmRepository]
}

// NewStore returns a Store below dir, which is created when it is first needed. What an earlier process left there is used, and its
// unfinished files are removed. Servers are reached over the network; nil is the strictest network.
func NewStore(dir string, network *transport.Network) *Store {
	s := &Store{Folder: disk.Folder{Dir: dir}, network: network, limits: defaultLimits(), indexes: lru.New[string, *helmRepository](rememberedIndexes, nil)}
	s.indexes.Dropped = func(dropped *helmRepository) { dropped.http.CloseIdleConnections() }
	s.Emptied = s.forget
	s.refreshes.Clock, s.finds.Clock, s.downloads.Clock = &s.arrivals, &s.arrivals, &s.arrivals
	return s
}

// Fetch finds the newest version of the chart that src allows, and downloads it unless it is on disk. It always contacts the repository,
// with the credentials of src; equal concurrent requests share the answer. ctx bounds its time; a server that stops answering ends it
// sooner (see limits).
//
// Errors: ErrNotFound, ErrAuthentication, ErrInvalid, ErrDigest, ErrTooLarge; any other is transient.
func (s *Store) Fetch(ctx context.Context, src Source) (Archive, error) {
	s.Begin()
	arrived := s.arrivals.Add(1)
	archive, err := transport.Within(ctx, s.limits.Timeouts, func(ctx context.Context) (Archive, error) {
		return s.fetch(ctx, src, arrived)
	})
	if err == nil {
		return archive, nil
	}
	return Archive{}, fmt.Errorf("fetching chart %s of %s: %w", few.Quote(src.Name), transport.SafeURL(src.Repository), src.Auth.NameSecret(err))
}

// request is a chart that is being fetched.
type request struct {
	Source
	base *url.URL
	// folder is where the store keeps the files of this source.
	folder string
	// arrived is the time of the request, by the store's logical clock.
	arrived int64
}

func (s *Store) fetch(ctx context.Context, src Source, arrived int64) (Archive, error) {
	base, err := src.check()
	if err != nil {
		return Archive{}, err
	}
	r := request{Source: src, base: base, folder: s.source(src), arrived: arrived}
	if base.Scheme == "oci" {
		return s.fromRegistry(ctx, r)
	}
	return s.fromIndex(ctx, r)
}

// check returns the URL of the repository.
func (c Source) check() (*url.URL, error) {
	u, err := url.Parse(c.Repository)
	switch {
	case !index.IsName(c.Name):
		return nil, failure.New(failure.ErrInvalid, "%q is not the name of a chart: letters, digits, dots, dashes and underscores", few.Quote(c.Name))
	case c.Digest != "" && !disk.IsSHA256(strings.TrimPrefix(c.Digest, "sha256:")):
		return nil, failure.New(failure.ErrInvalid, "the digest %q is not of the form sha256:<64 hexadecimal digits>", few.Quote(c.Digest))
	case err != nil || u.Host == "":
		return nil, failure.New(failure.ErrInvalid, "the repository is not of the form https://host/path or oci://host/path")
	case u.User != nil:
		return nil, failure.New(failure.ErrInvalid, "the URL holds credentials: move them to a Secret and name it in secretRef in Git")
	case u.Fragment != "":
		return nil, failure.New(failure.ErrInvalid, "the URL has a fragment")
	case u.Scheme == "oci" && (u.RawQuery != "" || u.ForceQuery):
		return nil, failure.New(failure.ErrInvalid, "the repository has a query: an oci:// URL has none; write it without in Git")
	case u.Scheme != "https" && u.Scheme != "http" && u.Scheme != "oci":
		return nil, failure.New(failure.ErrInvalid, "the scheme %q is not supported: use https, http or oci in the URL in Git", u.Scheme)
	}
	return u, c.Auth.Check()
}

// source returns the folder for one pair of repository and credentials.
func (s *Store) source(src Source) string {
	repository := strings.TrimSuffix(src.Repository, "/")
	if src.Insecure {
		repository += " without TLS"
	}
	return filepath.Join(s.Dir, src.Auth.Digest(repository))
}

// Has reports whether an archive that Fetch returned earlier is still on disk, and counts as a use of it.
func (s *Store) Has(archive Archive) bool {
	if _, err := os.Stat(archive.Path); err != nil {
		return false
	}
	s.Used.Mark(archive.Path)
	return true
}

// hasAll is Has for the archives of dependencies. If it is false, call Dependencies again.
func (s *Store) hasAll(needs []Dependency) bool {
	all := true
	for _, d := range needs {
		// Has is called for every archive, because all are used.
		all = s.hasAll(d.Needs) && all
		all = (d.Path != "" || s.Has(d.Archive)) && all
	}
	return all
}

// forget drops what is in memory of a source that was swept.
func (s *Store) forget(folder string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.indexes.Remove(folder)
}

// Tidy drops the repositories that were not used since its last call. Repositories that never answered have no files to be swept.
func (s *Store) Tidy() {
	s.Folder.Tidy()
	s.mu.Lock()
	defer s.mu.Unlock()
	for folder, known := range s.indexes.All() {
		if known.idle {
			s.indexes.Remove(folder)
		}
		known.idle = true
	}
}
