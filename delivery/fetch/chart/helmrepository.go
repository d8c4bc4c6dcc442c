package chart

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/kubeop/kubeop/delivery/fetch/chart/index"
	"github.com/kubeop/kubeop/delivery/fetch/disk"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/limit"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
	"github.com/kubeop/kubeop/delivery/few"
	"github.com/kubeop/kubeop/delivery/lru"
)

// helmRepository is what is known of a repository in memory; its index.yaml is on disk, see package index.
type helmRepository struct {
	http *http.Client
	auth transport.Auth
	file string
	// idle is set when it was not used since the last sweep. Store.mu guards it.
	idle bool

	mu     sync.Mutex
	chosen *lru.Cache[requestedVersion, index.Version]
}

// requestedVersion is a version, or a range of versions, of a chart that was requested.
type requestedVersion struct{ chart, version string }

// rememberedVersions bounds the memory of one repository. Only the chosen versions are kept, not the long lists of versions.
const rememberedVersions = 1024

// rememberedIndexes bounds the repositories in memory. The index of a dropped repository is still on disk, and running fetches keep using it.
const rememberedIndexes = 1024

// fromIndex fetches a chart from a Helm repository.
func (s *Store) fromIndex(ctx context.Context, r request) (Archive, error) {
	known, err := s.helmRepository(r)
	if err != nil {
		return Archive{}, err
	}
	if _, err := s.refreshes.Do(ctx, r.folder, r.arrived, func() (struct{}, error) {
		meter := func(body io.ReadCloser) io.ReadCloser { return s.Disk.Meter(ctx, r.Tenant, body) }
		return struct{}{}, known.refresh(ctx, r.base, s.limits, meter)
	}); err != nil {
		return Archive{}, err
	}
	s.Used.Mark(known.file)
	s.Disk.Claim(r.Tenant, known.file)
	chosen, err := known.choose(requestedVersion{r.Name, r.Version}, s.limits)
	if err != nil {
		return Archive{}, err
	}
	return s.archive(ctx, r, chosen, func(ctx context.Context) (io.ReadCloser, error) {
		at, err := chartURL(r.base, r.Name, chosen)
		if err != nil {
			return nil, err
		}
		return transport.GetBody(transport.FromStorage(ctx), known.http, known.auth, at, "chart archive")
	})
}

// choose finds the requested version.
func (i *helmRepository) choose(w requestedVersion, limits limits) (index.Version, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if chosen, done := i.chosen.Get(w); done {
		return chosen, nil
	}
	versions, err := index.LookUp(i.file, w.chart, limits.indexDoc)
	if err != nil {
		return index.Version{}, err
	}
	if len(versions) == 0 {
		return index.Version{}, failure.New(failure.ErrNotFound, "the repository has no chart %s: check the name in Git", w.chart)
	}
	chosen, err := index.Choose(w.chart, w.version, versions)
	if err != nil {
		return index.Version{}, err
	}
	i.chosen.Add(w, chosen)
	return chosen, nil
}

// chartURL returns the URL of a version; it is relative to the repository unless the index has an absolute one.
func chartURL(base *url.URL, chart string, v index.Version) (*url.URL, error) {
	if len(v.URLs) == 0 {
		return nil, failure.New(failure.ErrInvalid, "the index lists no URL for version %s of chart %s", few.Quote(v.Name), chart)
	}
	at, err := url.Parse(v.URLs[0])
	if err != nil {
		return nil, failure.New(failure.ErrInvalid, "the index lists a URL that cannot be read for version %s of chart %s", few.Quote(v.Name), chart)
	}
	root := *base
	root.Path = strings.TrimSuffix(root.Path, "/") + "/"
	root.RawPath, root.RawQuery = "", ""
	at = root.ResolveReference(at)
	if (at.Scheme != "https" && at.Scheme != "http") || at.Host == "" {
		return nil, failure.New(failure.ErrInvalid, "the index lists a URL that is not http or https for version %s of chart %s", few.Quote(v.Name), chart)
	}
	at.User = nil
	return at, nil
}

// helmRepository returns the repository of a request.
func (s *Store) helmRepository(r request) (*helmRepository, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, ok := s.indexes.Get(r.folder); ok {
		known.idle = false
		return known, nil
	}
	auth, _, err := r.Auth.ForHost(r.base.Host + r.base.Path)
	if err != nil {
		return nil, err
	}
	client, err := transport.NewClient(s.network, auth, r.base)
	if err != nil {
		return nil, err
	}
	known := &helmRepository{http: client, auth: auth, file: filepath.Join(r.folder, indexFile), chosen: lru.New[requestedVersion, index.Version](rememberedVersions, nil)}
	s.indexes.Add(r.folder, known)
	return known, nil
}

const indexFile = "index.zip"

// refresh downloads the index unless it is unchanged.
func (i *helmRepository) refresh(ctx context.Context, base *url.URL, limits limits, meter func(io.ReadCloser) io.ReadCloser) error {
	at := *base
	at.Path, at.RawPath = strings.TrimSuffix(at.Path, "/")+"/index.yaml", ""
	kept, conditions := index.StampOf(i.file), http.Header{}
	if kept.ETag != "" {
		conditions.Set("If-None-Match", kept.ETag)
	}
	if kept.Modified != "" {
		conditions.Set("If-Modified-Since", kept.Modified)
	}
	res, err := transport.Get(ctx, i.http, &at, conditions)
	if err != nil {
		return err
	}
	res.Body = meter(res.Body)
	defer res.Body.Close()
	switch {
	case res.StatusCode == http.StatusNotModified && len(conditions) > 0:
		return nil
	case res.StatusCode != http.StatusOK:
		return transport.StatusError(res, i.auth, "Helm repository (index.yaml)")
	}
	body := limit.NewReader(res.Body, limits.index, failure.TooLarge("the repository's index.yaml", limits.index))
	if err := i.keep(body, index.Stamp{ETag: res.Header.Get("ETag"), Modified: res.Header.Get("Last-Modified")}, limits.indexDoc); err != nil {
		return err
	}
	// After the new index is in place, because a holder of the lock would write the values that are cleared here.
	i.mu.Lock()
	defer i.mu.Unlock()
	i.chosen.Clear()
	return nil
}

// keep writes an index to disk, atomically.
func (i *helmRepository) keep(body io.Reader, from index.Stamp, doc int64) error {
	folder := filepath.Dir(i.file)
	file, err := disk.CreateIn(folder)
	if err != nil {
		return err
	}
	defer disk.Discard(file)
	if err := index.Write(file, body, from, doc); err != nil {
		return disk.DownloadFailed("index.yaml", folder, err)
	}
	if err := os.Rename(file.Name(), i.file); err != nil {
		return disk.Writing(folder, err)
	}
	return nil
}
