package fetch

import (
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/kubeop/kubeop/delivery/fetch/artifact"
	"github.com/kubeop/kubeop/delivery/fetch/chart"
	"github.com/kubeop/kubeop/delivery/fetch/disk"
	"github.com/kubeop/kubeop/delivery/fetch/git"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

// TestSourcesThatGiveNothingLeaveNothing asks for repositories, charts and artifacts that never come, each under many URLs, and looks
// what is left of them on disk and in memory.
func TestSourcesThatGiveNothingLeaveNothing(t *testing.T) {
	const many = 20
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
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
	}))
	defer server.Close()
	dir := t.TempDir()
	stores := NewStores(dir, loopback, time.Now, "127.0.0.1")
	for i := range many {
		if _, err := stores.Git.Fetch(t.Context(), git.Source{URL: fmt.Sprintf("%s/%d.git", server.URL, i), Tenant: "acme"}); err == nil {
			t.Error("a repository that is none is fetched")
		}
		if _, err := stores.Charts.Fetch(t.Context(), chart.Source{Repository: fmt.Sprintf("%s/%d", server.URL, i), Name: "web", Tenant: "acme"}); err == nil {
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
	for name, used := range map[string]*disk.Usage{"git": &stores.Git.Used, "charts": &stores.Charts.Used, "artifacts": &stores.Artifacts.Used} {
		if used.Len() > 0 {
			t.Errorf("%s: %d are held to be used", name, used.Len())
		}
	}
}
