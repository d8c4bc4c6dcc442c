package git

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

func TestHeadsAreTheBranchesOfARemote(t *testing.T) {
	repo := sources.NewGitRepo(t)
	repo.Write("a", "1")
	first := repo.Push("first")
	repo.Git("branch", "release/1")
	repo.Git("tag", "v1")
	repo.PushAll()
	repo.Write("a", "2")
	second := repo.Push("second")
	server := sources.ServeGit(t, repo, httptest.NewServer)
	store := NewStore(t.TempDir(), loopback)
	heads, err := store.Heads(t.Context(), Source{URL: server.RepoURL(), Tenant: "acme"})
	if diff := cmp.Diff(map[string]string{"main": second, "release/1": first}, heads); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	server.Set(func() { server.Allow = sources.Basic("bot", "right") })
	auth := transport.Auth{Username: "bot", Password: "hunter22", Secret: "acme/git"}
	_, err = store.Heads(t.Context(), Source{URL: server.RepoURL(), Auth: auth})
	sources.WantError(t, err, failure.ErrAuthentication, "listing the branches of "+server.RepoURL()+": ")
	sources.WantError(t, err, failure.ErrAuthentication, "the credentials are those of Secret acme/git")
	_, err = store.Heads(t.Context(), Source{URL: "ftp://h.example/a"})
	sources.WantError(t, err, failure.ErrInvalid, "listing the branches of ftp://h.example/a: ")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := store.Heads(ctx, Source{URL: server.RepoURL()}); err == nil {
		t.Error("it goes on after the end of its context")
	}
}

// TestRequestsOverHTTPHaveTheMediaTypesOfGit, on which some servers insist.
func TestRequestsOverHTTPHaveTheMediaTypesOfGit(t *testing.T) {
	repo := pushable(t)
	server := sources.ServeGit(t, repo, httptest.NewServer)
	var mu sync.Mutex
	var seen []string
	server.Set(func() {
		server.Wrap = func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, strings.Join([]string{r.Method, r.URL.RequestURI(), r.Header.Get("Content-Type"), r.Header.Get("Accept"), r.UserAgent()}, " "))
			return false
		}
	})
	store := NewStore(t.TempDir(), loopback)
	src := Source{URL: server.RepoURL()}
	first := fetchOK(t, store, src)
	if _, err := store.Push(t.Context(), src, proposed(first, "new\n")); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{
		"GET /app.git/info/refs?service=git-upload-pack   git/kubeop",
		"POST /app.git/git-upload-pack application/x-git-upload-pack-request application/x-git-upload-pack-result git/kubeop",
		"GET /app.git/info/refs?service=git-receive-pack   git/kubeop",
		"POST /app.git/git-receive-pack application/x-git-receive-pack-request application/x-git-receive-pack-result git/kubeop",
	}, seen); diff != "" {
		t.Error(diff)
	}
}

// TestAnSSHServerThatListsNoRefs ends the command with a reason, without one, or not at all. It waits for the end of its input first.
func TestAnSSHServerThatListsNoRefs(t *testing.T) {
	repo := sources.NewGitRepo(t)
	repo.Push("first")
	for name, tc := range map[string]struct {
		code uint32
		hang bool
		kind error
		says string
	}{
		"with a reason":  {1, false, failure.ErrNotFound, "the server does not serve this repository to the key of the Secret; it says: no access for you\ufffd[2J"},
		"without an end": {0, true, failure.ErrSlow, "the server gave no answer within"},
		"without error":  {0, false, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			server := sources.ServeSSH(t, repo)
			hanging := make(chan struct{})
			t.Cleanup(func() { close(hanging) })
			server.Set(func() {
				server.Exec = func(channel ssh.Channel, command string) uint32 {
					if command != "git-upload-pack '/app.git'" {
						t.Errorf("it runs %s", command)
					}
					_, _ = io.WriteString(channel.Stderr(), "no access for you\x1b[2J\n")
					_ = channel.CloseWrite()
					_, _ = io.Copy(io.Discard, channel)
					if tc.hang {
						<-hanging
					}
					return tc.code
				}
			})
			store := NewStore(t.TempDir(), loopback)
			store.limits.Timeouts = transport.Timeouts{Whole: time.Minute, Answer: 500 * time.Millisecond, Stall: 500 * time.Millisecond}
			_, err := store.Fetch(t.Context(), Source{URL: server.RepoURL(), Auth: authOf(server)})
			if tc.kind == nil {
				wantTransient(t, err)
				return
			}
			sources.WantError(t, err, tc.kind, tc.says)
		})
	}
}

// TestSSHAcceptsAPasswordInPlaceOfAKey, which some servers want.
func TestSSHAcceptsAPasswordInPlaceOfAKey(t *testing.T) {
	repo := sources.NewGitRepo(t)
	repo.Write("a", "1")
	hash := repo.Push("first")
	server := sources.ServeSSH(t, repo)
	server.Set(func() {
		server.Config.PasswordCallback = func(about ssh.ConnMetadata, password []byte) (*ssh.Permissions, error) {
			if about.User() == "git" && string(password) == "right" {
				return nil, nil
			}
			return nil, io.ErrClosedPipe
		}
	})
	store := NewStore(t.TempDir(), loopback)
	if commit := fetchOK(t, store, Source{URL: server.RepoURL(), Auth: transport.Auth{Password: "right", KnownHosts: server.KnownHosts}}); commit.Hash != hash {
		t.Errorf("got %s, want %s", commit.Hash, hash)
	}
	_, err := store.Fetch(t.Context(), Source{URL: server.RepoURL(), Auth: transport.Auth{Password: "hunter22", KnownHosts: server.KnownHosts}})
	sources.WantError(t, err, failure.ErrAuthentication, "rejected the key")
	sources.WantNoSecret(t, err, "hunter22")
}
