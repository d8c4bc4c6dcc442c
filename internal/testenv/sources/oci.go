package sources

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// OCIServer is a registry with one repository, "charts/web". It has the endpoints for reading charts and artifacts.
type OCIServer struct {
	*httptest.Server
	// Manifests are by tag or digest, Blobs by digest. Change the exported fields only while there are no requests.
	Manifests map[string][]byte
	Blobs     map[string][]byte
	// Allow reports whether a request is authorized. Nil authorizes all. Challenge is the WWW-Authenticate header for other requests.
	Allow     func(*http.Request) bool
	Challenge string
	// Away redirects blobs to another server, as registries with an object storage do.
	Away string

	mu   sync.Mutex
	seen []string
}

// ServeOCI starts a registry, which ends with the test.
func ServeOCI(t testing.TB, start func(http.Handler) *httptest.Server) *OCIServer {
	t.Helper()
	s := &OCIServer{Manifests: map[string][]byte{}, Blobs: map[string][]byte{}}
	s.Server = start(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	return s
}

// Repository returns the URL that contains the repository.
func (s *OCIServer) Repository() string { return "oci://" + s.Listener.Addr().String() + "/charts" }

// DigestOf returns the digest of the content, in the registries' format.
func DigestOf(content []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(content)) }

// PushChart stores a chart under a tag as Helm does, with its provenance, and returns the digest of the archive.
func (s *OCIServer) PushChart(t testing.TB, tag, mediaType string, archive []byte) string {
	t.Helper()
	s.push(t, tag, archive, "application/vnd.cncf.helm.config.v1+json",
		layer("application/vnd.cncf.helm.chart.provenance.v1.prov", nil), layer(mediaType, archive))
	return DigestOf(archive)
}

// PushArtifact stores an archive under a tag as "flux push artifact" does, and returns the digest of its manifest.
func (s *OCIServer) PushArtifact(t testing.TB, tag, mediaType string, archive []byte) string {
	t.Helper()
	manifest := s.push(t, tag, archive, "application/vnd.cncf.flux.config.v1+json", layer(mediaType, archive))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Manifests[DigestOf(manifest)] = manifest
	return DigestOf(manifest)
}

func layer(mediaType string, content []byte) map[string]any {
	return map[string]any{"mediaType": mediaType, "digest": DigestOf(content), "size": len(content)}
}

func (s *OCIServer) push(t testing.TB, tag string, archive []byte, config string, layers ...map[string]any) []byte {
	t.Helper()
	manifest, err := json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "layers": layers,
		"config":      layer(config, []byte(`{"created":"2026-01-01T00:00:00Z"}`)),
		"annotations": map[string]string{"org.opencontainers.image.revision": "main@sha1:" + strings.Repeat("a", 40)},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Manifests[tag], s.Blobs[DigestOf(archive)] = manifest, archive
	return manifest
}

// Requests returns the requests since the last call, such as "GET /v2/charts/web/tags/list".
func (s *OCIServer) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := s.seen
	s.seen = nil
	return seen
}

func (s *OCIServer) serve(w http.ResponseWriter, req *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Allow != nil && !s.Allow(req) {
		w.Header().Set("WWW-Authenticate", s.Challenge)
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = fmt.Fprintf(w, `{"errors":[{"code":"UNAUTHORIZED","message":%q}]}`, "no: "+req.Header.Get("Authorization"))
		return
	}
	s.seen = append(s.seen, req.Method+" "+req.URL.Path)
	const base = "/v2/charts/web/"
	kind, name, _ := strings.Cut(strings.TrimPrefix(req.URL.Path, base), "/")
	switch {
	case !strings.HasPrefix(req.URL.Path, base):
		http.Error(w, `{"errors":[{"code":"NAME_UNKNOWN"}]}`, http.StatusNotFound)
	case kind == "tags":
		s.tags(w, req)
	case kind == "manifests" && s.Manifests[name] != nil:
		w.Header().Set("Content-Type", mediaTypeOf(s.Manifests[name]))
		w.Header().Set("Docker-Content-Digest", digestAs(name, s.Manifests[name]))
		w.Header().Set("Content-Length", strconv.Itoa(len(s.Manifests[name])))
		_, _ = w.Write(s.Manifests[name])
	case kind == "blobs" && s.Away != "":
		http.Redirect(w, req, s.Away+"/"+name, http.StatusTemporaryRedirect)
	case kind == "blobs" && s.Blobs[name] != nil:
		_, _ = w.Write(s.Blobs[name])
	default:
		http.Error(w, `{"errors":[{"code":"MANIFEST_UNKNOWN"}]}`, http.StatusNotFound)
	}
}

// mediaTypeOf returns the media type that a manifest names.
func mediaTypeOf(manifest []byte) string {
	var about struct{ MediaType string }
	if json.Unmarshal(manifest, &about) != nil || about.MediaType == "" {
		return "application/vnd.oci.image.manifest.v1+json"
	}
	return about.MediaType
}

// digestAs returns the digest that the server claims for a manifest. If it is requested by digest, that is this digest, so that a test may
// have the server serve something else under it.
func digestAs(name string, manifest []byte) string {
	if strings.HasPrefix(name, "sha256:") {
		return name
	}
	return DigestOf(manifest)
}

// tags lists two tags per page.
func (s *OCIServer) tags(w http.ResponseWriter, req *http.Request) {
	var tags []string
	for tag := range s.Manifests {
		if tag > req.URL.Query().Get("last") {
			tags = append(tags, tag)
		}
	}
	slices.Sort(tags)
	if len(tags) > 2 {
		tags = tags[:2]
		w.Header().Set("Link", fmt.Sprintf(`</v2/charts/web/tags/list?last=%s>; rel="next"`, tags[1]))
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"name": "charts/web", "tags": tags})
}
