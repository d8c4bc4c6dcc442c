package fetch

import (
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/kubeop/kubeop/delivery/fetch/artifact"
	"github.com/kubeop/kubeop/delivery/fetch/disk"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

// TestSourcesThatGiveNothingLeaveNothing asks for repositories, charts and artifacts that never come, each under many URLs, and looks
// what is left of them on disk and in memory.
func TestSourcesThatGiveNothingLeaveNothing(t *testing.T) {
	const many = 20
	server := listen(t, httptest.NewServer, func(w http.ResponseWriter, req *http.Request) {
		switch {
		case req.URL.Query().Get("service") != "":
			w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
			_, _ = fmt.Fprint(w, "001e# service=git-upload-pack\n0000"+
				"003f0123456789012345678901234567890123456789 refs/heads/main\x00 \n0000")
		case filepath.Base(req.URL.Path) == "index.yaml":
			_, _ = fmt.Fprint(w, "entries: {web: [")
		default:
			_, _ = fmt.Fprint(w, "nothing of use")
		}
	})
	dir := t.TempDir()
	stores := NewStores(dir, loopback, time.Now, "127.0.0.1")
	for i := range many {
		if _, err := stores.Git.Fetch(t.Context(), Git{URL: fmt.Sprintf("%s/%d.git", server.URL, i), Tenant: "acme"}); err == nil {
			t.Error("a repository that is none is fetched")
		}
		if _, err := stores.Charts.Fetch(t.Context(), Chart{Repository: fmt.Sprintf("%s/%d", server.URL, i), Name: "web", Tenant: "acme"}); err == nil {
			t.Error("a chart that is none is fetched")
		}
		src := artifact.Flux{URL: fmt.Sprintf("%s/gitrepository/acme/%d.tgz", server.URL, i), Digest: sources.DigestOf(nil), Namespace: "acme", Tenant: fmt.Sprint("tenant", i)}
		if _, err := stores.Artifacts.Download(t.Context(), src); err == nil {
			t.Error("an artifact that is none is fetched")
		}
	}
	var left []string
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if below, _ := filepath.Rel(dir, path); err == nil && below != "." && !slices.Contains([]string{"git", "charts", "artifacts"}, below) {
			left = append(left, below)
		}
		return err
	})
	if err != nil || len(left) > 0 {
		t.Errorf("on disk is left %v, %v", left, err)
	}
	for name, used := range map[string]*disk.Usage{"git": &stores.Git.used, "charts": &stores.Charts.Used, "artifacts": &stores.Artifacts.Used} {
		if used.Len() > 0 {
			t.Errorf("%s: %d are held to be used", name, used.Len())
		}
	}
}

// TestIndexesRememberedAreBounded, and the one that was asked for last is among them.
func TestIndexesRememberedAreBounded(t *testing.T) {
	s := NewChartStore(t.TempDir(), loopback)
	var last *helmRepository
	for i := range rememberedIndexes + 100 {
		src := Chart{Repository: fmt.Sprintf("https://charts.example.com/%d", i), Name: "web"}
		base, err := src.check()
		if err != nil {
			t.Fatal(err)
		}
		first := request{Chart: Chart{Repository: "https://charts.example.com/first", Name: "web"}, base: base, folder: "first", arrived: s.arrivals.Add(1)}
		if _, err := s.helmRepository(first); err != nil { // It is asked for all the time.
			t.Fatal(err)
		}
		if last, err = s.helmRepository(request{Chart: src, base: base, folder: s.source(src), arrived: s.arrivals.Add(1)}); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(s.indexes); n != rememberedIndexes {
		t.Errorf("%d are remembered, want %d", n, rememberedIndexes)
	}
	if s.indexes["first"] == nil || s.indexes[filepath.Dir(last.file)] != last {
		t.Error("one that was asked for a moment ago is forgotten")
	}
}

// TestRepositoriesThatNobodyHoldsAreForgotten without a sweep.
func TestRepositoriesThatNobodyHoldsAreForgotten(t *testing.T) {
	s := NewGitStore(t.TempDir(), loopback)
	held := s.repository(Git{URL: "https://git.example.com/held"})
	for i := range 3 * maxUnheld {
		s.repository(Git{URL: fmt.Sprintf("https://git.example.com/%d", i)})
		if i%maxUnheld == 0 {
			runtime.GC()
		}
	}
	if n := len(s.repositories); n > 2*maxUnheld {
		t.Errorf("%d are remembered", n)
	}
	if s.repository(Git{URL: "https://git.example.com/held"}) != held {
		t.Error("one that is held is forgotten")
	}
}
