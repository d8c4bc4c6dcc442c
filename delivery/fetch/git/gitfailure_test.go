package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/kubeop/kubeop/delivery/fetch/disk"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/limit"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

func TestFetchRefusesURLs(t *testing.T) {
	cases := map[string]string{
		"":                                 "not of the form",
		"https://":                         "not of the form",
		"git@github.com:a/b.git":           "ssh://git@host/path",
		"file:///etc":                      "not of the form",
		"file://localhost/etc":             `scheme "file"`,
		"git://github.com/a/b":             `scheme "git"`,
		"ext::sh -c touch% /tmp/x":         "no scheme",
		"ftp://host/a":                     `scheme "ftp"`,
		"https://bot:hunter2@host/a.git":   "move them to a Secret",
		"https://hunter2@host/a.git":       "move them to a Secret",
		"https://host/a.git?token=hunter2": "query",
		"https://ho st/hunter2":            "not of the form",
		"https://host/a%zzhunter2":         "not of the form",
	}
	for raw, says := range cases {
		t.Run(raw, func(t *testing.T) {
			store := NewStore(t.TempDir(), loopback)
			_, err := store.Fetch(t.Context(), Source{URL: raw})
			sources.WantError(t, err, failure.ErrInvalid, says)
			sources.WantNoSecret(t, err, "hunter2")
			_, err = store.Folder(Source{URL: raw}, strings.Repeat("0", 40))
			sources.WantError(t, err, failure.ErrInvalid, says)
			sources.WantNoSecret(t, err, "hunter2")
		})
	}
}

func TestMissingRefsAreNamed(t *testing.T) {
	repo := sources.NewGitRepo(t)
	server := sources.ServeGit(t, repo, httptest.NewServer)
	ssh := sources.ServeSSH(t, repo)
	store := NewStore(t.TempDir(), loopback)

	for _, src := range []Source{{URL: server.RepoURL()}, {URL: ssh.RepoURL(), Auth: authOf(ssh)}} {
		_, err := store.Fetch(t.Context(), src)
		sources.WantError(t, err, failure.ErrNotFound, "the repository is empty")
	}

	repo.Write("a", "1")
	repo.Push("first")
	repo.Git("tag", "v1.0.0")
	repo.Git("branch", "gone")
	repo.PushAll()
	fetchOK(t, store, Source{URL: server.RepoURL(), Ref: &sourcev1.GitRepositoryRef{Branch: "gone"}})
	repo.Git("push", "--quiet", "origin", ":gone")

	cases := map[string]struct {
		ref  sourcev1.GitRepositoryRef
		kind error
		says string
	}{
		"deleted branch": {sourcev1.GitRepositoryRef{Branch: "gone"}, failure.ErrNotFound, `no branch "gone"`},
		"tag":            {sourcev1.GitRepositoryRef{Tag: "v9"}, failure.ErrNotFound, `no tag "v9"`},
		"semver":         {sourcev1.GitRepositoryRef{SemVer: ">=2"}, failure.ErrNotFound, `none of the repository's 1 tags`},
		"bad semver":     {sourcev1.GitRepositoryRef{SemVer: "one"}, failure.ErrInvalid, "not a range of versions"},
		"name":           {sourcev1.GitRepositoryRef{Name: "main"}, failure.ErrNotFound, "refs/heads/main"},
		"commit":         {sourcev1.GitRepositoryRef{Commit: strings.Repeat("ab", 20)}, failure.ErrNotFound, "in none of the branches"},
		"short commit":   {sourcev1.GitRepositoryRef{Commit: "abcdef"}, failure.ErrInvalid, "not a full hash"},
		"commit, branch": {sourcev1.GitRepositoryRef{Commit: strings.Repeat("ab", 20), Branch: "gone"}, failure.ErrNotFound, `no branch "gone"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := store.Fetch(t.Context(), Source{URL: server.RepoURL(), Ref: &tc.ref})
			sources.WantError(t, err, tc.kind, tc.says)
		})
	}

	if err := os.RemoveAll(filepath.Join(repo.Root, repo.Name)); err != nil {
		t.Fatal(err)
	}
	_, err := store.Fetch(t.Context(), Source{URL: server.RepoURL()})
	sources.WantError(t, err, failure.ErrNotFound, "there is no Git repository at this URL")
}

func TestAServerThatIsNoGitServerIsExplained(t *testing.T) {
	const secret = "hunter2"
	pack := func(line string) string { return fmt.Sprintf("%04x%s", len(line)+4, line) }
	cases := map[string]struct {
		status int
		kind   string
		body   string
		want   error
		says   string
	}{
		"web page":     {200, "text/html", "<html>", failure.ErrInvalid, "does not answer as a Git server"},
		"unavailable":  {503, "text/plain", "", failure.ErrServer, "answered 503"},
		"forbidden":    {403, "text/plain", "", failure.ErrAuthentication, "denies access"},
		"error line":   {200, "application/x-git-upload-pack-advertisement", pack("ERR no\x1b[2J bot:" + secret + "\n"), failure.ErrNotFound, "the server says: no\ufffd[2J bot:***"},
		"half a line":  {200, "application/x-git-upload-pack-advertisement", "00ff# service", nil, "listing the refs"},
		"endless refs": {200, "application/x-git-upload-pack-advertisement", pack("# service=git-upload-pack\n") + "0000" + pack(strings.Repeat("a", 40)+" refs/heads/a\x00ofs-delta\n") + strings.Repeat(pack(strings.Repeat("a", 40)+" refs/heads/x\n"), 4000), failure.ErrTooLarge, "limit of 64 KiB"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", tc.kind)
				w.WriteHeader(tc.status)
				_, _ = io.WriteString(w, tc.body)
			}))
			defer server.Close()
			store := NewStore(t.TempDir(), loopback)
			store.limits.refs = 64 * limit.KiB
			_, err := store.Fetch(t.Context(), Source{URL: server.URL, Auth: transport.Auth{Username: "bot", Password: secret}})
			if tc.want == nil {
				tc.want = err
				wantTransient(t, err)
			}
			sources.WantError(t, err, tc.want, tc.says)
			sources.WantNoSecret(t, err, secret)
		})
	}
}

func wantTransient(t *testing.T, err error) {
	t.Helper()
	for _, kind := range []error{failure.ErrNotFound, failure.ErrAuthentication, failure.ErrInvalid, failure.ErrTooLarge, failure.ErrDigest} {
		if err == nil || errors.Is(err, kind) {
			t.Errorf("got %v, want a transient error", err)
		}
	}
}

func TestAServerThatHangsIsGivenUp(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	auth := authOf(sources.ServeSSH(t, sources.NewGitRepo(t)))
	for _, scheme := range []string{"http", "ssh"} {
		t.Run(scheme, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			begin := time.Now()
			_, err := NewStore(t.TempDir(), loopback).Fetch(ctx, Source{URL: scheme + "://" + listener.Addr().String() + "/a", Auth: auth})
			sources.WantError(t, err, context.DeadlineExceeded, "the time for it is over")
			wantTransient(t, err)
			if took := time.Since(begin); took > 5*time.Second {
				t.Errorf("took %s", took)
			}
		})
	}
}

func TestABrokenConnectionLeavesTheStoreUsable(t *testing.T) {
	repo := sources.NewGitRepo(t)
	repo.Write("a", strings.Repeat("0123456789abcdef", 10))
	repo.Push("first")
	server := sources.ServeGit(t, repo, httptest.NewServer)
	dir := t.TempDir()
	store := NewStore(dir, loopback)
	fetchOK(t, store, Source{URL: server.RepoURL()})
	repo.Write("a", "2")
	repo.Push("second")
	server.Set(func() {
		server.Wrap = func(w http.ResponseWriter, req *http.Request, backend http.Handler) bool {
			if req.Method != http.MethodPost {
				return false
			}
			whole := httptest.NewRecorder()
			backend.ServeHTTP(whole, req)
			w.Header().Set("Content-Type", whole.Header().Get("Content-Type"))
			_, _ = w.Write(whole.Body.Bytes()[:whole.Body.Len()-60])
			panic(http.ErrAbortHandler)
		}
	})
	before := openFiles(t)
	for range 5 {
		_, err := store.Fetch(t.Context(), Source{URL: server.RepoURL()})
		wantTransient(t, err)
	}
	if after := openFiles(t); after > before+3 {
		t.Errorf("%d files are open, %d before", after, before)
	}
	left, _ := filepath.Glob(filepath.Join(dir, "*", disk.Temporary))
	inside, _ := filepath.Glob(filepath.Join(dir, "*", "*", "objects", "pack", disk.Temporary))
	if len(left)+len(inside) != 0 {
		t.Errorf("left behind: %v %v", left, inside)
	}
	server.Set(func() { server.Wrap = nil })
	if commit := fetchOK(t, store, Source{URL: server.RepoURL()}); text(t, commit, "a") != "2" {
		t.Errorf("got %s", commit.Hash)
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("needs /proc")
	}
	return len(open)
}

func TestARepositoryBeyondTheLimitsIsRefused(t *testing.T) {
	repo := sources.NewGitRepo(t)
	// A megabyte of zeros is transferred as a kilobyte.
	repo.Write("zeros", strings.Repeat("\x00", limit.MiB))
	for i := range 20 {
		repo.Write(fmt.Sprintf("f%d", i), fmt.Sprint(i))
	}
	repo.Push("first")
	server := sources.ServeGit(t, repo, httptest.NewServer)
	cases := map[string]struct {
		lower func(*limits)
		says  string
	}{
		"pack":   {func(l *limits) { l.pack = limit.KiB }, "the commit's pack is larger than the limit of 1 KiB"},
		"object": {func(l *limits) { l.contents.Object, l.contents.Oversized = 512*limit.KiB, 512*limit.KiB }, "the file zeros has 1 MiB, and the limit is 512 KiB"},
		"chain":  {func(l *limits) { l.contents.Chain = 512 * limit.KiB }, "a chain of differences in the commit's pack is larger than the limit of 512 KiB"},
		"inflated": {func(l *limits) { l.contents.Inflated = limit.MiB },
			"what the objects of the commit's pack inflate to, together, is larger than the limit of 1 MiB"},
		"objects": {func(l *limits) { l.contents.Objects = 10 }, "the number of objects in the commit's pack is over the limit of 10"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			store := NewStore(t.TempDir(), loopback)
			tc.lower(&store.limits)
			_, err := store.Fetch(t.Context(), Source{URL: server.RepoURL()})
			sources.WantError(t, err, failure.ErrTooLarge, tc.says)
			left, _ := filepath.Glob(filepath.Join(store.dir, "*", "*"))
			if len(left) != 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}
