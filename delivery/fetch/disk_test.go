package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/kubeop/kubeop/delivery/fetch/artifact"
	"github.com/kubeop/kubeop/delivery/fetch/disk"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/limit"
	"github.com/kubeop/kubeop/delivery/fetch/pool"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

// noise is text that no compression makes smaller.
func noise(n, size int) string {
	text := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{byte(n)}).Read(text)
	return string(text)
}

// storesOf returns stores in which a tenant may take that many bytes, and sets their clock forward.
func storesOf(dir string, limit int64) (stores *Stores, later func(time.Duration)) {
	now := time.Now()
	stores = NewStores(dir, loopback, func() time.Time { return now })
	stores.disk.Limits.Bytes = limit
	return stores, func(d time.Duration) { now = now.Add(d) }
}

// noisySources serves sources of that many bytes, each number another, and returns how each store fetches one.
func noisySources(t *testing.T, size int) map[string]func(s *Stores, tenant string, n int) error {
	charts, registry := serveHelm(t), sources.ServeOCI(t, httptest.NewServer)
	index, git := "entries: {web: [", map[int]*sources.GitServer{}
	for n := range 4 {
		archive, digest := tgz(t, noise(n, size))
		charts.files[fmt.Sprintf("/stable/%d.tgz", n)] = archive
		index += fmt.Sprintf("{version: 1.0.%d, digest: %s, urls: [%d.tgz]},", n, digest, n)
		registry.PushArtifact(t, fmt.Sprint(n), "application/vnd.cncf.flux.content.v1.tar+gzip", sources.TarGz(t, sources.Entry{Name: "a", Text: noise(n, size)}))
		repo := sources.NewGitRepo(t)
		repo.Write("a", noise(n, size))
		repo.Push("first")
		git[n] = sources.ServeGit(t, repo, httptest.NewServer)
	}
	charts.files["/stable/index.yaml"] = []byte(index + "]}")
	return map[string]func(s *Stores, tenant string, n int) error{
		"git": func(s *Stores, tenant string, n int) error {
			_, err := s.Git.Fetch(t.Context(), Git{URL: git[n].RepoURL(), Tenant: tenant})
			return err
		},
		"charts": func(s *Stores, tenant string, n int) error {
			_, err := s.Charts.Fetch(t.Context(), Chart{Repository: charts.URL + "/stable", Name: "web", Version: fmt.Sprintf("1.0.%d", n), Tenant: tenant})
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
			sources.WantError(t, stores.disk.Check(t.Context(), "acme"), failure.ErrTooLarge, "the limit is 50 KiB: remove what is not needed; what nobody uses goes after an hour. An administrator of the cluster allows more with spec.limits.sourceBytes of the Tenant")
			sources.WantError(t, stores.disk.Check(t.Context(), "other"), nil, "")
			sources.WantError(t, stores.disk.Check(t.Context(), pool.RepositoryTenant("acme")), nil, "")
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

	endless := stores.disk.Room(t.Context(), "other", io.NopCloser(sources.Zeros{}))
	if n, err := io.Copy(io.Discard, endless); n > limit.MiB || !errors.Is(err, failure.ErrTooLarge) {
		t.Errorf("%d bytes came, and then %v", n, err)
	}
	if err := endless.Close(); err != nil || stores.disk.Used("other") != 0 {
		t.Errorf("what was broken off still counts: %v, %v", stores.disk.Used("other"), err)
	}
}

// TestWhatIsReadIsNotRemoved holds a commit of a source that nobody asked for in a long time.
func TestWhatIsReadIsNotRemoved(t *testing.T) {
	repo := sources.NewGitRepo(t)
	repo.Write("a", "text")
	repo.Push("first")
	url := sources.ServeGit(t, repo, httptest.NewServer).RepoURL()
	stores, later := storesOf(t.TempDir(), 1)
	sweep := func() (left int) {
		t.Helper()
		for range 2 {
			runtime.GC()
			later(7*24*time.Hour + time.Hour)
			if err := stores.Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		sources, _ := filepath.Glob(filepath.Join(stores.Git.dir, "*"))
		return len(sources)
	}
	held, err := fetchOK(t, stores.Git, Git{URL: url}).Root.Sub(".")
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
	fetchOK(t, stores.Git, Git{URL: url})
}

// TestAStoreIsStartedAfreshBeforeItIsLarge pushes commits that have nothing in common.
func TestAStoreIsStartedAfreshBeforeItIsLarge(t *testing.T) {
	repo := sources.NewGitRepo(t)
	repo.Git("commit", "--quiet", "--allow-empty", "--message", "first")
	server := sources.ServeGit(t, repo, httptest.NewServer)
	store := NewGitStore(t.TempDir(), loopback)
	store.limits.pack = 100 * limit.KiB // seven of them are the bound
	for n := range 20 {
		repo.Write("a", noise(n, 90*limit.KiB))
		repo.Push("more")
		last := fetchOK(t, store, Git{URL: server.RepoURL()})
		var size int64
		for _, g := range last.from.generations() {
			size += g.size()
		}
		if size > 7*store.limits.pack {
			t.Fatalf("after %d pushes it takes %d KiB", n+1, size/limit.KiB)
		}
	}
}

// sweepStore sweeps one store, at that time.
func sweepStore(ctx context.Context, store disk.Store, now time.Time) error {
	return disk.New(func() time.Time { return now }, store).Sweep(ctx)
}
