package fetch

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"sort"
	"strings"
	"sync"
	"testing"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

// ociServer is a registry with one repository, "charts/web". It knows what reading a chart needs.
type ociServer struct {
	*httptest.Server
	mu        sync.Mutex
	manifests map[string][]byte // by tag
	blobs     map[string][]byte // by digest
	allow     func(*http.Request) bool
	challenge string
	// away redirects blobs to another server, as registries with an object storage do.
	away string
	seen []string
}

func serveOCI(t *testing.T, start func(http.Handler) *httptest.Server) *ociServer {
	t.Helper()
	s := &ociServer{manifests: map[string][]byte{}, blobs: map[string][]byte{}}
	s.Server = start(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	return s
}

func (s *ociServer) repository() string { return "oci://" + s.Listener.Addr().String() + "/charts" }

func digestOf(content []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(content)) }

func (s *ociServer) push(t *testing.T, tag, mediaType string) string {
	t.Helper()
	archive, _ := tgz(t, tag)
	manifest, err := json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
		"config": map[string]any{"mediaType": "application/vnd.cncf.helm.config.v1+json", "digest": digestOf([]byte("{}")), "size": 2},
		"layers": []map[string]any{
			{"mediaType": "application/vnd.cncf.helm.chart.provenance.v1.prov", "digest": digestOf(nil), "size": 0},
			{"mediaType": mediaType, "digest": digestOf(archive), "size": len(archive)},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.manifests[tag], s.blobs[digestOf(archive)] = manifest, archive
	return digestOf(archive)
}

func (s *ociServer) serve(w http.ResponseWriter, req *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.allow != nil && !s.allow(req) {
		w.Header().Set("WWW-Authenticate", s.challenge)
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
	case kind == "manifests" && s.manifests[name] != nil:
		w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
		w.Header().Set("Docker-Content-Digest", digestOf(s.manifests[name]))
		_, _ = w.Write(s.manifests[name])
	case kind == "blobs" && s.away != "":
		http.Redirect(w, req, s.away+"/"+name, http.StatusTemporaryRedirect)
	case kind == "blobs" && s.blobs[name] != nil:
		_, _ = w.Write(s.blobs[name])
	default:
		http.Error(w, `{"errors":[{"code":"MANIFEST_UNKNOWN"}]}`, http.StatusNotFound)
	}
}

// tags are listed two at a time.
func (s *ociServer) tags(w http.ResponseWriter, req *http.Request) {
	var tags []string
	for tag := range s.manifests {
		if tag > req.URL.Query().Get("last") {
			tags = append(tags, tag)
		}
	}
	sort.Strings(tags)
	if len(tags) > 2 {
		tags = tags[:2]
		w.Header().Set("Link", fmt.Sprintf(`</v2/charts/web/tags/list?last=%s>; rel="next"`, tags[1]))
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"name": "charts/web", "tags": tags})
}

func TestChartFromRegistry(t *testing.T) {
	server := serveOCI(t, httptest.NewServer)
	digests := map[string]string{}
	for _, tag := range []string{"0.9.0", "1.0.0", "1.10.0", "1.9.0", "2.0.0-rc.1", "1.5.0_build.1", "latest"} {
		digests[strings.ReplaceAll(tag, "_", "+")] = server.push(t, tag, chartMediaType)
	}
	store := NewChartStore(t.TempDir(), loopback)
	for wish, want := range map[string]string{
		"": "1.10.0", "1.9.0": "1.9.0", "<1.10.0": "1.9.0", "2.0.0-rc.1": "2.0.0-rc.1", "~1.5": "1.5.0+build.1",
		"1.5.0+build.1": "1.5.0+build.1", ">=1.0.0-0": "2.0.0-rc.1", "latest": "latest",
	} {
		t.Run(wish, func(t *testing.T) {
			got, err := store.Fetch(t.Context(), Chart{Repository: server.repository(), Name: "web", Version: wish, Insecure: true})
			if err != nil {
				t.Fatal(err)
			}
			if got.Version != want || got.Name != "web" || got.Digest != digests[want] {
				t.Errorf("got %+v, want %s %s", got, want, digests[want])
			}
			content, err := os.ReadFile(got.Path)
			if err != nil || !bytes.Equal(content, server.blobs[digests[want]]) {
				t.Errorf("the archive is not the one published: %v", err)
			}
		})
	}
	server.seen = nil
	if _, err := store.Fetch(t.Context(), Chart{Repository: server.repository() + "/", Name: "web", Version: "1.0.0", Insecure: true}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := store.Fetch(t.Context(), Chart{Repository: server.repository(), Name: "web", Version: "1.0.0", Insecure: true}); err != nil {
			t.Fatal(err)
		}
	}
	if blobs := strings.Count(strings.Join(server.seen, "\n"), "/blobs/"); blobs > 2 {
		t.Errorf("downloaded again:\n%s", strings.Join(server.seen, "\n"))
	}
}

func TestChartFromRegistryUnhappy(t *testing.T) {
	server := serveOCI(t, httptest.NewServer)
	for _, tag := range []string{"1.0.0", "1.1.0", "1.2.0", "1.3.0", "1.4.0", "1.5.0"} {
		server.push(t, tag, chartMediaType)
	}
	server.push(t, "2.0.0-image", "application/vnd.oci.image.layer.v1.tar+gzip")
	damaged := server.push(t, "3.0.0-damaged", chartMediaType)
	server.blobs[damaged][len(server.blobs[damaged])-1]++
	gone := server.push(t, "3.0.0-gone", chartMediaType)
	delete(server.blobs, gone)
	server.manifests["3.0.0-huge"] = []byte(`{"schemaVersion":2,"layers":[{"mediaType":"` + chartMediaType + `","digest":"` + gone + `","size":99999999999}]}`)
	server.manifests["3.0.0-text"] = []byte(`text`)
	cases := map[string]struct {
		name, version string
		kind          error
		says          string
	}{
		"unknown chart":          {"wep", "", failure.ErrNotFound, "there is no chart at this URL"},
		"unknown chart, version": {"wep", "1.0.0", failure.ErrNotFound, "there is no chart at this URL"},
		"unknown version":        {"web", "1.0.1", failure.ErrNotFound, `chart web has no version "1.0.1"; the newest are`},
		"empty range":            {"web", ">5", failure.ErrNotFound, `chart web has no version ">5"`},
		"no range":               {"web", "newest", failure.ErrInvalid, "neither a version nor a range"},
		"an image":               {"web", "2.0.0-image", failure.ErrInvalid, "is not a Helm chart"},
		"damaged":                {"web", "3.0.0-damaged", failure.ErrServer, "has the digest"},
		"blob gone":              {"web", "3.0.0-gone", failure.ErrNotFound, "there is no chart archive"},
		"huge":                   {"web", "3.0.0-huge", failure.ErrTooLarge, "the chart is larger than the limit of 20 MiB"},
		"no manifest":            {"web", "3.0.0-text", failure.ErrInvalid, "is not JSON"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := NewChartStore(t.TempDir(), loopback).Fetch(t.Context(), Chart{Repository: server.repository(), Name: tc.name, Version: tc.version, Insecure: true})
			sources.WantError(t, err, tc.kind, tc.says)
		})
	}
	// Without Insecure it is TLS or nothing.
	_, err := NewChartStore(t.TempDir(), loopback).Fetch(t.Context(), Chart{Repository: server.repository(), Name: "web"})
	wantTransient(t, err)
}

func TestChartFromRegistryWithCredentials(t *testing.T) {
	const secret = "hunter2+/x"
	server := serveOCI(t, httptest.NewTLSServer)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.push(t, "1.0.0", chartMediaType)
	ca := certificate(server.Server)
	host := server.Listener.Addr().String()
	docker := func(host, entry string) []byte { return []byte(`{"auths":{"` + host + `":` + entry + `}}`) }
	cases := map[string]struct {
		auth    transport.Auth
		allow   func(*http.Request) bool
		refused bool
	}{
		"basic":             {transport.Auth{Username: "bot", Password: secret, CA: ca}, basic("bot", secret), false},
		"docker":            {transport.Auth{DockerConfig: docker(host, `{"username":"bot","password":"hunter2+/x"}`), CA: ca}, basic("bot", secret), false},
		"bearer":            {transport.Auth{BearerToken: secret, CA: ca}, bearer(secret), false},
		"docker token":      {transport.Auth{DockerConfig: docker(host, `{"registrytoken":"hunter2+/x"}`), CA: ca}, bearer(secret), false},
		"wrong":             {transport.Auth{Username: "bot", Password: secret, CA: ca}, basic("bot", "other"), true},
		"of another host":   {transport.Auth{DockerConfig: docker("example.com", `{"username":"bot","password":"hunter2+/x"}`), CA: ca}, basic("bot", secret), true},
		"none":              {transport.Auth{CA: ca}, basic("bot", secret), true},
		"unknown authority": {transport.Auth{Username: "bot", Password: secret}, basic("bot", secret), true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			server.mu.Lock()
			server.allow, server.challenge = tc.allow, `Basic realm="registry"`
			if strings.Contains(name, "bearer") || strings.Contains(name, "token") {
				server.challenge = `Bearer realm="` + server.URL + `/token",service="registry"`
			}
			server.mu.Unlock()
			_, err := NewChartStore(t.TempDir(), loopback).Fetch(t.Context(), Chart{Repository: server.repository(), Name: "web", Auth: tc.auth})
			if !tc.refused {
				if err != nil {
					t.Error(err)
				}
				return
			}
			sources.WantError(t, err, failure.ErrAuthentication, "")
			sources.WantNoSecret(t, err, secret)
		})
	}
}

func TestChartFromRegistryElsewhere(t *testing.T) {
	server := serveOCI(t, httptest.NewServer)
	server.push(t, "1.0.0", chartMediaType)
	server.allow, server.challenge = basic("bot", "hunter2"), `Basic realm="registry"`
	var got []string
	storage := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		got = append(got, req.Header.Get("Authorization")+req.Header.Get("Referer"))
		_, _ = w.Write(server.blobs[strings.TrimPrefix(req.URL.Path, "/")])
	}))
	defer storage.Close()
	server.away = storage.URL
	_, err := NewChartStore(t.TempDir(), loopback).Fetch(t.Context(), Chart{
		Repository: server.repository(), Name: "web", Insecure: true, Auth: transport.Auth{Username: "bot", Password: "hunter2"},
	})
	if err != nil || len(got) != 1 || got[0] != "" {
		t.Errorf("%v; the storage got %q", err, got)
	}
}

func TestChartFromRegistryForManyAtOnce(t *testing.T) {
	server := serveOCI(t, httptest.NewServer)
	server.push(t, "1.0.0", chartMediaType)
	for wish, want := range map[string]string{
		"1.0.0": "GET /v2/charts/web/manifests/1.0.0\nGET /v2/charts/web/blobs/",
		"1.x":   "GET /v2/charts/web/tags/list\nGET /v2/charts/web/manifests/1.0.0\nGET /v2/charts/web/blobs/",
	} {
		store := NewChartStore(t.TempDir(), loopback)
		src := Chart{Repository: server.repository(), Name: "web", Version: wish, Insecure: true}
		together(t, &store.finds, store.source(src)+" web "+wish, 100, func(int) {
			if _, err := store.Fetch(t.Context(), src); err != nil {
				t.Error(err)
			}
		})
		got := strings.Join(server.seen, "\n")
		if server.seen = nil; !strings.HasPrefix(got, want) || strings.Count(got, "\n") != strings.Count(want, "\n") {
			t.Errorf("requests:\n%s", got)
		}
	}
}
