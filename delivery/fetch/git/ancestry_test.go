package git

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/kubeop/kubeop/delivery/fetch/disk"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/limit"
	"github.com/kubeop/kubeop/delivery/fetch/signature"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

// commitMany makes n commits, each of which changes a file, and pushes them; it returns the last one's hash.
func commitMany(r *sources.GitRepo, n int) string {
	r.T.Helper()
	var script strings.Builder
	for i := range n {
		fmt.Fprintf(&script, "commit refs/heads/main\ncommitter t <t@example.com> 1700000000 +0000\ndata 0\n")
		if i == 0 {
			fmt.Fprintf(&script, "from %s\n", r.Git("rev-parse", "HEAD"))
		}
		fmt.Fprintf(&script, "M 644 inline f%d\ndata 4\n%04d\n", i%10, i)
	}
	file := filepath.Join(r.T.TempDir(), "script")
	if err := os.WriteFile(file, []byte(script.String()), 0o600); err != nil {
		r.T.Fatal(err)
	}
	r.Run(r.Work, "-c", "alias.import=!git fast-import --quiet --force < "+file, "import")
	r.Git("reset", "--quiet", "--hard", "main")
	r.PushAll()
	return r.Git("rev-parse", "HEAD")
}

// orphan gives main a history of its own.
func orphan(r *sources.GitRepo, content string) string {
	r.T.Helper()
	r.Git("checkout", "--quiet", "--orphan", "other")
	r.Write("a", content)
	r.Git("add", "--all")
	r.Git("commit", "--quiet", "--message", content)
	r.Git("branch", "--force", "main", "other")
	r.Git("checkout", "--quiet", "main")
	r.Git("branch", "-D", "other")
	r.PushAll()
	return r.Git("rev-parse", "HEAD")
}

// config configures the server's repository.
func config(r *sources.GitRepo, args ...string) {
	r.T.Helper()
	r.Run(filepath.Join(r.Root, r.Name), append([]string{"config"}, args...)...)
}

func TestACommitDescendsFromAnotherByItsParents(t *testing.T) {
	cases := map[string]struct {
		// push changes the history after the first fetch.
		push func(*sources.GitRepo)
		want bool
		// transfers are how often commits between the two are fetched.
		transfers int
	}{
		"nothing new":    {func(*sources.GitRepo) {}, true, 0},
		"the next one":   {func(r *sources.GitRepo) { r.Push("next") }, true, 0},
		"a few later":    {func(r *sources.GitRepo) { r.Push("2"); r.Push("3"); r.Push("4") }, true, 1},
		"1,000 at once":  {func(r *sources.GitRepo) { commitMany(r, 1000) }, true, 1},
		"merged at once": {func(r *sources.GitRepo) { branchAndMerge(r, 1, "main", "side") }, true, 0},
		"merged later":   {func(r *sources.GitRepo) { branchAndMerge(r, 3, "main", "side"); r.Push("and on") }, true, 1},
		"merged into another": {func(r *sources.GitRepo) {
			branchAndMerge(r, 2, "side", "main")
			r.Git("branch", "--force", "main", "side")
			r.Git("checkout", "--quiet", "main")
			r.Push("on from the merge")
		}, true, 1},
		"pushed back": {func(r *sources.GitRepo) { r.Git("reset", "--quiet", "--hard", "HEAD~2"); r.PushAll() }, false, 1},
		"amended": {func(r *sources.GitRepo) {
			r.Write("a", "amended")
			r.Git("commit", "--quiet", "--all", "--amend", "--message", "x")
			r.PushAll()
		}, false, 1},
		"rebased":      {func(r *sources.GitRepo) { r.Git("reset", "--quiet", "--hard", "HEAD~1"); r.Push("x"); r.Push("y") }, false, 1},
		"foreign":      {func(r *sources.GitRepo) { orphan(r, "foreign") }, false, 1},
		"long foreign": {func(r *sources.GitRepo) { orphan(r, "foreign"); commitMany(r, 300) }, false, 1},
	}
	servers := map[string]func(*sources.GitRepo){
		"filter":    func(r *sources.GitRepo) { config(r, "uploadpack.allowFilter", "true") },
		"no filter": func(r *sources.GitRepo) { config(r, "uploadpack.allowFilter", "false") },
		"filter refused": func(r *sources.GitRepo) {
			config(r, "uploadpack.allowFilter", "true")
			config(r, "uploadpackfilter.allow", "false")
		},
	}
	five := sources.NewGitRepo(t)
	for i := range 5 {
		five.Write("a", fmt.Sprint(i))
		five.Push(fmt.Sprint(i))
	}
	for name, tc := range cases {
		for offers, configure := range servers {
			t.Run(name+"/"+offers, func(t *testing.T) {
				t.Parallel()
				repo := five.Copy(t)
				configure(repo)
				server := sources.ServeGit(t, repo, httptest.NewServer)
				dir := t.TempDir()
				store := NewStore(dir, loopback)
				first := fetchOK(t, store, Source{URL: server.RepoURL()})
				tc.push(repo)
				server.Seen()
				plain := fetchOK(t, store, Source{URL: server.RepoURL()})
				usual := len(server.Seen())
				got := fetchOK(t, store, Source{URL: server.RepoURL(), After: first.Hash})
				if got.Hash != plain.Hash || got.Ancestry.Of != first.Hash || got.Ancestry.Descends != tc.want || got.Ancestry.Beyond != "" {
					t.Errorf("%s after %s: %+v", got.Hash, first.Hash, got.Ancestry)
				}
				uploads := strings.Count(strings.Join(server.Seen(), "\n"), "POST")
				if refused := offers == "filter refused" && tc.transfers > 0; uploads != tc.transfers && (!refused || uploads != 2*tc.transfers) {
					t.Errorf("%d transfers (the fetch itself: %d requests), want %d", uploads, usual, tc.transfers)
				}
				// A second fetch lists only the refs.
				if again := fetchOK(t, store, Source{URL: server.RepoURL(), After: first.Hash}); again.Ancestry != got.Ancestry || len(server.Seen()) != 1 {
					t.Errorf("asked again: %+v", again.Ancestry)
				}
				if left, _ := filepath.Glob(filepath.Join(dir, "*", disk.Temporary)); len(left) != 0 {
					t.Errorf("left behind: %v", left)
				}
				for _, path := range openBelow(dir) {
					if strings.Contains(path, "/"+strings.TrimSuffix(disk.Temporary, "*")) {
						t.Errorf("%s is still open", path)
					}
				}
				if earlier, err := got.Earlier(first.Revision); err != nil || text(t, earlier, "a") != "4" || earlier.Revision != first.Revision {
					t.Errorf("the earlier commit: %s, %v", earlier.Revision, err)
				}
			})
		}
	}
}

// branchAndMerge makes a branch of n commits, n commits on the other branch, and merges from into into.
func branchAndMerge(r *sources.GitRepo, n int, into, from string) {
	r.T.Helper()
	r.Git("checkout", "--quiet", "-b", "side")
	for i := range n {
		r.Write(fmt.Sprint("side", i), "x")
		r.Push("side")
	}
	r.Git("checkout", "--quiet", "main")
	if n > 1 {
		r.Write("main", "x")
		r.Push("main")
	}
	r.Git("checkout", "--quiet", into)
	r.Git("merge", "--quiet", "--no-ff", "--message", "merge", from)
	r.PushAll()
}

// TestAncestryIsReadWithoutFiles if the server supports leaving them out.
func TestAncestryIsReadWithoutFiles(t *testing.T) {
	for filter, most := range map[string]int64{"true": 50 * limit.KiB, "false": 20 * limit.MiB} {
		repo := sources.NewGitRepo(t)
		config(repo, "uploadpack.allowFilter", filter)
		first := repo.Push("first")
		for i := range 3 {
			repo.Write("large", sources.Noise(i, limit.MiB))
			repo.Push(fmt.Sprint(i))
		}
		server, wire := counted(t, repo)
		store := NewStore(t.TempDir(), loopback)
		fetchOK(t, store, Source{URL: server.RepoURL()})
		wire.Store(0)
		if commit := fetchOK(t, store, Source{URL: server.RepoURL(), After: first}); !commit.Ancestry.Descends || wire.Load() > most {
			t.Errorf("filter %s: %+v after %d bytes", filter, commit.Ancestry, wire.Load())
		}
	}
}

// TestAncestryIsFoundOverSSHAndForTags, also annotated ones.
func TestAncestryIsFoundOverSSHAndForTags(t *testing.T) {
	repo := sources.NewGitRepo(t)
	repo.Write("a", "1")
	first := repo.Push("first")
	repo.Push("second")
	third := repo.Push("third")
	repo.Git("tag", "--annotate", "--message", "x", "v1")
	repo.PushAll()
	ssh := sources.ServeSSH(t, repo)
	for _, ref := range []*sourcev1.GitRepositoryRef{nil, {Tag: "v1"}} {
		commit := fetchOK(t, NewStore(t.TempDir(), loopback), Source{URL: ssh.RepoURL(), Auth: authOf(ssh), Ref: ref, After: first})
		if commit.Hash != third || !commit.Ancestry.Descends {
			t.Errorf("%+v: %+v", ref, commit.Ancestry)
		}
	}
}

// TestAncestryIsFoundOnAShallowServer uses a server with a shallow repository.
func TestAncestryIsFoundOnAShallowServer(t *testing.T) {
	whole := sources.NewGitRepo(t)
	for i := range 10 {
		whole.Write("a", fmt.Sprint(i))
		whole.Push(fmt.Sprint(i))
	}
	repo := sources.NewGitRepo(t)
	bare := filepath.Join(repo.Root, repo.Name)
	if err := os.RemoveAll(bare); err != nil {
		t.Fatal(err)
	}
	repo.Run(repo.Root, "clone", "--quiet", "--bare", "--depth=5", "file://"+filepath.Join(whole.Root, whole.Name), repo.Name)
	server := sources.ServeGit(t, repo, httptest.NewServer)
	for back, want := range map[string]bool{"HEAD~3": true, "HEAD~8": false} {
		after := whole.Git("rev-parse", back)
		commit := fetchOK(t, NewStore(t.TempDir(), loopback), Source{URL: server.RepoURL(), After: after})
		if commit.Ancestry.Descends != want {
			t.Errorf("%s: %+v", back, commit.Ancestry)
		}
	}
}

// TestTheSearchForAncestorsEndsAtALimit, and the result names the limit.
func TestTheSearchForAncestorsEndsAtALimit(t *testing.T) {
	for name, tc := range map[string]struct {
		lower func(*limits)
		says  string
	}{
		"commits":             {func(l *limits) { l.generations = 20 }, "over the limit of 20"},
		"bytes":               {func(l *limits) { l.history = 2048 }, "the limit of 2 KiB"},
		"bytes of one commit": {func(l *limits) { l.File = 1000 }, "the limit of 1000"},
	} {
		t.Run(name, func(t *testing.T) {
			repo := sources.NewGitRepo(t)
			first := repo.Push("first")
			repo.Push(strings.Repeat("x", 2000))
			last := commitMany(repo, 100)
			server := sources.ServeGit(t, repo, httptest.NewServer)
			store := NewStore(t.TempDir(), loopback)
			tc.lower(&store.limits)
			commit := fetchOK(t, store, Source{URL: server.RepoURL(), After: first})
			if commit.Hash != last || commit.Ancestry.Descends || !strings.Contains(commit.Ancestry.Beyond, tc.says) {
				t.Errorf("%+v", commit.Ancestry)
			}
		})
	}
}

// TestTheEarlierCommitIsFetchedAgain: a store was lost after a force-push. If the server still serves the earlier commit, it is fetched
// again.
func TestTheEarlierCommitIsFetchedAgain(t *testing.T) {
	repo := sources.NewGitRepo(t)
	repo.Write("a", "first")
	first := repo.Push("first")
	server := sources.ServeGit(t, repo, httptest.NewServer)
	orphan(repo, "foreign")
	config(repo, "uploadpack.allowAnySHA1InWant", "true")
	commit := fetchOK(t, NewStore(t.TempDir(), loopback), Source{URL: server.RepoURL(), After: first})
	if earlier, err := commit.Earlier("main@sha1:" + first); err != nil || text(t, earlier, "a") != "first" {
		t.Errorf("%+v: %v", commit.Ancestry, err)
	}
	// If no server has it, that is no error.
	commit = fetchOK(t, NewStore(t.TempDir(), loopback), Source{URL: server.RepoURL(), After: strings.Repeat("ab", 20)})
	if _, err := commit.Earlier("main@sha1:" + strings.Repeat("ab", 20)); !errors.Is(err, failure.ErrNotFound) || commit.Ancestry.Descends {
		t.Errorf("%+v: %v", commit.Ancestry, err)
	}
}

// TestTheEarlierCommitIsFetchedOnlyIfItMayBeNeeded: the files of a last good commit are needed if the new one does not descend from it, is not
// signed as required, or may not be applied before a freeze ends.
func TestTheEarlierCommitIsFetchedOnlyIfItMayBeNeeded(t *testing.T) {
	repo := sources.NewGitRepo(t)
	repo.Write("a", "first")
	first := repo.Push("first")
	repo.Write("a", "second")
	repo.Push("second")
	config(repo, "uploadpack.allowAnySHA1InWant", "true")
	server := sources.ServeGit(t, repo, httptest.NewServer)
	for name, tc := range map[string]struct {
		signers *signature.Verification
		with    bool
		fetched error
	}{
		"a commit that descends":                  {nil, false, failure.ErrNotFound},
		"one that descends and is not signed":     {&signature.Verification{}, false, nil},
		"one that descends and may not run today": {nil, true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			commit := fetchOK(t, NewStore(t.TempDir(), loopback), Source{URL: server.RepoURL(), After: first, WithAfter: tc.with, Signers: tc.signers})
			if !commit.Ancestry.Descends || (commit.Unsigned != nil) != (tc.signers != nil) {
				t.Fatalf("%+v, not signed: %v", commit.Ancestry, commit.Unsigned)
			}
			earlier, err := commit.Earlier("sha1:" + first)
			if !errors.Is(err, tc.fetched) {
				t.Errorf("the earlier commit: %v, want %v", err, tc.fetched)
			}
			if err == nil && text(t, earlier, "a") != "first" {
				t.Error("the earlier commit has other files")
			}
		})
	}
}

// TestARefThatMovesDuringTheComparisonGivesNoAnswer: what is true of the newer commit may not be true of the fetched one, whose history was
// rewritten.
func TestARefThatMovesDuringTheComparisonGivesNoAnswer(t *testing.T) {
	repo := sources.NewGitRepo(t)
	first := repo.Push("first")
	repo.Push("second")
	later := repo.Push("third")
	foreign := orphan(repo, "foreign")
	server := sources.ServeGit(t, repo, httptest.NewServer)
	store := NewStore(t.TempDir(), loopback)
	fetchOK(t, store, Source{URL: server.RepoURL()})
	listed := 0
	server.Set(func() {
		server.Wrap = func(_ http.ResponseWriter, req *http.Request, _ http.Handler) bool {
			if req.Method == http.MethodGet {
				if listed++; listed == 2 { // The fetch has listed the refs, and now the comparison does.
					repo.Run(filepath.Join(repo.Root, repo.Name), "update-ref", "refs/heads/main", later)
				}
			}
			return false
		}
	})
	commit, err := store.Fetch(t.Context(), Source{URL: server.RepoURL(), After: first})
	if err == nil || !strings.Contains(err.Error(), "the ref moved on to "+later) {
		t.Errorf("got %+v, %v; want an error about %s", commit.Ancestry, err, foreign)
	}
	if commit, err = store.Fetch(t.Context(), Source{URL: server.RepoURL(), After: first}); err != nil || commit.Hash != later || !commit.Ancestry.Descends {
		t.Errorf("the next fetch: %s %+v, %v", commit.Hash, commit.Ancestry, err)
	}
}

// TestAnUnreachableServerHasNoAncestry is a failure of the fetch, not a result.
func TestAnUnreachableServerHasNoAncestry(t *testing.T) {
	repo := sources.NewGitRepo(t)
	first := repo.Push("first")
	repo.Push("second")
	repo.Push("third")
	server := sources.ServeGit(t, repo, httptest.NewServer)
	store := NewStore(t.TempDir(), loopback)
	fetchOK(t, store, Source{URL: server.RepoURL()})
	server.Set(func() {
		server.Wrap = func(w http.ResponseWriter, req *http.Request, _ http.Handler) bool {
			if req.Method == http.MethodPost {
				http.Error(w, "down", http.StatusBadGateway)
			}
			return req.Method == http.MethodPost
		}
	})
	commit, err := store.Fetch(t.Context(), Source{URL: server.RepoURL(), After: first})
	sources.WantError(t, err, failure.ErrUnavailable, "comparing commit")
	if commit.Root != nil || commit.Ancestry.Of != "" {
		t.Errorf("a commit beside the error: %+v", commit.Ancestry)
	}
	if _, err := store.Fetch(t.Context(), Source{URL: server.RepoURL(), After: "main"}); !errors.Is(err, failure.ErrInvalid) {
		t.Errorf("a name for a hash: %v", err)
	}
}
