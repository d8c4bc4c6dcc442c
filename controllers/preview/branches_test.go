package preview

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/git"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

func namesOf(answer Answer) (names []string) {
	for _, head := range answer.Heads {
		text := head.Branch
		if head.Commit.Root == nil {
			text += " not fetched"
		}
		names = append(names, text)
	}
	return names
}

func TestTheBranchesThatMatchAreFetchedOnce(t *testing.T) {
	repo := sources.NewGitRepo(t)
	repo.Write("a", "main")
	main := repo.Push("first")
	for _, branch := range []string{"feature/a", "feature/b", "other"} {
		repo.Git("checkout", "--quiet", "-b", branch, "main")
		repo.Write("a", branch)
		repo.Push(branch)
	}
	repo.Git("branch", "feature/empty", "main")
	repo.PushAll()
	server := sources.ServeGit(t, repo, httptest.NewServer)
	store, src := git.NewStore(t.TempDir(), loopback), git.Source{URL: server.RepoURL()}
	w := wanted{Patterns: []string{"feature/*"}, First: map[string]bool{"feature/b": true}, Except: main}

	answer, err := fetchBranches(t.Context(), store, src, w, Answer{Version: "1"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"feature/b", "feature/a", "feature/empty not fetched"}, namesOf(answer)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if text, err := answer.Heads[1].Commit.Root.ReadFile("a"); err != nil || string(text) != "feature/a" || answer.Heads[1].Commit.Time.IsZero() || answer.Version != "1" {
		t.Errorf("feature/a has %q, %v, of %s", text, err, answer.Heads[1].Commit.Time)
	}
	server.Seen()
	again, err := fetchBranches(t.Context(), store, src, w, answer)
	if diff := cmp.Diff(namesOf(answer), namesOf(again)); err != nil || diff != "" {
		t.Errorf("again, %v:\n%s", err, diff)
	}
	if seen := server.Seen(); !cmp.Equal(seen, []string{"GET /app.git/info/refs"}) {
		t.Errorf("unchanged branches cost %v", seen)
	}
	repo.Git("push", "--quiet", "origin", ":feature/b")
	if gone, err := fetchBranches(t.Context(), store, src, w, again); err != nil || !cmp.Equal(namesOf(gone), []string{"feature/a", "feature/empty not fetched"}) {
		t.Errorf("after a branch was deleted: %v, %v", namesOf(gone), err)
	}
}

func TestOnlyAFailedListingIsAnError(t *testing.T) {
	repo := sources.NewGitRepo(t)
	repo.Push("first")
	repo.Git("checkout", "--quiet", "-b", "feature/a")
	repo.Push("second")
	server := sources.ServeGit(t, repo, httptest.NewServer)
	store, src := git.NewStore(t.TempDir(), loopback), git.Source{URL: server.RepoURL()}
	server.Set(func() {
		server.Wrap = func(w http.ResponseWriter, req *http.Request, _ http.Handler) bool {
			if req.Method == http.MethodPost {
				http.Error(w, "no", http.StatusForbidden)
			}
			return req.Method == http.MethodPost
		}
	})
	answer, err := fetchBranches(t.Context(), store, src, wanted{Patterns: []string{"*/*"}}, Answer{})
	if err != nil || len(answer.Heads) != 1 || answer.Heads[0].Err == nil {
		t.Errorf("a commit that cannot be fetched: %v, %v", answer, err)
	}
	server.Set(func() { server.Allow = func(*http.Request) bool { return false } })
	if answer, err := fetchBranches(t.Context(), store, src, wanted{Patterns: []string{"*/*"}}, answer); err == nil || errors.Is(err, t.Context().Err()) {
		t.Errorf("a listing that fails: %v, %v", answer, err)
	}
}

func TestOnlySomeBranchesAreFetched(t *testing.T) {
	repo := sources.NewGitRepo(t)
	main := repo.Push("first")
	repo.Git("checkout", "--quiet", "-b", "feature/00")
	hash := repo.Push("second")
	for i := 1; i < maxBranches+2; i++ {
		repo.Git("branch", fmt.Sprintf("feature/%02d", i))
	}
	repo.Git("branch", "feature/at-main", main)
	repo.PushAll()
	server := sources.ServeGit(t, repo, httptest.NewServer)
	store, src := git.NewStore(t.TempDir(), loopback), git.Source{URL: server.RepoURL()}
	one, err := fetchBranches(t.Context(), store, src, wanted{Patterns: []string{"feature/00"}}, Answer{})
	if err != nil || len(one.Heads) != 1 || one.Heads[0].Hash != hash || one.Heads[0].Err != nil {
		t.Fatalf("got %+v, %v", one, err)
	}
	before, last := Answer{}, fmt.Sprintf("feature/%02d", maxBranches+1)
	for i := range maxBranches + 1 {
		before.Heads = append(before.Heads, head{Branch: fmt.Sprintf("feature/%02d", i), Hash: hash, Commit: one.Heads[0].Commit})
	}
	server.Seen()
	answer, err := fetchBranches(t.Context(), store, src, wanted{Patterns: []string{"feature/*"}, First: map[string]bool{last: true}, Except: main}, before)
	if err != nil || len(answer.Heads) != maxBranches+3 || answer.Heads[0].Branch != last {
		t.Fatalf("%d heads, %v", len(answer.Heads), err)
	}
	if fetched := len(server.Seen()) - 1; fetched > 2 {
		t.Errorf("%d requests, want at most those for the branch that was not fetched before", fetched)
	}
	for i, h := range answer.Heads[:maxBranches] {
		if h.Err != nil || h.Commit.Root == nil {
			t.Errorf("%d, %s: %v", i, h.Branch, h.Err)
		}
	}
	for _, h := range answer.Heads[maxBranches : maxBranches+2] {
		if !errors.Is(h.Err, failure.ErrTooLarge) || !strings.Contains(h.Err.Error(), "more than 50 branches match") || h.Commit.Root != nil {
			t.Errorf("%s, which is one too many: %v", h.Branch, h.Err)
		}
	}
	if atMain := answer.Heads[maxBranches+2]; atMain.Branch != "feature/at-main" || atMain.Err != nil {
		t.Errorf("a branch at the commit that is not fetched: %s, %v", atMain.Branch, atMain.Err)
	}
}

func TestNoHalfAnswerIsKept(t *testing.T) {
	repo := sources.NewGitRepo(t)
	repo.Push("first")
	for _, branch := range []string{"feature/a", "feature/b"} {
		repo.Git("checkout", "--quiet", "-b", branch)
		repo.Write("a", branch)
		repo.Push(branch)
	}
	server := sources.ServeGit(t, repo, httptest.NewServer)
	ctx, stop := context.WithCancelCause(t.Context())
	stopped, posts := errors.New("the operator stops"), 0
	server.Set(func() {
		server.Wrap = func(_ http.ResponseWriter, req *http.Request, _ http.Handler) bool {
			if req.Method == http.MethodPost {
				posts++
			}
			if posts == 2 {
				stop(stopped)
			}
			return false
		}
	})
	store, src := git.NewStore(t.TempDir(), loopback), git.Source{URL: server.RepoURL()}
	if answer, err := fetchBranches(ctx, store, src, wanted{Patterns: []string{"feature/*"}}, Answer{Version: "1"}); !errors.Is(err, stopped) || answer.Heads != nil {
		t.Errorf("got %d heads, %v", len(answer.Heads), err)
	}
}

var loopback = &transport.Network{Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
