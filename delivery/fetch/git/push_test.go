package git

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kubeop/kubeop/delivery/fetch/draft"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

// pushable returns a repository with a commit, to which everyone may push over HTTP.
func pushable(t *testing.T) *sources.GitRepo {
	t.Helper()
	repo := sources.NewGitRepo(t)
	repo.Write("a/one.yaml", "one\n")
	repo.Write("a/run.sh", "#!/bin/sh\n")
	if err := os.Chmod(filepath.Join(repo.Work, "a/run.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	repo.Write("b/two.yaml", "two\n")
	repo.Push("first")
	repo.Run(filepath.Join(repo.Root, repo.Name), "config", "http.receivepack", "true")
	return repo
}

// proposed changes one file upon a commit, and others.
func proposed(upon Commit, content string, more ...draft.Change) Proposed {
	p := Proposed{Upon: upon, Branch: "main", Draft: draft.New()}
	err := p.Draft.Add(upon.Root, draft.Commit{
		Message: "Change one.yaml\n\nBecause.\n",
		Author:  draft.Person{Name: "Ann <x>\nB", Email: "ann@example.com"}, Committer: draft.Person{Name: "kubeop", Email: "kubeop@example.com"}, At: time.Unix(1e9, 0),
	}, append(more, draft.Change{Path: "a/one.yaml", Content: []byte(content)}))
	if err != nil {
		panic(err)
	}
	return p
}

// pushOK pushes one commit, and returns its hash.
func pushOK(t *testing.T, store *Store, src Source, p Proposed) string {
	t.Helper()
	hashes, err := store.Push(t.Context(), src, p)
	if err != nil || len(hashes) != 1 {
		t.Fatalf("%s, %v", hashes, err)
	}
	return hashes[0]
}

// hook installs a program that the server runs before it takes a push.
func hook(t *testing.T, repo *sources.GitRepo, script string) {
	t.Helper()
	path := filepath.Join(repo.Root, repo.Name, "hooks", "pre-receive")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
}

func TestPushWritesACommitOverHTTPAndSSH(t *testing.T) {
	repo := pushable(t)
	web, ssh := sources.ServeGit(t, repo, httptest.NewServer), sources.ServeSSH(t, repo)
	for name, src := range map[string]Source{
		"http": {URL: web.RepoURL()},
		"ssh":  {URL: ssh.RepoURL(), Auth: transport.Auth{Identity: ssh.Identity, KnownHosts: ssh.KnownHosts}},
	} {
		store := NewStore(t.TempDir(), loopback)
		first := fetchOK(t, store, src)
		p := proposed(first, name+"\n", draft.Change{Path: "new/deep/" + name, Content: []byte("x")}, draft.Change{Path: "a/run.sh", Content: []byte("#!/bin/bash\n" + name)})
		hash := pushOK(t, store, src, p)
		bare := filepath.Join(repo.Root, repo.Name)
		repo.Run(bare, "fsck", "--strict")
		if got := repo.Run(bare, "log", "-1", "--format=%H %P|%an|%ae|%cn|%at|%B", "main"); got != hash+" "+first.Hash+"|Ann xB|ann@example.com|kubeop|1000000000|Change one.yaml\n\nBecause." {
			t.Errorf("%s: the commit is %q", name, got)
		}
		if got := repo.Run(bare, "diff", "--raw", "--abbrev=4", first.Hash, hash); strings.Count(got, "\n") > 2 || !strings.Contains(got, ":100755 100755") {
			t.Errorf("%s: the commit changes\n%s", name, got)
		}
		if got := repo.Run(bare, "show", hash+":new/deep/"+name); got != "x" {
			t.Errorf("%s: the new file has %q", name, got)
		}
		next := fetchOK(t, store, src)
		if text, err := next.Root.ReadFile("a/one.yaml"); err != nil || next.Hash != hash || string(text) != name+"\n" {
			t.Errorf("%s: fetched %s: %q, %v", name, next.Hash, text, err)
		}
		if _, err := store.Push(t.Context(), src, proposed(first, "late\n")); !strings.Contains(err.Error(), "pushing to main of ") {
			t.Errorf("%s: %v", name, err)
		} else {
			sources.WantError(t, err, ErrMoved, "another commit")
		}
	}
}

// TestABranchIsMovedOnlyFromItsParent, and a new one must not exist.
func TestABranchIsMovedOnlyFromItsParent(t *testing.T) {
	repo := pushable(t)
	src := Source{URL: sources.ServeGit(t, repo, httptest.NewServer).RepoURL()}
	store := NewStore(t.TempDir(), loopback)
	first := fetchOK(t, store, src)
	p := proposed(first, "on a branch\n")
	p.Branch, p.New = "kubeop/change", true
	hash := pushOK(t, store, src, p)
	if got := repo.Run(filepath.Join(repo.Root, repo.Name), "rev-parse", "main", "kubeop/change"); got != first.Hash+"\n"+hash {
		t.Errorf("the branches are at %s", got)
	}
	if again := pushOK(t, store, src, p); again != hash {
		t.Errorf("the same push again, as after a lost answer: %s", again)
	}
	p.Draft = proposed(first, "another\n").Draft
	_, err := store.Push(t.Context(), src, p)
	sources.WantError(t, err, ErrMoved, "")
}

// TestARefusedPushSaysWhatTheServerSays, and a push that lost a race is ErrMoved however the server says so.
func TestARefusedPushSaysWhatTheServerSays(t *testing.T) {
	repo := pushable(t)
	server := sources.ServeGit(t, repo, httptest.NewServer)
	src := Source{URL: server.RepoURL(), Auth: transport.Auth{Username: "u", Password: "hunter22"}}
	store := NewStore(t.TempDir(), loopback)
	first := fetchOK(t, store, src)
	hook(t, repo, "echo 'main is protected, hunter22' >&2; exit 1\n")
	_, err := store.Push(t.Context(), src, proposed(first, "refused\n"))
	sources.WantError(t, err, ErrRefused, "the server refused the push: pre-receive hook declined: main is protected")
	sources.WantNoSecret(t, err, "hunter22")

	hook(t, repo, "exit 0\n")
	server.Set(func() {
		server.Wrap = func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
			if strings.HasSuffix(r.URL.Path, receivePack) {
				repo.Write("c", "c")
				repo.Push("another's commit")
			}
			return false
		}
	})
	_, err = store.Push(t.Context(), src, proposed(first, "late\n"))
	sources.WantError(t, err, ErrMoved, "")
	if got := repo.Run(filepath.Join(repo.Root, repo.Name), "rev-parse", "main"); got != repo.Git("rev-parse", "HEAD") {
		t.Errorf("main is at %s, and the other's commit is lost", got)
	}
}

// TestAFailedPushIsExplained: of a server that does not allow it, one whose answer is lost, and ones whose answers are invalid.
func TestAFailedPushIsExplained(t *testing.T) {
	repo := pushable(t)
	server := sources.ServeGit(t, repo, httptest.NewServer)
	src := Source{URL: server.RepoURL(), Auth: transport.Auth{Username: "u", Password: "p", Secret: "acme/git"}}
	store := NewStore(t.TempDir(), loopback)
	first := fetchOK(t, store, src)
	server.Set(func() {
		server.Allow = func(r *http.Request) bool { return !strings.Contains(r.URL.String(), "receive-pack") }
	})
	_, err := store.Push(t.Context(), src, proposed(first, "x\n"))
	sources.WantError(t, err, failure.ErrAuthentication, "must also be allowed to write")
	if !strings.Contains(err.Error(), "acme/git") {
		t.Errorf("%v does not name the Secret", err)
	}
	_, err = store.Push(t.Context(), Source{URL: "ftp://host/path"}, proposed(first, "x\n"))
	sources.WantError(t, err, failure.ErrInvalid, `pushing to main of ftp://host/path: the scheme "ftp" is not supported`)
	// The answer is lost after the server took the commit; the next attempt finds it.
	lost := 0
	server.Set(func() {
		server.Allow = nil
		server.Wrap = func(_ http.ResponseWriter, r *http.Request, next http.Handler) bool {
			if !strings.HasSuffix(r.URL.Path, receivePack) || r.Method != http.MethodPost || lost > 0 {
				return false
			}
			lost++
			next.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		}
	})
	if hashes, err := store.Push(t.Context(), src, proposed(first, "x\n")); err == nil {
		t.Fatalf("got %s, want an error", hashes)
	}
	if hash := pushOK(t, store, src, proposed(first, "x\n")); lost != 1 || repo.Run(filepath.Join(repo.Root, repo.Name), "rev-parse", "main") != hash {
		t.Errorf("%s, %d lost", hash, lost)
	}
	// A proxy in front of the server refuses a request that is too large for it: a smaller one may succeed.
	large := proposed(fetchOK(t, store, src), "large\n")
	server.Set(func() {
		server.Wrap = func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
			if r.Method == http.MethodPost {
				w.WriteHeader(http.StatusRequestEntityTooLarge)
			}
			return r.Method == http.MethodPost
		}
	})
	_, err = store.Push(t.Context(), src, large)
	sources.WantError(t, err, failure.ErrTooLarge, "refuses a request of this size (413)")
	server.Set(func() { server.Wrap = nil })
	for name, answer := range map[string]string{"garbage": "0009hello", "nothing": "", "half": "000eunpack ok\n"} {
		server.Set(func() {
			server.Wrap = func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
				if !strings.HasSuffix(r.URL.Path, receivePack) || r.Method != http.MethodPost {
					return false
				}
				_, _ = w.Write([]byte(answer))
				return true
			}
		})
		if _, err := store.Push(t.Context(), src, proposed(fetchOK(t, store, src), name)); err != nil {
			continue
		}
		t.Errorf("%s counts as a push", name)
	}
}
