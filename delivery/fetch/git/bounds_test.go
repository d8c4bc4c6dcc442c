package git

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/kubeop/kubeop/delivery/fetch/disk"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/folder"
	"github.com/kubeop/kubeop/delivery/fetch/limit"
	"github.com/kubeop/kubeop/delivery/fetch/pack"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

// loopback is the Network of tests; their servers run on this machine.
var loopback = &transport.Network{Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}}

// TestUnusedRepositoriesAreForgotten without a sweep.
func TestUnusedRepositoriesAreForgotten(t *testing.T) {
	s := NewStore(t.TempDir(), loopback)
	held := s.repository(Source{URL: "https://git.example.com/held"})
	for i := range 3 * maxUnheld {
		s.repository(Source{URL: fmt.Sprintf("https://git.example.com/%d", i)})
		if i%maxUnheld == 0 {
			runtime.GC()
		}
	}
	if n := len(s.repositories); n > 2*maxUnheld {
		t.Errorf("%d are remembered", n)
	}
	if s.repository(Source{URL: "https://git.example.com/held"}) != held {
		t.Error("one that is held is forgotten")
	}
}

// TestANewStoreIsStartedBeforeTheOldOneIsLarge pushes unrelated commits.
func TestANewStoreIsStartedBeforeTheOldOneIsLarge(t *testing.T) {
	repo := sources.NewGitRepo(t)
	repo.Git("commit", "--quiet", "--allow-empty", "--message", "first")
	server := sources.ServeGit(t, repo, httptest.NewServer)
	store := NewStore(t.TempDir(), loopback)
	store.limits.pack = 100 * limit.KiB // the bound is seven times this
	for n := range 20 {
		repo.Write("a", sources.Noise(n, 90*limit.KiB))
		repo.Push("more")
		last := fetchOK(t, store, Source{URL: server.RepoURL()})
		var size int64
		for _, g := range last.from.generations() {
			size += g.size()
		}
		if size > 7*store.limits.pack {
			t.Fatalf("after %d pushes it takes %d KiB", n+1, size/limit.KiB)
		}
	}
}

// TestSourcesThatFailAreForgotten requests sources that never existed.
func TestSourcesThatFailAreForgotten(t *testing.T) {
	server := httptest.NewServer(nil)
	t.Cleanup(server.Close)
	store, now := NewStore(t.TempDir(), loopback), time.Now()
	shared := disk.New(func() time.Time { return now }, store)
	store.Disk = shared
	for n := range 3 {
		url := fmt.Sprintf("%s/%d", server.URL, n)
		_, err := store.Fetch(t.Context(), Source{URL: url, Tenant: "acme"})
		sources.WantError(t, err, failure.ErrNotFound, "")
		_, err = store.Folder(Source{URL: url + "/b"}, strings.Repeat("0", 40))
		sources.WantError(t, err, failure.ErrNotFound, "")
	}
	for range 3 {
		runtime.GC()
		now = now.Add(2 * disk.IdleFor)
		if err := shared.Sweep(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if len(store.repositories)+store.Used.Len() > 0 {
		t.Errorf("%v and %d uses are left", store.repositories, store.Used.Len())
	}
}

// TestAStoreIsClearedOnlyIfNobodyUsesIt: a commit that is still being read counts as a use.
func TestAStoreIsClearedOnlyIfNobodyUsesIt(t *testing.T) {
	repo := sources.NewGitRepo(t)
	repo.Write("a", "first")
	repo.Push("first")
	src := Source{URL: sources.ServeGit(t, repo, httptest.NewServer).RepoURL()}
	store, now := NewStore(t.TempDir(), loopback), time.Now()
	cleared := func(after time.Duration) bool {
		t.Helper()
		now = now.Add(after)
		kept, err := store.Kept()
		for _, path := range append(kept, t.TempDir()) { // The last one is of another store.
			err = errors.Join(err, store.Clear(t.Context(), path, now, disk.IdleFor))
		}
		left, failed := store.Kept()
		if err = errors.Join(err, failed); err != nil {
			t.Fatal(err)
		}
		return len(left) == 0
	}
	func() {
		held := fetchOK(t, store, src)
		if cleared(0) || cleared(disk.IdleFor+time.Hour) || text(t, held, "a") != "first" {
			t.Error("it is cleared although its commit is in use")
		}
	}()
	for range 100 {
		runtime.GC()
	}
	if cleared(disk.IdleFor - time.Hour) {
		t.Error("it is cleared too early after its last use")
	}
	if !cleared(time.Hour) || len(store.repositories) > 0 {
		t.Errorf("it is not cleared; %d are remembered", len(store.repositories))
	}
	if text(t, fetchOK(t, store, src), "a") != "first" {
		t.Error("it is not fetched again")
	}
}

// TestACommitOverTheLimitIsNotRead into memory, and not fetched again in a new store.
func TestACommitOverTheLimitIsNotRead(t *testing.T) {
	repo := sources.NewGitRepo(t)
	repo.Git("commit", "--quiet", "--allow-empty", "--message", strings.Repeat("x", 2000))
	repo.PushAll()
	server := sources.ServeGit(t, repo, httptest.NewServer)
	store := NewStore(t.TempDir(), loopback)
	store.limits.File = 1000
	_, err := store.Fetch(t.Context(), Source{URL: server.RepoURL()})
	sources.WantError(t, err, failure.ErrTooLarge, "")
	if uploads := strings.Count(strings.Join(server.Seen(), "\n"), "POST"); uploads != 1 {
		t.Errorf("it is fetched %d times", uploads)
	}
}

// TestTheLimitsOfANewStoreAreTheDocumentedOnes: the other tests lower them.
func TestTheLimitsOfANewStoreAreTheDocumentedOnes(t *testing.T) {
	want := limits{
		refs: 32 << 20, pack: 256 << 20, history: 64 << 20, generations: 10_000, packs: 50,
		contents: pack.Limits{Objects: 250_000, Inflated: 1 << 30, Object: 64 << 20, Oversized: 512 << 20, Chain: 64 << 20, Base: 8 << 20, Bases: 32 << 20},
		Limits:   folder.Limits{File: 5 << 20, Files: 50_000, Depth: 32},
		Timeouts: transport.Timeouts{Whole: time.Hour, Answer: 15 * time.Second, Stall: 30 * time.Second},
	}
	if got := NewStore(t.TempDir(), loopback).limits; got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}
