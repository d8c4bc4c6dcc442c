package fetch

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/kubeop/kubeop/delivery/fetch/disk"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/limit"
	"github.com/kubeop/kubeop/delivery/fetch/singleflight"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

// tgz makes something with the magic of an archive and its digest.
func tgz(t *testing.T, content string) ([]byte, string) {
	t.Helper()
	var buffer bytes.Buffer
	w := gzip.NewWriter(&buffer)
	_, _ = w.Write([]byte(content))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(buffer.Bytes())
	return buffer.Bytes(), hex.EncodeToString(sum[:])
}

// helmServer is a Helm repository.
type helmServer struct {
	*httptest.Server
	mu    sync.Mutex
	files map[string][]byte
	seen  []string
	allow func(*http.Request) bool
}

func serveHelm(t *testing.T) *helmServer {
	t.Helper()
	s := &helmServer{files: map[string][]byte{}}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	return s
}

func (s *helmServer) serve(w http.ResponseWriter, req *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	line := req.URL.Path
	if req.Header.Get("Authorization") != "" {
		line += " with credentials"
	}
	content, ok := s.files[req.URL.Path]
	switch {
	case s.allow != nil && !s.allow(req):
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

func (s *helmServer) requests() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := strings.Join(s.seen, "\n")
	s.seen = nil
	return seen
}

// publish puts versions of the chart "web" into the index, each with its own archive.
func (s *helmServer) publish(t *testing.T, versions ...string) map[string]string {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	digests := map[string]string{}
	index := "apiVersion: v1\nentries:\n  other:\n  - version: 9.9.9\n    urls: [other.tgz]\n  web:\n"
	for _, version := range versions {
		archive, digest := tgz(t, version)
		path := "/charts/web-" + version + ".tgz"
		s.files["/stable"+path], digests[version] = archive, "sha256:"+digest
		index += fmt.Sprintf("  - apiVersion: v2\n    digest: %s\n    name: web\n    urls:\n    - %s\n    version: %q\n", digest, path[1:], version)
	}
	s.files["/stable/index.yaml"] = []byte(index + "generated: \"2024-01-01T00:00:00Z\"\n")
	return digests
}

func TestChartFromRepository(t *testing.T) {
	server := serveHelm(t)
	digests := server.publish(t, "1.0.0", "1.10.0", "1.9.0", "2.0.0-rc.1", "1.10.0+build.2", "v0.1.0", "not-a-version")
	cases := map[string]struct{ wish, want string }{
		"newest stable":        {"", "1.10.0+build.2"},
		"star":                 {"*", "1.10.0+build.2"},
		"exact":                {"1.9.0", "1.9.0"},
		"exact of two":         {"1.10.0", "1.10.0"},
		"build metadata":       {"1.10.0+build.2", "1.10.0+build.2"},
		"range":                {"<1.10.0", "1.9.0"},
		"tilde":                {"~1.0", "1.0.0"},
		"prerelease in range":  {">=2.0.0-0", "2.0.0-rc.1"},
		"prerelease by name":   {"2.0.0-rc.1", "2.0.0-rc.1"},
		"with v":               {"v0.1.0", "v0.1.0"},
		"without v":            {"0.1.0", "v0.1.0"},
		"any with prereleases": {">0.0.0-0", "2.0.0-rc.1"},
	}
	store := NewChartStore(t.TempDir(), loopback)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for _, url := range []string{server.URL + "/stable", server.URL + "/stable/"} {
				got, err := store.Fetch(t.Context(), Chart{Repository: url, Name: "web", Version: tc.wish})
				if err != nil {
					t.Fatal(err)
				}
				if got.Name != "web" || got.Version != tc.want || got.Digest != digests[tc.want] {
					t.Errorf("got %+v, want %s %s", got, tc.want, digests[tc.want])
				}
				want, _ := tgz(t, tc.want)
				if content, err := os.ReadFile(got.Path); err != nil || !bytes.Equal(content, want) {
					t.Errorf("the archive is not the one published: %v", err)
				}
			}
		})
	}
}

func TestChartIsAskedForAndNotDownloadedAgain(t *testing.T) {
	server := serveHelm(t)
	server.publish(t, "1.0.0")
	store := NewChartStore(t.TempDir(), loopback)
	src := Chart{Repository: server.URL + "/stable", Name: "web"}
	steps := []struct {
		before func()
		want   string
	}{
		{func() {}, "/stable/index.yaml\n/stable/charts/web-1.0.0.tgz"},
		{func() {}, "/stable/index.yaml unchanged"},
		{func() { server.publish(t, "1.0.0", "1.1.0") }, "/stable/index.yaml\n/stable/charts/web-1.1.0.tgz"},
		{func() { store = NewChartStore(store.Dir, loopback) }, "/stable/index.yaml unchanged"},
	}
	for i, step := range steps {
		step.before()
		if _, err := store.Fetch(t.Context(), src); err != nil {
			t.Fatal(err)
		}
		if got := server.requests(); got != step.want {
			t.Errorf("step %d: %q, want %q", i, got, step.want)
		}
	}
}

// together does something n times at once: all have arrived before the first of them may ask.
func together[T any](t *testing.T, group *singleflight.Group[T], key string, n int, do func(i int)) {
	t.Helper()
	held, release := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		_, _ = group.Do(t.Context(), key, 0, func() (none T, err error) {
			close(held)
			<-release
			return none, nil
		})
	})
	<-held
	before := group.Clock.Load()
	for i := range n {
		wg.Go(func() { do(i) })
	}
	for group.Clock.Load() < before+int64(n) && t.Context().Err() == nil {
		runtime.Gosched()
	}
	close(release)
	wg.Wait()
}

func TestChartForManyAtOnce(t *testing.T) {
	server := serveHelm(t)
	server.publish(t, "1.0.0")
	server.files["/bare/index.yaml"], server.files["/bare/web.tgz"] = []byte("entries: {web: [{version: 1.0.0, urls: [web.tgz]}]}"), server.files["/stable/charts/web-1.0.0.tgz"]
	for repository, want := range map[string]struct {
		requests string
		most     int
	}{
		"/stable": {"/stable/index.yaml\n/stable/charts/web-1.0.0.tgz", 2},
		// Without a digest, what one downloads serves all who asked before; on a busy machine some of the hundred ask later.
		"/bare": {"/bare/index.yaml\n/bare/web.tgz", 10},
	} {
		store := NewChartStore(t.TempDir(), loopback)
		src := Chart{Repository: server.URL + repository, Name: "web"}
		together(t, &store.refreshes, store.source(src), 100, func(int) {
			if _, err := store.Fetch(context.Background(), src); err != nil {
				t.Error(err)
			}
		})
		all := strings.Split(server.requests(), "\n")
		if got := strings.Join(slices.Compact(slices.Clone(all)), "\n"); got != want.requests || len(all) > want.most {
			t.Errorf("requests:\n%s", strings.Join(all, "\n"))
		}
	}
}

func TestChartUnhappy(t *testing.T) {
	server := serveHelm(t)
	server.publish(t, "1.0.0", "1.1.0", "1.2.0", "2.0.0", "2.1.0", "3.0.0-rc.1")
	archive, digest := tgz(t, "x")
	server.files["/odd/index.yaml"] = []byte(`
entries:
  nourl: [{version: 1.0.0}]
  noversion: []
  script: [{version: 1.0.0, urls: ["file:///etc/passwd"]}]
  userinfo: [{version: 1.0.0, urls: ["http://bot:hunter2@` + server.Listener.Addr().String() + `/odd/gone.tgz"]}]
  gone: [{version: 1.0.0, urls: [gone.tgz]}]
  page: [{version: 1.0.0, urls: [page.tgz]}]
  changed: [{version: 1.0.0, urls: [ok.tgz], digest: "` + strings.Repeat("ab", 32) + `"}]
  baddigest: [{version: 1.0.0, urls: [ok.tgz], digest: "../../../../etc/passwd"}]
  nodigest: [{version: 1.0.0, urls: [ok.tgz]}]
  large: [{version: 1.0.0, urls: [large.tgz]}]
`)
	server.files["/odd/ok.tgz"], server.files["/odd/page.tgz"] = archive, []byte("<html>")
	server.files["/odd/large.tgz"] = append(append([]byte{}, archive...), make([]byte, 64*limit.KiB)...)
	server.files["/page/index.yaml"] = []byte("<html><body>hunter2: [</body>")
	server.files["/nothing/index.yaml"] = []byte("")

	cases := map[string]struct {
		src  Chart
		kind error
		says string
	}{
		"unknown chart":     {Chart{Repository: "/stable", Name: "wep"}, failure.ErrNotFound, "the repository has no chart wep"},
		"unknown version":   {Chart{Repository: "/stable", Name: "web", Version: "4.0.0"}, failure.ErrNotFound, `chart web has no version "4.0.0"; the newest are 3.0.0-rc.1, 2.1.0, 2.0.0, 1.2.0, 1.1.0`},
		"empty range":       {Chart{Repository: "/stable", Name: "web", Version: ">5"}, failure.ErrNotFound, `no version ">5"`},
		"no range":          {Chart{Repository: "/stable", Name: "web", Version: "latest"}, failure.ErrInvalid, "neither a version nor a range"},
		"no repository":     {Chart{Repository: "/gone", Name: "web"}, failure.ErrNotFound, "there is no Helm repository"},
		"web page":          {Chart{Repository: "/page", Name: "web"}, failure.ErrInvalid, "is this the URL of a Helm repository?"},
		"empty index":       {Chart{Repository: "/nothing", Name: "web"}, failure.ErrInvalid, "index.yaml cannot be read"},
		"name with slash":   {Chart{Repository: "/stable", Name: "../web"}, failure.ErrInvalid, "not the name of a chart"},
		"no URL":            {Chart{Repository: "/odd", Name: "nourl"}, failure.ErrInvalid, "lists no URL"},
		"no versions":       {Chart{Repository: "/odd", Name: "noversion"}, failure.ErrNotFound, "no chart noversion"},
		"file URL":          {Chart{Repository: "/odd", Name: "script"}, failure.ErrInvalid, "not http or https"},
		"URL with password": {Chart{Repository: "/odd", Name: "userinfo"}, failure.ErrNotFound, "there is no chart archive"},
		"archive gone":      {Chart{Repository: "/odd", Name: "gone"}, failure.ErrNotFound, "there is no chart archive"},
		"archive is a page": {Chart{Repository: "/odd", Name: "page"}, failure.ErrInvalid, "is not a gzip archive"},
		"other content":     {Chart{Repository: "/odd", Name: "changed"}, failure.ErrServer, "the repository lists sha256:abab"},
		"digest is a path":  {Chart{Repository: "/odd", Name: "baddigest"}, failure.ErrInvalid, "not a SHA-256"},
		"large":             {Chart{Repository: "/odd", Name: "large"}, failure.ErrTooLarge, "the chart is larger than the limit of 64 KiB"},
	}
	store := NewChartStore(t.TempDir(), loopback)
	store.limits.chart = 64 * limit.KiB
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.src.Repository = server.URL + tc.src.Repository
			_, err := store.Fetch(t.Context(), tc.src)
			sources.WantError(t, err, tc.kind, tc.says)
			sources.WantNoSecret(t, err, "hunter2")
		})
	}
	got, err := store.Fetch(t.Context(), Chart{Repository: server.URL + "/odd", Name: "nodigest"})
	if err != nil || got.Digest != "sha256:"+digest {
		t.Errorf("without a digest: %+v, %v", got, err)
	}
	left, _ := filepath.Glob(filepath.Join(store.Dir, "*", disk.Temporary))
	if len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestChartRefusesURLs(t *testing.T) {
	for repository, says := range map[string]string{
		"":                           "not of the form",
		"charts.example.com":         "not of the form",
		"file:///charts":             "not of the form",
		"ftp://host/charts":          `scheme "ftp"`,
		"https://bot:hunter2@host/c": "move them to a Secret",
		"oci://bot:hunter2@host/c":   "move them to a Secret",
		"oci://host/Upper Case":      "not the name of a repository",
	} {
		_, err := NewChartStore(t.TempDir(), loopback).Fetch(t.Context(), Chart{Repository: repository, Name: "web"})
		sources.WantError(t, err, failure.ErrInvalid, says)
		sources.WantNoSecret(t, err, "hunter2")
	}
}

func TestChartCredentialsStayHome(t *testing.T) {
	server, other := serveHelm(t), serveHelm(t)
	server.publish(t, "1.0.0")
	archive, _ := tgz(t, "x")
	other.files["/abs.tgz"], server.files["/stable/own.tgz"] = archive, archive
	index := string(server.files["/stable/index.yaml"])
	server.files["/stable/index.yaml"] = []byte(strings.Replace(index, "  web:\n", fmt.Sprintf(
		"  abroad:\n  - version: 1.0.0\n    urls: [%s/abs.tgz]\n  own:\n  - version: 1.0.0\n    urls: [%s/stable/own.tgz]\n  web:\n", other.URL, server.URL), 1))
	server.allow = sources.Basic("bot", "hunter2")
	auth := transport.Auth{Username: "bot", Password: "hunter2"}
	for _, auth := range []transport.Auth{auth, {DockerConfig: []byte(`{"auths":{"` + server.Listener.Addr().String() + `":{"username":"bot","password":"hunter2"}}}`)}} {
		store := NewChartStore(t.TempDir(), loopback)
		for _, name := range []string{"abroad", "own", "web"} {
			if _, err := store.Fetch(t.Context(), Chart{Repository: server.URL + "/stable", Name: name, Auth: auth}); err != nil {
				t.Error(err)
			}
		}
	}
	if got := other.requests(); got != "/abs.tgz\n/abs.tgz" {
		t.Errorf("the other host got %q", got)
	}
	store := NewChartStore(t.TempDir(), loopback)
	if _, err := store.Fetch(t.Context(), Chart{Repository: server.URL + "/stable", Name: "web", Auth: auth}); err != nil {
		t.Fatal(err)
	}
	_, err := store.Fetch(t.Context(), Chart{Repository: server.URL + "/stable", Name: "web", Auth: transport.Auth{Username: "bot", Password: "hunter3"}})
	sources.WantError(t, err, failure.ErrAuthentication, "rejected the credentials")
	sources.WantNoSecret(t, err, "hunter3")
	_, err = store.Fetch(t.Context(), Chart{Repository: server.URL + "/stable", Name: "web"})
	sources.WantError(t, err, failure.ErrAuthentication, "or it needs credentials")
}
