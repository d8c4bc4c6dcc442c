package chart

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/kubeop/kubeop/delivery/fetch/chart/index"
	"github.com/kubeop/kubeop/delivery/fetch/disk"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/limit"
	"github.com/kubeop/kubeop/delivery/fetch/singleflight"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

func TestAChartIsFetchedFromARepository(t *testing.T) {
	server := sources.ServeHelm(t)
	digests := server.Publish(t, "1.0.0", "1.10.0", "1.9.0", "2.0.0-rc.1", "1.10.0+build.2", "v0.1.0", "not-a-version")
	cases := map[string]struct{ requested, want string }{
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
	store := NewStore(t.TempDir(), loopback)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for _, url := range []string{server.URL + "/stable", server.URL + "/stable/"} {
				got, err := store.Fetch(t.Context(), Source{Repository: url, Name: "web", Version: tc.requested})
				if err != nil {
					t.Fatal(err)
				}
				if got.Name != "web" || got.Version != tc.want || got.Digest != digests[tc.want] {
					t.Errorf("got %+v, want %s %s", got, tc.want, digests[tc.want])
				}
				want, _ := sources.Gzip(t, tc.want)
				if content, err := os.ReadFile(got.Path); err != nil || !bytes.Equal(content, want) {
					t.Errorf("the archive is not the one published: %v", err)
				}
			}
		})
	}
}

func TestAnUnchangedChartIsNotDownloadedAgain(t *testing.T) {
	server := sources.ServeHelm(t)
	server.Publish(t, "1.0.0")
	store := NewStore(t.TempDir(), loopback)
	src := Source{Repository: server.URL + "/stable", Name: "web"}
	steps := []struct {
		before func()
		want   string
	}{
		{func() {}, "/stable/index.yaml\n/stable/charts/web-1.0.0.tgz"},
		{func() {}, "/stable/index.yaml unchanged"},
		{func() { server.Publish(t, "1.0.0", "1.1.0") }, "/stable/index.yaml\n/stable/charts/web-1.1.0.tgz"},
		{func() { store = NewStore(store.Dir, loopback) }, "/stable/index.yaml unchanged"},
	}
	for i, step := range steps {
		step.before()
		if _, err := store.Fetch(t.Context(), src); err != nil {
			t.Fatal(err)
		}
		if got := server.Requests(); got != step.want {
			t.Errorf("step %d: %q, want %q", i, got, step.want)
		}
	}
}

// together does something n times at once: all have arrived before the first of them sends its request.
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
	for i := range n {
		wg.Go(func() { do(i) })
	}
	for group.Waiting(key) < n+1 && t.Context().Err() == nil {
		runtime.Gosched()
	}
	close(release)
	wg.Wait()
}

// TestAnAnswerUnchangedToNoQuestionIsAnError: there is no earlier index that could be used.
func TestAnAnswerUnchangedToNoQuestionIsAnError(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotModified) }))
	defer server.Close()
	if _, err := NewStore(t.TempDir(), loopback).Fetch(t.Context(), Source{Repository: server.URL, Name: "web"}); err == nil || !strings.Contains(err.Error(), "304") {
		t.Errorf("got %v", err)
	}
}

func TestManyCallersShareTheRequestsForAChart(t *testing.T) {
	server := sources.ServeHelm(t)
	server.Publish(t, "1.0.0")
	server.Files["/bare/index.yaml"], server.Files["/bare/web.tgz"] = []byte("entries: {web: [{version: 1.0.0, urls: [web.tgz]}]}"), server.Files["/stable/charts/web-1.0.0.tgz"]
	for repository, want := range map[string]struct {
		requests string
		most     int
	}{
		"/stable": {"/stable/index.yaml\n/stable/charts/web-1.0.0.tgz", 2},
		// Without a digest, one download serves all who requested it before; on a busy machine some of the hundred come later.
		"/bare": {"/bare/index.yaml\n/bare/web.tgz", 10},
	} {
		store := NewStore(t.TempDir(), loopback)
		src := Source{Repository: server.URL + repository, Name: "web"}
		together(t, &store.refreshes, store.source(src), 100, func(int) {
			if _, err := store.Fetch(context.Background(), src); err != nil {
				t.Error(err)
			}
		})
		all := strings.Split(server.Requests(), "\n")
		if got := strings.Join(slices.Compact(slices.Clone(all)), "\n"); got != want.requests || len(all) > want.most {
			t.Errorf("requests:\n%s", strings.Join(all, "\n"))
		}
	}
}

func TestUnusableChartsAreExplained(t *testing.T) {
	server := sources.ServeHelm(t)
	server.Publish(t, "1.0.0", "1.1.0", "1.2.0", "2.0.0", "2.1.0", "3.0.0-rc.1")
	archive, digest := sources.Gzip(t, "x")
	server.Files["/odd/index.yaml"] = []byte(`
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
  nogzip: [{version: 1.0.0, urls: [nogzip.tgz]}]
  empty: [{version: 1.0.0, urls: [empty.tgz]}]
  large: [{version: 1.0.0, urls: [large.tgz]}]
`)
	server.Files["/odd/nogzip.tgz"], server.Files["/odd/empty.tgz"] = []byte("\x1f\x8bno gzip"), []byte("")
	server.Files["/odd/ok.tgz"], server.Files["/odd/page.tgz"] = archive, []byte("<html>")
	server.Files["/odd/large.tgz"] = append(append([]byte{}, archive...), make([]byte, 64*limit.KiB)...)
	server.Files["/page/index.yaml"] = []byte("<html><body>hunter2: [</body>")
	server.Files["/nothing/index.yaml"] = []byte("")

	cases := map[string]struct {
		src  Source
		kind error
		says string
	}{
		"unknown chart":     {Source{Repository: "/stable", Name: "wep"}, failure.ErrNotFound, "the repository has no chart wep"},
		"unknown version":   {Source{Repository: "/stable", Name: "web", Version: "4.0.0"}, failure.ErrNotFound, `chart web has no version "4.0.0"; the newest are 3.0.0-rc.1, 2.1.0, 2.0.0, 1.2.0, 1.1.0`},
		"empty range":       {Source{Repository: "/stable", Name: "web", Version: ">5"}, failure.ErrNotFound, `no version ">5"`},
		"no range":          {Source{Repository: "/stable", Name: "web", Version: "latest"}, failure.ErrInvalid, "neither a version nor a range"},
		"no repository":     {Source{Repository: "/gone", Name: "web"}, failure.ErrNotFound, "there is no Helm repository"},
		"web page":          {Source{Repository: "/page", Name: "web"}, failure.ErrInvalid, "is this the URL of a Helm repository?"},
		"empty index":       {Source{Repository: "/nothing", Name: "web"}, failure.ErrInvalid, "index.yaml cannot be read"},
		"name with slash":   {Source{Repository: "/stable", Name: "../web"}, failure.ErrInvalid, "not the name of a chart"},
		"no URL":            {Source{Repository: "/odd", Name: "nourl"}, failure.ErrInvalid, "lists no URL"},
		"no versions":       {Source{Repository: "/odd", Name: "noversion"}, failure.ErrNotFound, "no chart noversion"},
		"file URL":          {Source{Repository: "/odd", Name: "script"}, failure.ErrInvalid, "not http or https"},
		"URL with password": {Source{Repository: "/odd", Name: "userinfo"}, failure.ErrNotFound, "there is no chart archive"},
		"archive gone":      {Source{Repository: "/odd", Name: "gone"}, failure.ErrNotFound, "there is no chart archive"},
		"archive is a page": {Source{Repository: "/odd", Name: "page"}, failure.ErrInvalid, "is not a gzip archive"},
		"only begins as it": {Source{Repository: "/odd", Name: "nogzip"}, failure.ErrServer, "is not a whole gzip archive"},
		"archive is empty":  {Source{Repository: "/odd", Name: "empty"}, failure.ErrInvalid, "is not a gzip archive"},
		"other content":     {Source{Repository: "/odd", Name: "changed"}, failure.ErrServer, "the repository lists sha256:abab"},
		"digest is a path":  {Source{Repository: "/odd", Name: "baddigest"}, failure.ErrInvalid, "not a SHA-256"},
		"large":             {Source{Repository: "/odd", Name: "large"}, failure.ErrTooLarge, "the chart is larger than the limit of 64 KiB"},
	}
	store := NewStore(t.TempDir(), loopback)
	store.limits.chart = 64 * limit.KiB
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.src.Repository = server.URL + tc.src.Repository
			_, err := store.Fetch(t.Context(), tc.src)
			sources.WantError(t, err, tc.kind, tc.says)
			sources.WantNoSecret(t, err, "hunter2")
		})
	}
	got, err := store.Fetch(t.Context(), Source{Repository: server.URL + "/odd", Name: "nodigest"})
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
		"https://host/charts#latest": "has a fragment",
		"oci://host/charts?tag=1":    "has a query",
		"oci://host/charts?":         "has a query",
	} {
		_, err := NewStore(t.TempDir(), loopback).Fetch(t.Context(), Source{Repository: repository, Name: "web"})
		sources.WantError(t, err, failure.ErrInvalid, says)
		sources.WantNoSecret(t, err, "hunter2")
	}
}

func TestTheURLOfAVersionIsResolvedWithoutCredentials(t *testing.T) {
	base, err := url.Parse("https://charts.example.com/stable/?token=x")
	if err != nil {
		t.Fatal(err)
	}
	for listed, want := range map[string]string{
		"web-1.tgz": "https://charts.example.com/stable/web-1.tgz", "/web-1.tgz": "https://charts.example.com/web-1.tgz",
		"https://me:secret@cdn.example.com/web-1.tgz": "https://cdn.example.com/web-1.tgz", "http://cdn.example.com/web-1.tgz": "http://cdn.example.com/web-1.tgz",
		"ftp://cdn.example.com/web-1.tgz": "", "file:///etc/passwd": "", "https:///web-1.tgz": "", "oci://cdn.example.com/web": "", "https://[::1": "",
	} {
		got, err := chartURL(base, "web", index.Version{Name: "1.0.0", URLs: []string{listed}})
		if want == "" {
			if !errors.Is(err, failure.ErrInvalid) {
				t.Errorf("%s: got %v, %v", listed, got, err)
			}
			continue
		}
		if err != nil || got.String() != want {
			t.Errorf("%s: got %v, %v, want %s", listed, got, err, want)
		}
	}
	if got, err := chartURL(base, "web", index.Version{Name: "1.0.0"}); !errors.Is(err, failure.ErrInvalid) {
		t.Errorf("no URL: got %v, %v", got, err)
	}
}

func TestChartCredentialsAreNotSentToOtherHosts(t *testing.T) {
	server, other := sources.ServeHelm(t), sources.ServeHelm(t)
	server.Publish(t, "1.0.0")
	archive, _ := sources.Gzip(t, "x")
	other.Files["/abs.tgz"], server.Files["/stable/own.tgz"] = archive, archive
	index := string(server.Files["/stable/index.yaml"])
	server.Files["/stable/index.yaml"] = []byte(strings.Replace(index, "  web:\n", fmt.Sprintf(
		"  abroad:\n  - version: 1.0.0\n    urls: [%s/abs.tgz]\n  own:\n  - version: 1.0.0\n    urls: [%s/stable/own.tgz]\n  web:\n", other.URL, server.URL), 1))
	server.Allow = sources.Basic("bot", "hunter2")
	auth := transport.Auth{Username: "bot", Password: "hunter2"}
	for _, auth := range []transport.Auth{auth, {DockerConfig: []byte(`{"auths":{"` + server.Listener.Addr().String() + `":{"username":"bot","password":"hunter2"}}}`)}} {
		store := NewStore(t.TempDir(), loopback)
		for _, name := range []string{"abroad", "own", "web"} {
			if _, err := store.Fetch(t.Context(), Source{Repository: server.URL + "/stable", Name: name, Auth: auth}); err != nil {
				t.Error(err)
			}
		}
	}
	if got := other.Requests(); got != "/abs.tgz\n/abs.tgz" {
		t.Errorf("the other host got %q, want %q", got, "/abs.tgz\n/abs.tgz")
	}
	store := NewStore(t.TempDir(), loopback)
	if _, err := store.Fetch(t.Context(), Source{Repository: server.URL + "/stable", Name: "web", Auth: auth}); err != nil {
		t.Fatal(err)
	}
	_, err := store.Fetch(t.Context(), Source{Repository: server.URL + "/stable", Name: "web", Auth: transport.Auth{Username: "bot", Password: "hunter3"}})
	sources.WantError(t, err, failure.ErrAuthentication, "rejected the credentials")
	sources.WantNoSecret(t, err, "hunter3")
	_, err = store.Fetch(t.Context(), Source{Repository: server.URL + "/stable", Name: "web"})
	sources.WantError(t, err, failure.ErrAuthentication, "wants credentials for the Helm repository (index.yaml) at this URL; some hosts answer so if it does not exist (401): check the URL in Git, or name a Secret")
}
