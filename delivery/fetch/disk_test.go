package fetch

import (
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/delivery/fetch/artifact"
	"github.com/kubeop/kubeop/delivery/fetch/chart"
	"github.com/kubeop/kubeop/delivery/fetch/disk"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/git"
	"github.com/kubeop/kubeop/delivery/fetch/limit"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

// storesOf returns stores in which a tenant may take that many bytes, and sets their clock forward.
func storesOf(dir string, limit int64) (stores *Stores, later func(time.Duration)) {
	now := time.Now()
	stores = NewStores(dir, loopback, func() time.Time { return now })
	stores.disk.Limits.Bytes = limit
	return stores, func(d time.Duration) { now = now.Add(d) }
}

// noisySources serves sources of that many bytes, each number another, and returns how each store fetches one.
func noisySources(t *testing.T, size int) map[string]func(s *Stores, tenant string, n int) error {
	charts, registry := sources.ServeHelm(t), sources.ServeOCI(t, httptest.NewServer)
	index, repos := "entries: {web: [", map[int]*sources.GitServer{}
	for n := range 4 {
		archive, digest := sources.Gzip(t, sources.Noise(n, size))
		charts.Files[fmt.Sprintf("/stable/%d.tgz", n)] = archive
		index += fmt.Sprintf("{version: 1.0.%d, digest: %s, urls: [%d.tgz]},", n, digest, n)
		registry.PushArtifact(t, fmt.Sprint(n), "application/vnd.cncf.flux.content.v1.tar+gzip", sources.TarGz(t, sources.Entry{Name: "a", Text: sources.Noise(n, size)}))
		repo := sources.NewGitRepo(t)
		repo.Write("a", sources.Noise(n, size))
		repo.Push("first")
		repos[n] = sources.ServeGit(t, repo, httptest.NewServer)
	}
	charts.Files["/stable/index.yaml"] = []byte(index + "]}")
	return map[string]func(s *Stores, tenant string, n int) error{
		"git": func(s *Stores, tenant string, n int) error {
			_, err := s.Git.Fetch(t.Context(), git.Source{URL: repos[n].RepoURL(), Tenant: tenant})
			return err
		},
		"charts": func(s *Stores, tenant string, n int) error {
			_, err := s.Charts.Fetch(t.Context(), chart.Source{Repository: charts.URL + "/stable", Name: "web", Version: fmt.Sprintf("1.0.%d", n), Tenant: tenant})
			return err
		},
		"artifacts": func(s *Stores, tenant string, n int) error {
			src := artifact.OCI{URL: registry.Repository() + "/web", Insecure: true}
			src.Tag, src.Tenant = fmt.Sprint(n), tenant
			_, err := s.Artifacts.Fetch(t.Context(), src)
			return err
		},
	}
}

func TestATenantHasItsPartOfTheDisk(t *testing.T) {
	for name, fetch := range noisySources(t, 60*limit.KiB) {
		t.Run(name, func(t *testing.T) {
			const room = 150 * limit.KiB
			dir := t.TempDir()
			stores, later := storesOf(dir, room)
			for _, n := range []int{0, 1} {
				sources.WantError(t, fetch(stores, "acme", n), nil, "")
			}
			refused := "on the operator's disk together, and the limit is 150 KiB"
			sources.WantError(t, fetch(stores, "acme", 2), failure.ErrTooLarge, refused)
			sources.WantError(t, fetch(stores, "acme", 0), nil, "") // It is there.
			sources.WantError(t, fetch(stores, "other", 2), nil, "")
			sources.WantError(t, fetch(stores, "other", 3), nil, "")
			sources.WantError(t, fetch(stores, "acme", 2), nil, "") // Others brought it.

			stores.disk.Limits.Bytes = room / 2
			sources.WantError(t, stores.disk.Check(t.Context(), "acme"), failure.ErrTooLarge, "75 KiB")
			stores.Limit(func(name string) Bounds {
				return Bounds{Kept: map[string]int64{"acme": room / 3, "other": room}[name], Inflated: limit.GiB}
			})
			sources.WantError(t, stores.disk.Check(t.Context(), "acme"), failure.ErrTooLarge, "the limit is 50 KiB: remove what is not needed in Git; unused files are deleted after an hour. An administrator of the cluster allows more with spec.limits.sourceBytes of the Tenant")
			sources.WantError(t, stores.disk.Check(t.Context(), "other"), nil, "")
			sources.WantError(t, stores.disk.Check(t.Context(), budget.OfRepository("acme")), nil, "")
			stores.disk.LimitOf = nil
			runtime.GC()
			later(disk.IdleFor + time.Minute)
			_ = stores.disk.Check(t.Context(), "acme") // Writes down what was used since the last look.
			later(disk.IdleFor + time.Minute)
			sources.WantError(t, stores.disk.Check(t.Context(), "acme"), nil, "") // What it did not use made room.
			for range 2 {
				later(7*24*time.Hour + time.Minute)
				if err := stores.Sweep(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if left, _ := filepath.Glob(filepath.Join(dir, "*", "*")); len(left) > 0 {
				t.Errorf("%v is left", left)
			}
		})
	}
}

// TestStoresShareADisk adds up what a tenant takes in all of them, and what is on its way.
func TestStoresShareADisk(t *testing.T) {
	stores, _ := storesOf(t.TempDir(), 150*limit.KiB)
	fetches := noisySources(t, 60*limit.KiB)
	sources.WantError(t, fetches["git"](stores, "acme", 0), nil, "")
	sources.WantError(t, fetches["charts"](stores, "acme", 0), nil, "")
	sources.WantError(t, fetches["artifacts"](stores, "acme", 0), failure.ErrTooLarge, "150 KiB")

	endless := stores.disk.Meter(t.Context(), "other", io.NopCloser(sources.Zeros{}))
	if n, err := io.Copy(io.Discard, endless); n > limit.MiB || !errors.Is(err, failure.ErrTooLarge) {
		t.Errorf("%d bytes came, and then %v", n, err)
	}
	if err := endless.Close(); err != nil || stores.disk.Used("other") != 0 {
		t.Errorf("what was broken off still counts: %v, %v", stores.disk.Used("other"), err)
	}
}

// TestACommitInUseIsNotRemoved holds a commit of a source that nobody asked for in a long time.
func TestACommitInUseIsNotRemoved(t *testing.T) {
	repo := sources.NewGitRepo(t)
	repo.Write("a", "text")
	repo.Push("first")
	url := sources.ServeGit(t, repo, httptest.NewServer).RepoURL()
	dir := t.TempDir()
	stores, later := storesOf(dir, 1)
	sweep := func() (left int) {
		t.Helper()
		for range 2 {
			runtime.GC()
			later(7*24*time.Hour + time.Hour)
			if err := stores.Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		sources, _ := filepath.Glob(filepath.Join(dir, "git", "*"))
		return len(sources)
	}
	fetch := func() git.Commit {
		t.Helper()
		commit, err := stores.Git.Fetch(t.Context(), git.Source{URL: url})
		if err != nil {
			t.Fatal(err)
		}
		return commit
	}
	held, err := fetch().Root.Sub(".")
	if err != nil {
		t.Fatal(err)
	}
	if sweep() != 1 {
		t.Error("it was removed while it was read")
	}
	if text, err := held.ReadFile("a"); err != nil || string(text) != "text" {
		t.Errorf("got %q, %v", text, err)
	}
	if held = nil; sweep() != 0 {
		t.Error("it is left though nobody reads it")
	}
	fetch()
}
