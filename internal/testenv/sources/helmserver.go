package sources

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// Gzip compresses text, and returns it with its SHA-256 in hexadecimal. A Helm repository does not check more of a chart's archive.
func Gzip(t testing.TB, text string) (archive []byte, digest string) {
	t.Helper()
	var buffer bytes.Buffer
	w := gzip.NewWriter(&buffer)
	_, _ = w.Write([]byte(text))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(buffer.Bytes())
	return buffer.Bytes(), hex.EncodeToString(sum[:])
}

// HelmServer is a Helm repository.
type HelmServer struct {
	*httptest.Server
	// Files are served by path. Allow reports whether a request is authorized. Nil authorizes all.
	Files map[string][]byte
	Allow func(*http.Request) bool

	mu   sync.Mutex
	seen []string
}

// ServeHelm starts an empty Helm repository.
func ServeHelm(t testing.TB) *HelmServer {
	t.Helper()
	s := &HelmServer{Files: map[string][]byte{}}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	return s
}

func (s *HelmServer) serve(w http.ResponseWriter, req *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	line := req.URL.Path
	if req.Header.Get("Authorization") != "" {
		line += " with credentials"
	}
	content, ok := s.Files[req.URL.Path]
	switch {
	case s.Allow != nil && !s.Allow(req):
		w.WriteHeader(http.StatusUnauthorized)
		return
	case !ok:
		w.WriteHeader(http.StatusNotFound)
	default:
		sum := sha256.Sum256(content)
		tag := fmt.Sprintf(`"%x"`, sum[:8])
		w.Header().Set("ETag", tag)
		if req.Header.Get("If-None-Match") == tag {
			line += " unchanged"
			w.WriteHeader(http.StatusNotModified)
		} else {
			_, _ = w.Write(content)
		}
	}
	s.seen = append(s.seen, line)
}

// Set calls change, which may change the server while it serves.
func (s *HelmServer) Set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// Requests returns the requests since the last call, one per line.
func (s *HelmServer) Requests() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := strings.Join(s.seen, "\n")
	s.seen = nil
	return seen
}

// Publish puts versions of the chart "web" into the index below /stable, each with its own archive, and returns their digests.
func (s *HelmServer) Publish(t testing.TB, versions ...string) map[string]string {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	digests := map[string]string{}
	index := "apiVersion: v1\nentries:\n  other:\n  - version: 9.9.9\n    urls: [other.tgz]\n  web:\n"
	for _, version := range versions {
		archive, digest := Gzip(t, version)
		path := "/charts/web-" + version + ".tgz"
		s.Files["/stable"+path], digests[version] = archive, "sha256:"+digest
		index += fmt.Sprintf("  - apiVersion: v2\n    digest: %s\n    name: web\n    urls:\n    - %s\n    version: %q\n", digest, path[1:], version)
	}
	s.Files["/stable/index.yaml"] = []byte(index + "generated: \"2024-01-01T00:00:00Z\"\n")
	return digests
}
