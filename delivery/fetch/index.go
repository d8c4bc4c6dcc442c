package fetch

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// index is what is known of one Helm repository's index.yaml, which is kept on disk.
type index struct {
	http *http.Client
	auth Auth
	// etag and modified are what the server gave to ask by whether the index has changed.
	etag, modified string
	// asked is when the server was last asked, by the store's logical clock.
	asked int64
	// versions are those of the charts that were looked up since the index last changed.
	versions map[string][]version
}

// fromIndex fetches a chart from a Helm repository.
func (s *ChartStore) fromIndex(ctx context.Context, src Chart, base *url.URL) (ChartArchive, error) {
	versions, known, err := s.versions(ctx, src, base)
	if err != nil {
		return ChartArchive{}, err
	}
	if len(versions) == 0 {
		return ChartArchive{}, fail(ErrNotFound, "the repository has no chart %s: check the name", src.Name)
	}
	chosen, err := choose(src.Name, src.Version, versions)
	if err != nil {
		return ChartArchive{}, err
	}
	path, digest, err := s.archive(ctx, s.source(src), chosen.Digest, func(ctx context.Context) (io.ReadCloser, error) {
		at, err := chartURL(base, src.Name, chosen)
		if err != nil {
			return nil, err
		}
		return getArchive(ctx, known, at)
	})
	if err != nil {
		return ChartArchive{}, fmt.Errorf("version %s: %w", printable(chosen.Name), err)
	}
	return ChartArchive{Path: path, Name: src.Name, Version: chosen.Name, Digest: digest}, nil
}

func getArchive(ctx context.Context, known *index, at *url.URL) (io.ReadCloser, error) {
	res, err := get(ctx, known.http, at, nil)
	if err != nil {
		return nil, err
	}
	if res.StatusCode != http.StatusOK {
		defer res.Body.Close()
		return nil, statusFailed(res, known.auth, "chart archive")
	}
	return res.Body, nil
}

// chartURL is where a version is; relative to the repository unless the index says otherwise.
func chartURL(base *url.URL, chart string, v version) (*url.URL, error) {
	if len(v.URLs) == 0 {
		return nil, fail(ErrInvalid, "the index lists no URL for version %s of chart %s", printable(v.Name), chart)
	}
	at, err := url.Parse(v.URLs[0])
	if err != nil {
		return nil, fail(ErrInvalid, "the index lists a URL that cannot be read for version %s of chart %s", printable(v.Name), chart)
	}
	root := *base
	root.Path = strings.TrimSuffix(root.Path, "/") + "/"
	root.RawPath, root.RawQuery = "", ""
	at = root.ResolveReference(at)
	if (at.Scheme != "https" && at.Scheme != "http") || at.Host == "" {
		return nil, fail(ErrInvalid, "the index lists a URL that is not http or https for version %s of chart %s", printable(v.Name), chart)
	}
	at.User = nil
	return at, nil
}

// versions are those the repository lists for the chart.
//
// Callers wait for each other, and one that finds that the server was asked after it arrived takes that answer: a
// thousand apps of one repository that wake together ask it once.
func (s *ChartStore) versions(ctx context.Context, src Chart, base *url.URL) ([]version, *index, error) {
	arrived := s.arrivals.Add(1)
	folder := s.source(src)
	unlock, err := s.locks.lock(ctx, folder)
	if err != nil {
		return nil, nil, err
	}
	defer unlock()
	known, err := s.known(folder, src, base)
	if err != nil {
		return nil, nil, err
	}
	file := filepath.Join(folder, "index.yaml")
	if known.asked < arrived {
		now := s.arrivals.Add(1)
		if err := s.refresh(ctx, known, base, file); err != nil {
			return nil, nil, err
		}
		known.asked = now
	}
	versions, done := known.versions[src.Name]
	if !done {
		if versions, err = scanIndex(file, src.Name, s.limits); err != nil {
			return nil, nil, err
		}
		known.versions[src.Name] = versions
	}
	return versions, known, nil
}

func (s *ChartStore) known(folder string, src Chart, base *url.URL) (*index, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.indexes[folder]; known != nil {
		return known, nil
	}
	auth, _, err := src.Auth.forHost(base.Host)
	if err != nil {
		return nil, err
	}
	client, err := newHTTPClient(auth, base, false)
	if err != nil {
		return nil, err
	}
	s.indexes[folder] = &index{http: client, auth: auth}
	return s.indexes[folder], nil
}

// refresh downloads the index unless it is as it was.
func (s *ChartStore) refresh(ctx context.Context, known *index, base *url.URL, file string) error {
	at := *base
	at.Path, at.RawPath = strings.TrimSuffix(at.Path, "/")+"/index.yaml", ""
	conditions := http.Header{}
	if _, err := os.Stat(file); err == nil && known.versions != nil {
		if known.etag != "" {
			conditions.Set("If-None-Match", known.etag)
		}
		if known.modified != "" {
			conditions.Set("If-Modified-Since", known.modified)
		}
	}
	res, err := get(ctx, known.http, &at, conditions)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	switch res.StatusCode {
	case http.StatusNotModified:
		return nil
	case http.StatusOK:
	default:
		return statusFailed(res, known.auth, "Helm repository (index.yaml)")
	}
	if err := keepIndex(file, limit(res.Body, "the repository's index.yaml", s.limits.index)); err != nil {
		return err
	}
	known.etag, known.modified = res.Header.Get("ETag"), res.Header.Get("Last-Modified")
	known.versions = map[string][]version{}
	return nil
}

// keepIndex writes the index to disk, whole or not at all.
func keepIndex(path string, body io.Reader) error {
	folder := filepath.Dir(path)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return writing(folder, err)
	}
	file, err := os.CreateTemp(folder, temporary)
	if err != nil {
		return writing(folder, err)
	}
	defer os.Remove(file.Name())
	defer file.Close()
	if _, err := io.Copy(file, body); err != nil {
		return fmt.Errorf("downloading index.yaml: %w", writingIfDisk(folder, err))
	}
	if err := os.Rename(file.Name(), path); err != nil {
		return writing(folder, err)
	}
	return nil
}

// get answers with whatever status; the caller closes the body.
func get(ctx context.Context, client *http.Client, at *url.URL, header http.Header) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, fail(ErrInvalid, "the URL cannot be requested")
	}
	for name, values := range header {
		req.Header[name] = values
	}
	res, err := client.Do(req)
	if err != nil {
		return nil, requestFailed(err, at.Host)
	}
	return res, nil
}
