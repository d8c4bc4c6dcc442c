package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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
	// asked, if set, is called before each answer to a question.
	asked func()
}

func (e *elsewhere) run(ctx context.Context, c apart.Call) ([]byte, error) {
	e.read.Add(1)
	if e.err != nil {
		return nil, e.err
	}
	handle := c.NewHandler()
	answer, err := c.Function(c.Input[0], func(question []byte) ([]byte, error) {
		if e.asked != nil {
			e.asked()
		}
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

// TestPacksThatInflateDoNotDelayOtherTenants: Apps and Repositories of three tenants fetch packs that never end to inflate. Meanwhile another
// tenant fetches a small pack, and one of 2 MiB.
func TestPacksThatInflateDoNotDelayOtherTenants(t *testing.T) {
	small, large := smallRepo(t), inflating(t, 1, 2*limit.MiB)
	store, process := NewStore(t.TempDir(), loopback), &elsewhere{}
	turns := fair.NewSlices("packs of a test", 2, 20*time.Millisecond, nil, clock.RealClock{})
	var mu sync.Mutex
	waited := map[string]int{}
	endless := func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }
	store.unpacking.Apart = apart.Runner{Run: process.run, Turn: func(ctx context.Context, tenant string, work func(context.Context) error) error {
		mu.Lock()
		waited[tenant]++
		mu.Unlock()
		if budget.NameOf(tenant) != "few" {
			work = endless
		}
		return turns.Run(ctx, tenant, work)
	}}
	fetch := func(ctx context.Context, server *sources.GitServer, whose string, n int) error {
		// Each has its own store, like different repositories.
		_, err := store.Fetch(ctx, Source{URL: server.RepoURL(), Tenant: whose, Auth: transport.Auth{Username: fmt.Sprint(whose, n), Password: "x"}})
		return err
	}
	errEnd := errors.New("the end of the test")
	ctx, end := context.WithCancelCause(t.Context())
	var attack sync.WaitGroup
	want := map[string]int{"few": 2, budget.OfRepository("few"): 2}
	for _, tenant := range []string{"one", "two", "three"} {
		for _, whose := range []string{tenant, budget.OfRepository(tenant)} {
			want[whose] = 1
			attack.Go(func() {
				if err := fetch(ctx, large, whose, 0); !errors.Is(err, errEnd) {
					t.Errorf("the pack of %s: %v", whose, err)
				}
			})
		}
	}
	for waiting, began := 0, time.Now(); waiting < 6; time.Sleep(time.Millisecond) {
		if time.Since(began) > time.Minute {
			t.Fatalf("%d packs wait, want 6", waiting)
		}
		mu.Lock()
		waiting = len(waited)
		mu.Unlock()
	}
	for n := range 2 {
		for _, whose := range []string{"few", budget.OfRepository("few")} {
			for what, server := range map[string]*sources.GitServer{"a small pack": small, "a pack of 2 MiB": large} {
				if err := fetch(ctx, server, whose, n); err != nil {
					t.Errorf("%s of %s: %v", what, whose, err)
				}
			}
		}
	}
	end(errEnd)
	attack.Wait()
	if diff := cmp.Diff(want, waited); diff != "" { // Small packs do not wait.
		t.Errorf("packs that waited for a turn, by tenant (-want +got):\n%s", diff)
	}
}

// TestAPackIsReadAgainAfterItsTurnWasTakenAway, from its beginning.
func TestAPackIsReadAgainAfterItsTurnWasTakenAway(t *testing.T) {
	repo, process := sources.NewGitRepo(t), &elsewhere{}
	large := noiseLines(80_000)
	repo.Write("large.yaml", large)
	repo.Push("large")
	server := sources.ServeGit(t, repo, httptest.NewServer)
	store := NewStore(t.TempDir(), loopback)
	store.unpacking.Apart = apart.Runner{Run: process.run, Turn: func(ctx context.Context, _ string, work func(context.Context) error) error {
		for questions := range 3 {
			turn, end := context.WithCancelCause(ctx)
			process.asked = func() {
				if questions--; questions < 0 {
					end(fair.ErrPreempted)
				}
			}
			if err := work(turn); !errors.Is(err, fair.ErrPreempted) {
				t.Errorf("a turn that was taken away ends with %v", err)
			}
		}
		process.asked = nil
		return work(ctx)
	}}
	if commit := fetchOK(t, store, Source{URL: server.RepoURL()}); text(t, commit, "large.yaml") != large {
		t.Error("the file is not what was pushed")
	}
	if n := process.read.Load(); n != 4 {
		t.Errorf("it was read %d times, want 4", n)
	}
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
