package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/kubeop/kubeop/delivery/apart"
	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/delivery/fair"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/limit"
	"github.com/kubeop/kubeop/delivery/fetch/pack"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

// elsewhere reads packs as another process does, and counts them. err replaces its result.
type elsewhere struct {
	read atomic.Int64
	err  error
}

func (e *elsewhere) run(ctx context.Context, c apart.Call) ([]byte, error) {
	e.read.Add(1)
	if e.err != nil {
		return nil, e.err
	}
	handle := c.NewHandler()
	answer, err := c.Function(c.Input[0], func(question []byte) ([]byte, error) {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return handle(ctx, question)
	}, func(string) {})
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return answer, err
}

// TestALargePackIsReadInAnotherProcess, and a small one in this process. A pack that builds on the one before is complete. Git itself
// checks the packs.
func TestALargePackIsReadInAnotherProcess(t *testing.T) {
	repo, process := sources.NewGitRepo(t), &elsewhere{}
	store := NewStore(t.TempDir(), loopback)
	store.unpacking.Apart.Run = process.run
	server := sources.ServeGit(t, repo, httptest.NewServer)
	large := noiseLines(80_000)
	push := func(want int64, files map[string]string) {
		t.Helper()
		for path, text := range files {
			repo.Write(path, text)
		}
		repo.Push("next")
		commit := fetchOK(t, store, Source{URL: server.RepoURL()})
		for path, want := range files {
			if text(t, commit, path) != want {
				t.Errorf("%s is not what was pushed", path)
			}
		}
		if n := process.read.Swap(0); n != want {
			t.Errorf("%d packs were read elsewhere, want %d", n, want)
		}
	}
	push(1, map[string]string{"large.yaml": large, "small.yaml": "a: 1"})
	push(0, map[string]string{"small.yaml": "a: 2"})
	push(1, map[string]string{"large.yaml": strings.Replace(large, "line 700:", "changed:", 1)}) // It builds on the first.
	push(0, map[string]string{"small.yaml": "a: 3"})
	packs, err := filepath.Glob(filepath.Join(store.dir, "*", "*", packFolder, "*.idx"))
	if err != nil || len(packs) != 4 {
		t.Fatalf("the packs are %v, %v", packs, err)
	}
	repo.Git(append([]string{"verify-pack"}, packs...)...)
}

// overLimit is the error of a process that exceeded a limit.
type overLimit struct{}

func (overLimit) Error() string {
	return "the commit's pack takes more than the limit of memory, 256 MiB"
}
func (overLimit) OverLimit() {}

// TestAPackOverALimitIsNotFetchedAgain until there is another commit, also after a restart. A crash for another reason does not count.
func TestAPackOverALimitIsNotFetchedAgain(t *testing.T) {
	repo, process, dir := sources.NewGitRepo(t), &elsewhere{err: errors.New("somebody killed it")}, t.TempDir()
	server := sources.ServeGit(t, repo, httptest.NewServer)
	fetch := func(requests int, kind error, want string) {
		t.Helper()
		store := NewStore(dir, loopback)
		store.unpacking.Apart.Run = process.run
		_, err := store.Fetch(t.Context(), Source{URL: server.RepoURL()})
		sources.WantError(t, err, kind, want)
		if got := len(server.Seen()); got != requests {
			t.Errorf("it took %d requests, want %d", got, requests)
		}
	}
	repo.Write("large.yaml", noiseLines(40_000))
	repo.Push("large")
	fetch(2, pack.ErrUnfit, "somebody killed it")
	process.err = overLimit{}
	fetch(2, failure.ErrTooLarge, "the commit's pack takes more than the limit of memory, 256 MiB: take large files out of Git")
	fetch(1, failure.ErrTooLarge, "256 MiB: take large files out of Git; this commit is not fetched again")
	process.err = nil
	fetch(1, failure.ErrTooLarge, "this commit is not fetched again")
	repo.Push("again")
	fetch(2, nil, "")
}

// smallRepo serves a repository of one small file.
func smallRepo(t *testing.T) *sources.GitServer {
	t.Helper()
	repo := sources.NewGitRepo(t)
	repo.Write("web.yaml", "a: 1\n")
	repo.Push("small")
	return sources.ServeGit(t, repo, httptest.NewServer)
}

// Apps and Repositories of three tenants fetch small packs that inflate to 480 MiB, again and again. Meanwhile another tenant fetches a
// small pack and one of 2 MiB.
func TestPacksThatInflateDoNotDelayOtherTenants(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	hostile, small, fair2MiB := inflating(t, 16, 30*limit.MiB), smallRepo(t), inflating(t, 1, 2*limit.MiB)
	store, process := NewStore(t.TempDir(), loopback), &elsewhere{}
	store.unpacking.Apart = apart.Runner{
		Run: process.run, Turn: fair.NewSlices("packs of a test", 2, 100*time.Millisecond, nil, clock.RealClock{}).Run,
	}
	fetch := func(ctx context.Context, server *sources.GitServer, whose string, n int) (time.Duration, error) {
		began := time.Now() // Each has its own store, like different repositories.
		_, err := store.Fetch(ctx, Source{URL: server.RepoURL(), Tenant: whose, Auth: transport.Auth{Username: fmt.Sprint(whose, n), Password: "x"}})
		return time.Since(began), err
	}
	alone, err := fetch(t.Context(), hostile, "alone", 0)
	if err != nil {
		t.Fatal(err)
	}

	ctx, end := context.WithCancel(t.Context())
	var attack sync.WaitGroup
	var unpacked atomic.Int64
	for _, tenant := range []string{"one", "two", "three"} {
		for _, whose := range []string{tenant, budget.OfRepository(tenant)} {
			attack.Go(func() {
				for n := 0; ctx.Err() == nil; n++ {
					if _, err := fetch(ctx, hostile, whose, n); err == nil {
						unpacked.Add(1)
					} else if ctx.Err() == nil {
						t.Errorf("the pack of %s: %v", whose, err)
					}
				}
			})
		}
	}
	for began := time.Now(); process.read.Load() < 3; time.Sleep(time.Millisecond) {
		if time.Since(began) > time.Minute {
			t.Fatal("no packs are unpacked")
		}
	}
	for what, server := range map[string]*sources.GitServer{"a small one": small, "one of 2 MiB": fair2MiB} {
		var took []time.Duration
		for n := range 10 {
			for _, whose := range []string{"few", budget.OfRepository("few")} {
				d, err := fetch(ctx, server, whose, n)
				if err != nil {
					t.Fatal(err)
				}
				took = append(took, d)
			}
		}
		slices.Sort(took)
		t.Logf("a hostile pack alone took %s; during the attack, %d of them, %s took %s at the median, %s at most",
			alone, unpacked.Load(), what, took[len(took)/2], took[len(took)-1])
		if median := took[len(took)/2]; median > time.Second {
			t.Errorf("another tenant's fetch of %s took %s at the median", what, median)
		}
	}
	end()
	attack.Wait()
}

// inflating serves a small repository with that many files of that many bytes each.
func inflating(t *testing.T, files int, size int64) *sources.GitServer {
	t.Helper()
	repo := sources.NewGitRepo(t)
	fastImport(repo, func(file func(string, int64, io.Reader)) {
		for i := range files {
			text := fmt.Sprint(i, "\n")
			file(fmt.Sprintf("f%d", i), size, io.MultiReader(strings.NewReader(text), sources.Zeros{}))
		}
	})
	repo.Run(filepath.Join(repo.Root, "app.git"), "config", "core.bigFileThreshold", "1m") // So that git looks for no deltas.
	return sources.ServeGit(t, repo, httptest.NewServer)
}
