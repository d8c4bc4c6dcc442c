package git

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/kubeop/kubeop/delivery/fetch/disk"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

// TestAGitHubAppFetchesWithItsToken, which the server issues.
func TestAGitHubAppFetchesWithItsToken(t *testing.T) {
	repo := sources.NewGitRepo(t)
	repo.Write("a", "1")
	hash := repo.Push("first")
	server := sources.ServeGit(t, repo, httptest.NewServer)
	const tokens = "/api/v3/app/installations/42/access_tokens"
	server.Set(func() {
		allow := sources.Basic("x-access-token", "t0ken")
		server.Allow = func(r *http.Request) bool { return r.URL.Path == tokens || allow(r) }
		server.Wrap = func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
			if r.URL.Path != tokens {
				return false
			}
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, `{"token": "t0ken", "expires_at": "2999-01-01T00:00:00Z"}`)
			return true
		}
	})
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	auth := transport.Auth{App: &transport.GitHubApp{
		ID: "7", Installation: "42", PrivateKey: pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}),
	}}
	if commit := fetchOK(t, NewStore(t.TempDir(), loopback), Source{URL: server.RepoURL(), Auth: auth}); commit.Hash != hash {
		t.Errorf("got %s, want %s", commit.Hash, hash)
	}
}

func TestCredentialsOfEachKindAreAccepted(t *testing.T) {
	repo := sources.NewGitRepo(t)
	repo.Write("a", "1")
	hash := repo.Push("first")
	plain := sources.ServeGit(t, repo, httptest.NewServer)
	tls := sources.ServeGit(t, repo, httptest.NewTLSServer)
	cases := map[string]struct {
		server *sources.GitServer
		allow  func(*http.Request) bool
		auth   transport.Auth
	}{
		"basic":              {plain, sources.Basic("bot", "p:ä%/ss"), transport.Auth{Username: "bot", Password: "p:ä%/ss"}},
		"password only":      {plain, sources.Basic("", "token"), transport.Auth{Password: "token"}},
		"bearer":             {plain, sources.Bearer("t0ken"), transport.Auth{BearerToken: "t0ken"}},
		"basic with own CA":  {tls, sources.Basic("bot", "pass"), transport.Auth{Username: "bot", Password: "pass", CA: sources.Certificate(tls.Server)}},
		"bearer with own CA": {tls, sources.Bearer("t0ken"), transport.Auth{BearerToken: "t0ken", CA: sources.Certificate(tls.Server)}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.server.Set(func() { tc.server.Allow = tc.allow })
			if commit := fetchOK(t, NewStore(t.TempDir(), loopback), Source{URL: tc.server.RepoURL(), Auth: tc.auth}); commit.Hash != hash {
				t.Errorf("got %s, want %s", commit.Hash, hash)
			}
		})
	}
}

func TestRefusedCredentialsAreNotShown(t *testing.T) {
	repo := sources.NewGitRepo(t)
	repo.Write("a", "1")
	repo.Push("first")
	server := sources.ServeGit(t, repo, httptest.NewServer)
	server.Set(func() { server.Allow = sources.Basic("bot", "right") })
	const secret = "wr/ong +p%ss&word"
	cases := map[string]struct {
		auth transport.Auth
		says string
	}{
		"none":   {transport.Auth{}, "wants credentials for the Git repository at this URL; some hosts answer so if it does not exist (401)"},
		"basic":  {transport.Auth{Username: "bot", Password: secret}, "rejected the credentials"},
		"bearer": {transport.Auth{BearerToken: secret}, "rejected the credentials"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := NewStore(t.TempDir(), loopback).Fetch(t.Context(), Source{URL: server.RepoURL(), Auth: tc.auth})
			sources.WantError(t, err, failure.ErrAuthentication, tc.says)
			sources.WantNoSecret(t, err, secret)
		})
	}
}

func TestNothingIsFetchedOnceAccessIsLost(t *testing.T) {
	repo := sources.NewGitRepo(t)
	repo.Write("a", "1")
	repo.Push("first")
	server := sources.ServeGit(t, repo, httptest.NewServer)
	server.Set(func() { server.Allow = sources.Basic("bot", "pass") })
	store := NewStore(t.TempDir(), loopback)
	src := Source{URL: server.RepoURL(), Auth: transport.Auth{Username: "bot", Password: "pass"}}
	fetchOK(t, store, src)
	server.Set(func() { server.Allow = sources.Basic("bot", "changed") })
	// The store has the commit; that must not be enough.
	_, err := store.Fetch(t.Context(), src)
	sources.WantError(t, err, failure.ErrAuthentication, "rejected")
}

func TestACertificateOfAnUnknownAuthorityIsRefused(t *testing.T) {
	repo := sources.NewGitRepo(t)
	repo.Push("first")
	server := sources.ServeGit(t, repo, httptest.NewTLSServer)
	_, err := NewStore(t.TempDir(), loopback).Fetch(t.Context(), Source{URL: server.RepoURL()})
	sources.WantError(t, err, failure.ErrAuthentication, "ca.crt")
	// The authority of one source is not used for another.
	store := NewStore(t.TempDir(), loopback)
	fetchOK(t, store, Source{URL: server.RepoURL(), Auth: transport.Auth{CA: sources.Certificate(server.Server)}})
	_, err = store.Fetch(t.Context(), Source{URL: server.RepoURL()})
	sources.WantError(t, err, failure.ErrAuthentication, "ca.crt")
}

func TestCredentialsAreNotSentToAnotherHost(t *testing.T) {
	repo := sources.NewGitRepo(t)
	repo.Write("a", "1")
	hash := repo.Push("first")
	var leaked []string
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		leaked = append(leaked, req.URL.Path+" "+req.Header.Get("Authorization"))
	}))
	defer other.Close()
	server := sources.ServeGit(t, repo, httptest.NewServer)
	server.Set(func() { server.Allow = sources.Basic("bot", "pass") })
	server.Set(func() {
		server.Wrap = func(w http.ResponseWriter, req *http.Request, _ http.Handler) bool {
			if rest, ok := strings.CutPrefix(req.URL.Path, "/away"); ok {
				http.Redirect(w, req, other.URL+rest, http.StatusFound)
				return true
			}
			if rest, ok := strings.CutPrefix(req.URL.Path, "/moved"); ok {
				http.Redirect(w, req, "/app.git"+rest+"?"+req.URL.RawQuery, http.StatusMovedPermanently)
				return true
			}
			return false
		}
	})
	auth := transport.Auth{Username: "bot", Password: "pass"}

	_, err := NewStore(t.TempDir(), loopback).Fetch(t.Context(), Source{URL: server.URL + "/away", Auth: auth})
	sources.WantError(t, err, failure.ErrInvalid, "use the URL it redirects to")
	if len(leaked) != 0 {
		t.Errorf("the other host was asked: %v", leaked)
	}
	if commit := fetchOK(t, NewStore(t.TempDir(), loopback), Source{URL: server.URL + "/moved", Auth: auth}); commit.Hash != hash {
		t.Errorf("got %s, want %s", commit.Hash, hash)
	}
}

func TestACommitIsFetchedOverSSH(t *testing.T) {
	repo := sources.NewGitRepo(t)
	repo.Write("a", "1")
	hash := repo.Push("first")
	server := sources.ServeSSH(t, repo)
	store := NewStore(t.TempDir(), loopback)
	src := Source{URL: server.RepoURL(), Auth: authOf(server)}
	if commit := fetchOK(t, store, src); commit.Hash != hash {
		t.Errorf("got %s, want %s", commit.Hash, hash)
	}
	repo.Write("a", "2")
	repo.Push("second")
	if commit := fetchOK(t, store, src); text(t, commit, "a") != "2" {
		t.Errorf("got %s", commit.Hash)
	}
	left, _ := filepath.Glob(filepath.Join(store.dir, "*", disk.Temporary))
	if len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestSSHNeedsAKnownHostAndAnAcceptedKey(t *testing.T) {
	repo := sources.NewGitRepo(t)
	repo.Push("first")
	server := sources.ServeSSH(t, repo)
	stranger, strangersKey := sources.NewSSHKey(t)
	known := func(line string) transport.Auth {
		return transport.Auth{Identity: server.Identity, KnownHosts: []byte(line)}
	}
	cases := map[string]struct {
		url  string
		auth transport.Auth
		kind error
		says string
	}{
		"no known_hosts":      {"", known(""), failure.ErrInvalid, `ssh-keyscan 127.0.0.1`},
		"a Secret without":    {"", transport.Auth{Secret: "team/git", Identity: server.Identity}, failure.ErrInvalid, "as known_hosts; an administrator of the cluster may run: kubectl create secret generic git -n team --from-file=identity=... --from-file=known_hosts=..."},
		"garbage":             {"", known("this is not a line of it"), failure.ErrInvalid, "known_hosts of the Secret cannot be read"},
		"unknown host":        {"", known(knownhosts.Line([]string{"github.com"}, stranger.PublicKey())), failure.ErrAuthentication, "is not in known_hosts"},
		"another host key":    {"", known(knownhosts.Line([]string{server.Address}, stranger.PublicKey())), failure.ErrAuthentication, "is not the one in known_hosts"},
		"key not allowed":     {"", transport.Auth{Identity: strangersKey, KnownHosts: server.KnownHosts}, failure.ErrAuthentication, "rejected the key"},
		"no key":              {"", transport.Auth{KnownHosts: server.KnownHosts}, failure.ErrInvalid, "needs a key"},
		"no such repository":  {"ssh://git@" + server.Address + "/gone.git", authOf(server), failure.ErrNotFound, "does not appear to be a git repository"},
		"quote in the path":   {"ssh://git@" + server.Address + "/a'b.git", authOf(server), failure.ErrNotFound, "does not serve"},
		"password in the URL": {"ssh://git:hunter2@" + server.Address + "/app.git", authOf(server), failure.ErrInvalid, "move them to a Secret"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.url == "" {
				tc.url = server.RepoURL()
			}
			_, err := NewStore(t.TempDir(), loopback).Fetch(t.Context(), Source{URL: tc.url, Auth: tc.auth})
			sources.WantError(t, err, tc.kind, tc.says)
			sources.WantNoSecret(t, err, "hunter2")
		})
	}
}

func TestAnEncryptedIdentityIsRefused(t *testing.T) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKeyWithPassphrase(private, "", []byte("hunter2"))
	if err != nil {
		t.Fatal(err)
	}
	key := pem.EncodeToMemory(block)
	cases := map[string]struct {
		data map[string][]byte
		says string
	}{
		"right passphrase": {map[string][]byte{"identity": key, "password": []byte("hunter2")}, ""},
		"no passphrase":    {map[string][]byte{"identity": key}, "add its passphrase as password"},
		"wrong passphrase": {map[string][]byte{"identity": key, "password": []byte("hunter3")}, "does not decrypt"},
		"not a key":        {map[string][]byte{"identity": []byte("hunter2")}, "not a private SSH key"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			auth, err := transport.AuthFromSecret("team", "git", tc.data)
			if tc.says != "" {
				sources.WantError(t, err, failure.ErrInvalid, tc.says)
				sources.WantNoSecret(t, err, "hunter")
				return
			}
			if signer, err := auth.Signer(); err != nil || signer == nil {
				t.Errorf("signer: %v", err)
			}
		})
	}
}

func TestSSHIgnoresTheHomeDirectory(t *testing.T) {
	repo := sources.NewGitRepo(t)
	repo.Push("first")
	server := sources.ServeSSH(t, repo)
	home := t.TempDir()
	if err := os.MkdirAll(filepath.Join(home, ".ssh"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"known_hosts": server.KnownHosts, "id_ed25519": server.Identity} {
		if err := os.WriteFile(filepath.Join(home, ".ssh", name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("HOME", home)
	t.Setenv("SSH_KNOWN_HOSTS", filepath.Join(home, ".ssh", "known_hosts"))
	_, err := NewStore(t.TempDir(), loopback).Fetch(t.Context(), Source{URL: server.RepoURL(), Auth: transport.Auth{Identity: server.Identity}})
	sources.WantError(t, err, failure.ErrInvalid, "no known_hosts")
	_, err = NewStore(t.TempDir(), loopback).Fetch(t.Context(), Source{URL: server.RepoURL(), Auth: transport.Auth{KnownHosts: server.KnownHosts}})
	sources.WantError(t, err, failure.ErrInvalid, "needs a key")
}
