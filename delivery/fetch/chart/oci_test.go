package chart

import (
	"bytes"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/limit"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

// pushChart pushes a chart with the version of the tag to a registry, and returns the digest of its archive.
func pushChart(t *testing.T, s *sources.OCIServer, tag, mediaType string) string {
	t.Helper()
	archive, _ := sources.Gzip(t, tag)
	return s.PushChart(t, tag, mediaType, archive)
}

func TestAChartIsFetchedFromARegistry(t *testing.T) {
	server := sources.ServeOCI(t, httptest.NewServer)
	digests := map[string]string{}
	for _, tag := range []string{"0.9.0", "1.0.0", "1.10.0", "1.9.0", "2.0.0-rc.1", "1.5.0_build.1", "latest"} {
		digests[strings.ReplaceAll(tag, "_", "+")] = pushChart(t, server, tag, chartMediaType)
	}
	store := NewStore(t.TempDir(), loopback)
	for requested, want := range map[string]string{
		"": "1.10.0", "1.9.0": "1.9.0", "<1.10.0": "1.9.0", "2.0.0-rc.1": "2.0.0-rc.1", "~1.5": "1.5.0+build.1",
		"1.5.0+build.1": "1.5.0+build.1", ">=1.0.0-0": "2.0.0-rc.1", "latest": "latest",
	} {
		t.Run(requested, func(t *testing.T) {
			got, err := store.Fetch(t.Context(), Source{Repository: server.Repository(), Name: "web", Version: requested, Insecure: true})
			if err != nil {
				t.Fatal(err)
			}
			if got.Version != want || got.Name != "web" || got.Digest != digests[want] {
				t.Errorf("got %+v, want %s %s", got, want, digests[want])
			}
			content, err := os.ReadFile(got.Path)
			if err != nil || !bytes.Equal(content, server.Blobs[digests[want]]) {
				t.Errorf("the archive is not the one published: %v", err)
			}
		})
	}
	server.Requests()
	if _, err := store.Fetch(t.Context(), Source{Repository: server.Repository() + "/", Name: "web", Version: "1.0.0", Insecure: true}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := store.Fetch(t.Context(), Source{Repository: server.Repository(), Name: "web", Version: "1.0.0", Insecure: true}); err != nil {
			t.Fatal(err)
		}
	}
	if blobs := strings.Count(strings.Join(server.Requests(), "\n"), "/blobs/"); blobs > 2 {
		t.Errorf("downloaded again:\n%s", strings.Join(server.Requests(), "\n"))
	}
}

func TestUnusableChartsOfRegistriesAreExplained(t *testing.T) {
	server := sources.ServeOCI(t, httptest.NewServer)
	for _, tag := range []string{"1.0.0", "1.1.0", "1.2.0", "1.3.0", "1.4.0", "1.5.0"} {
		pushChart(t, server, tag, chartMediaType)
	}
	pushChart(t, server, "2.0.0-image", "application/vnd.oci.image.layer.v1.tar+gzip")
	damaged := pushChart(t, server, "3.0.0-damaged", chartMediaType)
	server.Blobs[damaged][len(server.Blobs[damaged])-1]++
	gone := pushChart(t, server, "3.0.0-gone", chartMediaType)
	delete(server.Blobs, gone)
	server.Manifests["3.0.0-huge"] = []byte(`{"schemaVersion":2,"layers":[{"mediaType":"` + chartMediaType + `","digest":"` + gone + `","size":99999999999}]}`)
	server.Manifests["3.0.0-long"] = bytes.Repeat([]byte(" "), 4*limit.MiB+1)
	server.Manifests["3.0.0-text"] = []byte(`text`)
	empty := sources.ServeOCI(t, httptest.NewServer)
	_, err := NewStore(t.TempDir(), loopback).Fetch(t.Context(), Source{Repository: empty.Repository(), Name: "web", Insecure: true})
	sources.WantError(t, err, failure.ErrNotFound, "")
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
		"a long manifest":        {"web", "3.0.0-long", failure.ErrTooLarge, "the chart's manifest is larger than the limit of 4 MiB"},
		"no manifest":            {"web", "3.0.0-text", failure.ErrInvalid, "is not JSON"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := NewStore(t.TempDir(), loopback).Fetch(t.Context(), Source{Repository: server.Repository(), Name: tc.name, Version: tc.version, Insecure: true})
			sources.WantError(t, err, tc.kind, tc.says)
		})
	}
	// Without Insecure only TLS is used.
	_, err = NewStore(t.TempDir(), loopback).Fetch(t.Context(), Source{Repository: server.Repository(), Name: "web"})
	wantTransient(t, err)
}

// TestAManifestThatIsNotWhatTheRegistrySaysIsRefused, because the chart is taken from it.
func TestAManifestThatIsNotWhatTheRegistrySaysIsRefused(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
		w.Header().Set("Docker-Content-Digest", "sha256:"+strings.Repeat("a", 64))
		_, _ = w.Write([]byte(`{"schemaVersion":2}`))
	}))
	defer server.Close()
	repository := "oci://" + server.Listener.Addr().String() + "/charts"
	_, err := NewStore(t.TempDir(), loopback).Fetch(t.Context(), Source{Repository: repository, Name: "web", Version: "1.0.0", Insecure: true})
	if !errors.Is(err, failure.ErrUnavailable) || !strings.Contains(err.Error(), "reading the chart's manifest") {
		t.Errorf("got %v", err)
	}
}

func TestRegistriesTakeEachKindOfCredentials(t *testing.T) {
	const secret = "hunter2+/x"
	server := sources.ServeOCI(t, httptest.NewTLSServer)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	pushChart(t, server, "1.0.0", chartMediaType)
	ca := sources.Certificate(server.Server)
	host := server.Listener.Addr().String()
	docker := func(host, entry string) []byte { return []byte(`{"auths":{"` + host + `":` + entry + `}}`) }
	cases := map[string]struct {
		auth    transport.Auth
		allow   func(*http.Request) bool
		refused bool
	}{
		"basic":             {transport.Auth{Username: "bot", Password: secret, CA: ca}, sources.Basic("bot", secret), false},
		"docker":            {transport.Auth{DockerConfig: docker(host, `{"username":"bot","password":"hunter2+/x"}`), CA: ca}, sources.Basic("bot", secret), false},
		"bearer":            {transport.Auth{BearerToken: secret, CA: ca}, sources.Bearer(secret), false},
		"docker token":      {transport.Auth{DockerConfig: docker(host, `{"registrytoken":"hunter2+/x"}`), CA: ca}, sources.Bearer(secret), false},
		"wrong":             {transport.Auth{Username: "bot", Password: secret, CA: ca}, sources.Basic("bot", "other"), true},
		"of another host":   {transport.Auth{DockerConfig: docker("example.com", `{"username":"bot","password":"hunter2+/x"}`), CA: ca}, sources.Basic("bot", secret), true},
		"none":              {transport.Auth{CA: ca}, sources.Basic("bot", secret), true},
		"unknown authority": {transport.Auth{Username: "bot", Password: secret}, sources.Basic("bot", secret), true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			server.Allow, server.Challenge = tc.allow, `Basic realm="registry"`
			if strings.Contains(name, "bearer") || strings.Contains(name, "token") {
				server.Challenge = `Bearer realm="` + server.URL + `/token",service="registry"`
			}
			_, err := NewStore(t.TempDir(), loopback).Fetch(t.Context(), Source{Repository: server.Repository(), Name: "web", Auth: tc.auth})
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

func TestTheStorageOfARegistryGetsNoCredentials(t *testing.T) {
	server := sources.ServeOCI(t, httptest.NewServer)
	pushChart(t, server, "1.0.0", chartMediaType)
	server.Allow, server.Challenge = sources.Basic("bot", "hunter2"), `Basic realm="registry"`
	var got []string
	storage := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		got = append(got, req.Header.Get("Authorization")+req.Header.Get("Referer"))
		_, _ = w.Write(server.Blobs[strings.TrimPrefix(req.URL.Path, "/")])
	}))
	defer storage.Close()
	server.Away = storage.URL
	_, err := NewStore(t.TempDir(), loopback).Fetch(t.Context(), Source{
		Repository: server.Repository(), Name: "web", Insecure: true, Auth: transport.Auth{Username: "bot", Password: "hunter2"},
	})
	if err != nil || len(got) != 1 || got[0] != "" {
		t.Errorf("%v; the storage got %q", err, got)
	}
}

func TestManyCallersShareTheRequestsToARegistry(t *testing.T) {
	server := sources.ServeOCI(t, httptest.NewServer)
	pushChart(t, server, "1.0.0", chartMediaType)
	for requested, want := range map[string]string{
		"1.0.0": "GET /v2/charts/web/manifests/1.0.0\nGET /v2/charts/web/blobs/",
		"1.x":   "GET /v2/charts/web/tags/list\nGET /v2/charts/web/manifests/1.0.0\nGET /v2/charts/web/blobs/",
	} {
		store := NewStore(t.TempDir(), loopback)
		src := Source{Repository: server.Repository(), Name: "web", Version: requested, Insecure: true}
		together(t, &store.finds, store.source(src)+" web "+requested, 100, func(int) {
			if _, err := store.Fetch(t.Context(), src); err != nil {
				t.Error(err)
			}
		})
		got := strings.Join(server.Requests(), "\n")
		if server.Requests(); !strings.HasPrefix(got, want) || strings.Count(got, "\n") != strings.Count(want, "\n") {
			t.Errorf("requests:\n%s", got)
		}
	}
}

// TestAChartOfTheLargestSizeIsTaken from a registry, and one byte more is too large.
func TestAChartOfTheLargestSizeIsTaken(t *testing.T) {
	registry := sources.ServeOCI(t, httptest.NewServer)
	archive := sources.ChartArchive(t, "web", nil)
	registry.PushChart(t, "1.0.0", chartMediaType, archive)
	for limit, want := range map[int64]error{int64(len(archive)): nil, int64(len(archive)) - 1: failure.ErrTooLarge} {
		store := NewStore(t.TempDir(), loopback)
		store.limits.chart = limit
		if _, err := store.Fetch(t.Context(), Source{Repository: registry.Repository(), Name: "web", Version: "1.0.0", Insecure: true}); !errors.Is(err, want) {
			t.Errorf("a chart of %d bytes with a limit of %d: %v, want %v", len(archive), limit, err, want)
		}
	}
}

// TestChartsFetchedInOtherWaysAreNotShared: what was fetched without TLS, with other credentials or from elsewhere is not served for a source. A slash
// at the end of the URL makes no other source.
func TestChartsFetchedInOtherWaysAreNotShared(t *testing.T) {
	store := NewStore(t.TempDir(), loopback)
	of := func(change func(*Source)) string {
		src := Source{Repository: "oci://registry.example/charts", Name: "web", Auth: transport.Auth{Username: "bot", Password: "hunter2"}}
		change(&src)
		return store.source(src)
	}
	own := of(func(*Source) {})
	for name, change := range map[string]func(*Source){
		"without TLS":    func(s *Source) { s.Insecure = true },
		"no credentials": func(s *Source) { s.Auth = transport.Auth{} },
		"a password":     func(s *Source) { s.Auth.Password = "hunter3" },
		"an authority":   func(s *Source) { s.Auth.CA = []byte("own") },
		"another URL":    func(s *Source) { s.Repository += "/more" },
	} {
		if of(change) == own {
			t.Errorf("%s: it shares the folder of the source", name)
		}
	}
	if of(func(s *Source) { s.Repository += "/" }) != own {
		t.Error("a slash at the end makes another source")
	}
}
