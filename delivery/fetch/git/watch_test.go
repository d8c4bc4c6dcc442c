package git

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"golang.org/x/crypto/ssh"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

// impatient returns time limits short enough for a test; those that are not lowered are never reached.
func impatient(lower func(*limits)) limits {
	l := defaultLimits()
	l.Whole, l.Answer, l.Stall = time.Minute, time.Minute, time.Minute
	lower(&l)
	return l
}

const soon = 150 * time.Millisecond

// wantEnded expects a transient error that names the limit, long before the limits that were not lowered.
func wantEnded(t *testing.T, begin time.Time, err error, says string) {
	t.Helper()
	sources.WantError(t, err, failure.ErrSlow, says+" the limit of 150ms")
	wantTransient(t, err)
	if took := time.Since(begin); took > 10*time.Second {
		t.Errorf("took %s", took)
	}
}

func TestFetchEndsWithASlowServer(t *testing.T) {
	pack := func(line string) string { return fmt.Sprintf("%04x%s", len(line)+4, line) }
	line := pack(strings.Repeat("a", 40) + " refs/heads/main\n")
	refs := pack("# service=git-upload-pack\n") + "0000" + pack(strings.Repeat("a", 40)+" refs/heads/a\x00ofs-delta\n")
	cases := map[string]struct {
		lower    func(*limits)
		ServeGit http.HandlerFunc
		says     string
	}{
		"no answer":        {func(l *limits) { l.Answer = soon }, sources.Hang("", ""), "the server gave no answer within"},
		"half an answer":   {func(l *limits) { l.Stall = soon }, sources.Hang(refs, ""), "the server sent nothing more within"},
		"a trickle":        {func(l *limits) { l.Whole, l.Stall = soon, 100*time.Millisecond }, sources.Hang(refs, line), "it did not end within"},
		"a redirect first": {func(l *limits) { l.Answer = soon }, sources.RedirectOnce(sources.Hang("", "")), "the server gave no answer within"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(tc.ServeGit)
			defer server.Close()
			begin := time.Now()

			store := NewStore(t.TempDir(), loopback)
			store.limits = impatient(tc.lower)
			_, err := store.Fetch(t.Context(), Source{URL: server.URL + "/a"})
			wantEnded(t, begin, err, tc.says)
		})
	}
}

// TestFetchEndsWithASlowPack: the server lists its refs and stalls in the pack, which must not start again with a new store.
func TestFetchEndsWithASlowPack(t *testing.T) {
	repo := sources.NewGitRepo(t)
	repo.Write("a", "1")
	repo.Push("first")
	server := sources.ServeGit(t, repo, httptest.NewServer)
	store := NewStore(t.TempDir(), loopback)
	fetchOK(t, store, Source{URL: server.RepoURL()})
	repo.Push("second")
	server.Set(func() {
		server.Wrap = func(w http.ResponseWriter, req *http.Request, _ http.Handler) bool {
			if req.Method != http.MethodPost {
				return false
			}
			_, _ = io.Copy(io.Discard, req.Body)
			_ = http.NewResponseController(w).Flush()
			<-req.Context().Done()
			return true
		}
	})
	server.Seen()
	store.limits = impatient(func(l *limits) { l.Stall = soon })
	begin := time.Now()
	_, err := store.Fetch(t.Context(), Source{URL: server.RepoURL()})
	wantEnded(t, begin, err, "the server sent nothing more within")
	if asked := server.Seen(); len(asked) != 2 {
		t.Errorf("asked again: %v", asked)
	}
}

func TestFetchEndsWithASlowSSHServer(t *testing.T) {
	repo := sources.NewGitRepo(t)
	repo.Write("a", "1")
	repo.Push("first")
	honest := sources.ServeSSH(t, repo)
	fetchOK(t, NewStore(t.TempDir(), loopback), Source{URL: honest.RepoURL(), Auth: authOf(honest)})
	line := strings.Repeat("a", 40) + " refs/heads/main\x00ofs-delta side-band-64k\n"
	refs := fmt.Sprintf("%04x%s0000", len(line)+4, line)

	cases := map[string]struct {
		lower    func(*limits)
		ServeGit func(net.Conn, *ssh.ServerConfig)
		says     string
	}{
		"no greeting": {func(l *limits) { l.Answer = soon }, func(net.Conn, *ssh.ServerConfig) {}, "the server gave no answer within"},
		"no session":  {func(l *limits) { l.Answer = 2 * soon }, sshSays(false, ""), "the server gave no answer within the limit of 300ms"},
		"no refs":     {func(l *limits) { l.Answer = 2 * soon }, sshSays(true, ""), "the server gave no answer within the limit of 300ms"},
		"half a list": {func(l *limits) { l.Stall = soon }, sshSays(true, "00ff"), "the server sent nothing more within"},
		"no pack":     {func(l *limits) { l.Answer = 2 * soon }, sshSays(true, refs), "the server gave no answer within the limit of 300ms"},
		"half a pack": {func(l *limits) { l.Stall = soon }, sshSays(true, refs+"0008NAK\n0010"), "the server sent nothing more within"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer listener.Close()
			go func() {
				for {
					conn, err := listener.Accept()
					if err != nil {
						return
					}
					go tc.ServeGit(conn, honest.Config)
				}
			}()
			auth := authOf(honest)
			auth.KnownHosts = []byte(strings.ReplaceAll(string(auth.KnownHosts), portOf(honest.Address), portOf(listener.Addr().String())))
			store := NewStore(t.TempDir(), loopback)
			store.limits = impatient(tc.lower)
			begin := time.Now()
			_, err = store.Fetch(t.Context(), Source{URL: "ssh://git@" + listener.Addr().String() + "/app.git", Auth: auth, Ref: &sourcev1.GitRepositoryRef{Branch: "main"}})
			sources.WantError(t, err, failure.ErrSlow, tc.says)
			wantTransient(t, err)
			if took := time.Since(begin); took > 10*time.Second {
				t.Errorf("took %s", took)
			}
		})
	}
}

func portOf(address string) string {
	_, port, _ := net.SplitHostPort(address)
	return "]:" + port
}

// sshSays accepts a session or leaves it open, sends some text, and then nothing more.
func sshSays(accept bool, text string) func(net.Conn, *ssh.ServerConfig) {
	return func(conn net.Conn, config *ssh.ServerConfig) {
		_, channels, requests, err := ssh.NewServerConn(conn, config)
		if err != nil {
			return
		}
		go ssh.DiscardRequests(requests)
		for offered := range channels {
			if !accept {
				continue
			}
			channel, requests, err := offered.Accept()
			if err != nil {
				return
			}
			for request := range requests {
				_ = request.Reply(true, nil)
				_, _ = io.WriteString(channel, text)
			}
		}
	}
}
