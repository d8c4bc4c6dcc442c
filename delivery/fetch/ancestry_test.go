package fetch

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
)

// commitMany makes commits one after the other, each of which changes a file, and pushes them; it returns the last one's hash.
func (r *gitRepo) commitMany(n int) string {
	r.t.Helper()
	var script strings.Builder
	for i := range n {
		fmt.Fprintf(&script, "commit refs/heads/main\ncommitter t <t@example.com> 1700000000 +0000\ndata 0\n")
		if i == 0 {
			fmt.Fprintf(&script, "from %s\n", r.git("rev-parse", "HEAD"))
		}
		fmt.Fprintf(&script, "M 644 inline f%d\ndata 4\n%04d\n", i%10, i)
	}
	file := filepath.Join(r.t.TempDir(), "script")
	if err := os.WriteFile(file, []byte(script.String()), 0o600); err != nil {
		r.t.Fatal(err)
	}
	r.run(r.work, "-c", "alias.import=!git fast-import --quiet --force < "+file, "import")
	r.git("reset", "--quiet", "--hard", "main")
	r.pushAll()
	return r.git("rev-parse", "HEAD")
}

// orphan makes main a history of its own.
func (r *gitRepo) orphan(content string) string {
	r.t.Helper()
	r.git("checkout", "--quiet", "--orphan", "other")
	r.write("a", content)
	r.git("add", "--all")
	r.git("commit", "--quiet", "--message", content)
	r.git("branch", "--force", "main", "other")
	r.git("checkout", "--quiet", "main")
	r.git("branch", "-D", "other")
	r.pushAll()
	return r.git("rev-parse", "HEAD")
}

// config sets what the server's repository allows.
func (r *gitRepo) config(args ...string) {
	r.t.Helper()
	r.run(filepath.Join(r.root, r.name), append([]string{"config"}, args...)...)
}

func TestAncestry(t *testing.T) {
	cases := map[string]struct {
		// push changes the history after the first fetch.
		push func(*gitRepo)
		want bool
		// transfers are how often commits between the two are fetched.
		transfers int
	}{
		"nothing new":    {func(*gitRepo) {}, true, 0},
		"the next one":   {func(r *gitRepo) { r.push("next") }, true, 0},
		"a few later":    {func(r *gitRepo) { r.push("2"); r.push("3"); r.push("4") }, true, 1},
		"1,000 at once":  {func(r *gitRepo) { r.commitMany(1000) }, true, 1},
		"merged at once": {func(r *gitRepo) { r.branchAndMerge(1, "main", "side") }, true, 0},
		"merged later":   {func(r *gitRepo) { r.branchAndMerge(3, "main", "side"); r.push("and on") }, true, 1},
		"merged into another": {func(r *gitRepo) {
			r.branchAndMerge(2, "side", "main")
			r.git("branch", "--force", "main", "side")
			r.git("checkout", "--quiet", "main")
			r.push("on from the merge")
		}, true, 1},
		"pushed back": {func(r *gitRepo) { r.git("reset", "--quiet", "--hard", "HEAD~2"); r.pushAll() }, false, 1},
		"amended": {func(r *gitRepo) {
			r.write("a", "amended")
			r.git("commit", "--quiet", "--all", "--amend", "--message", "x")
			r.pushAll()
		}, false, 1},
		"rebased":      {func(r *gitRepo) { r.git("reset", "--quiet", "--hard", "HEAD~1"); r.push("x"); r.push("y") }, false, 1},
		"foreign":      {func(r *gitRepo) { r.orphan("foreign") }, false, 1},
		"long foreign": {func(r *gitRepo) { r.orphan("foreign"); r.commitMany(300) }, false, 1},
	}
	servers := map[string]func(*gitRepo){
		"filter":    func(r *gitRepo) { r.config("uploadpack.allowFilter", "true") },
		"no filter": func(r *gitRepo) { r.config("uploadpack.allowFilter", "false") },
		"filter refused": func(r *gitRepo) {
			r.config("uploadpack.allowFilter", "true")
			r.config("uploadpackfilter.allow", "false")
		},
	}
	for name, tc := range cases {
		for offers, configure := range servers {
			t.Run(name+"/"+offers, func(t *testing.T) {
				repo := newGitRepo(t)
				configure(repo)
				for i := range 5 {
					repo.write("a", fmt.Sprint(i))
					repo.push(fmt.Sprint(i))
				}
				server := serve(t, repo, httptest.NewServer)
				dir := t.TempDir()
				store := NewGitStore(dir, loopback)
				first := fetchOK(t, store, Git{URL: server.url()})
				tc.push(repo)
				server.seen()
				plain := fetchOK(t, store, Git{URL: server.url()})
				usual := len(server.seen())
				got := fetchOK(t, store, Git{URL: server.url(), After: first.Hash})
				if got.Hash != plain.Hash || got.Ancestry.Of != first.Hash || got.Ancestry.Descends != tc.want || got.Ancestry.Beyond != "" {
					t.Errorf("%s after %s: %+v", got.Hash, first.Hash, got.Ancestry)
				}
				uploads := strings.Count(strings.Join(server.seen(), "\n"), "POST")
				if refused := offers == "filter refused" && tc.transfers > 0; uploads != tc.transfers && (!refused || uploads != 2*tc.transfers) {
					t.Errorf("%d transfers (the fetch itself: %d requests), want %d", uploads, usual, tc.transfers)
				}
				// The same question again asks for the refs alone.
				if again := fetchOK(t, store, Git{URL: server.url(), After: first.Hash}); again.Ancestry != got.Ancestry || len(server.seen()) != 1 {
					t.Errorf("asked again: %+v", again.Ancestry)
				}
				if left, _ := filepath.Glob(filepath.Join(dir, "*", disk.Temporary)); len(left) != 0 {
					t.Errorf("left behind: %v", left)
				}
				if earlier, err := got.Earlier(first.Revision); err != nil || text(t, earlier, "a") != "4" || earlier.Revision != first.Revision {
					t.Errorf("the earlier commit: %s, %v", earlier.Revision, err)
				}
			})
		}
	}
}

// branchAndMerge makes a branch of that many commits, as many on the one it left, and merges from into into.
func (r *gitRepo) branchAndMerge(n int, into, from string) {
	r.t.Helper()
	r.git("checkout", "--quiet", "-b", "side")
	for i := range n {
		r.write(fmt.Sprint("side", i), "x")
		r.push("side")
	}
	r.git("checkout", "--quiet", "main")
	if n > 1 {
		r.write("main", "x")
		r.push("main")
	}
	r.git("checkout", "--quiet", into)
	r.git("merge", "--quiet", "--no-ff", "--message", "merge", from)
	r.pushAll()
}

// TestAncestryFetchesNoFiles where the server can leave them out.
func TestAncestryFetchesNoFiles(t *testing.T) {
	for filter, most := range map[string]int64{"true": 50 * limit.KiB, "false": 20 * limit.MiB} {
		repo := newGitRepo(t)
		repo.config("uploadpack.allowFilter", filter)
		first := repo.push("first")
		for i := range 3 {
			repo.write("large", noise(i, limit.MiB))
			repo.push(fmt.Sprint(i))
		}
		server, wire := counted(t, repo)
		store := NewGitStore(t.TempDir(), loopback)
		fetchOK(t, store, Git{URL: server.url()})
		wire.Store(0)
		if commit := fetchOK(t, store, Git{URL: server.url(), After: first}); !commit.Ancestry.Descends || wire.Load() > most {
			t.Errorf("filter %s: %+v after %d bytes", filter, commit.Ancestry, wire.Load())
		}
	}
}

// TestAncestryAcrossTransportsAndRefs compares over SSH, and what an annotated tag names.
func TestAncestryAcrossTransportsAndRefs(t *testing.T) {
	repo := newGitRepo(t)
	repo.write("a", "1")
	first := repo.push("first")
	repo.push("second")
	third := repo.push("third")
	repo.git("tag", "--annotate", "--message", "x", "v1")
	repo.pushAll()
	ssh := serveSSH(t, repo)
	for _, ref := range []*sourcev1.GitRepositoryRef{nil, {Tag: "v1"}} {
		commit := fetchOK(t, NewGitStore(t.TempDir(), loopback), Git{URL: ssh.url(), Auth: ssh.auth, Ref: ref, After: first})
		if commit.Hash != third || !commit.Ancestry.Descends {
			t.Errorf("%+v: %+v", ref, commit.Ancestry)
		}
	}
}

// TestAncestryOnAShallowServer asks a server whose own repository does not know the whole history.
func TestAncestryOnAShallowServer(t *testing.T) {
	whole := newGitRepo(t)
	for i := range 10 {
		whole.write("a", fmt.Sprint(i))
		whole.push(fmt.Sprint(i))
	}
	repo := newGitRepo(t)
	bare := filepath.Join(repo.root, repo.name)
	if err := os.RemoveAll(bare); err != nil {
		t.Fatal(err)
	}
	repo.run(repo.root, "clone", "--quiet", "--bare", "--depth=5", "file://"+filepath.Join(whole.root, whole.name), repo.name)
	server := serve(t, repo, httptest.NewServer)
	for back, want := range map[string]bool{"HEAD~3": true, "HEAD~8": false} {
		after := whole.git("rev-parse", back)
		commit := fetchOK(t, NewGitStore(t.TempDir(), loopback), Git{URL: server.url(), After: after})
		if commit.Ancestry.Descends != want {
			t.Errorf("%s: %+v", back, commit.Ancestry)
		}
	}
}

// TestAncestryWithinLimits does not search without end: what is not found within a limit is not known to descend, and says so.
func TestAncestryWithinLimits(t *testing.T) {
	for name, tc := range map[string]struct {
		lower func(*limits)
		says  string
	}{
		"commits": {func(l *limits) { l.generations = 20 }, "over the limit of 20"},
		"bytes":   {func(l *limits) { l.history = 2048 }, "the limit of 2 KiB"},
	} {
		t.Run(name, func(t *testing.T) {
			repo := newGitRepo(t)
			first := repo.push("first")
			last := repo.commitMany(100)
			server := serve(t, repo, httptest.NewServer)
			store := NewGitStore(t.TempDir(), loopback)
			tc.lower(&store.limits)
			commit := fetchOK(t, store, Git{URL: server.url(), After: first})
			if commit.Hash != last || commit.Ancestry.Descends || !strings.Contains(commit.Ancestry.Beyond, tc.says) {
				t.Errorf("%+v", commit.Ancestry)
			}
		})
	}
}

// TestTheEarlierCommitIsBroughtBack has a store that was lost after a force-push: where the server still gives the earlier
// commit, what was made from it can be read on.
func TestTheEarlierCommitIsBroughtBack(t *testing.T) {
	repo := newGitRepo(t)
	repo.write("a", "first")
	first := repo.push("first")
	server := serve(t, repo, httptest.NewServer)
	repo.orphan("foreign")
	repo.config("uploadpack.allowAnySHA1InWant", "true")
	commit := fetchOK(t, NewGitStore(t.TempDir(), loopback), Git{URL: server.url(), After: first})
	if earlier, err := commit.Earlier("main@sha1:" + first); err != nil || text(t, earlier, "a") != "first" {
		t.Errorf("%+v: %v", commit.Ancestry, err)
	}
	// One that no server has is no error: there is nothing to go on from.
	commit = fetchOK(t, NewGitStore(t.TempDir(), loopback), Git{URL: server.url(), After: strings.Repeat("ab", 20)})
	if _, err := commit.Earlier("main@sha1:" + strings.Repeat("ab", 20)); !errors.Is(err, failure.ErrNotFound) || commit.Ancestry.Descends {
		t.Errorf("%+v: %v", commit.Ancestry, err)
	}
}

// TestAncestryThatCannotBeAsked is a failure of the fetch, not an answer.
func TestAncestryThatCannotBeAsked(t *testing.T) {
	repo := newGitRepo(t)
	first := repo.push("first")
	repo.push("second")
	repo.push("third")
	server := serve(t, repo, httptest.NewServer)
	store := NewGitStore(t.TempDir(), loopback)
	fetchOK(t, store, Git{URL: server.url()})
	server.set(func() {
		server.wrap = func(w http.ResponseWriter, req *http.Request, _ http.Handler) bool {
			if req.Method == http.MethodPost {
				http.Error(w, "down", http.StatusBadGateway)
			}
			return req.Method == http.MethodPost
		}
	})
	if commit, err := store.Fetch(t.Context(), Git{URL: server.url(), After: first}); err == nil || errors.Is(err, failure.ErrNotFound) {
		t.Errorf("%+v, %v", commit.Ancestry, err)
	}
	if _, err := store.Fetch(t.Context(), Git{URL: server.url(), After: "main"}); !errors.Is(err, failure.ErrInvalid) {
		t.Errorf("a name for a hash: %v", err)
	}
}
