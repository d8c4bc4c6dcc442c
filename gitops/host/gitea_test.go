package host

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
)

// realGitea is a running Gitea with the user acme.
type realGitea struct {
	t              *testing.T
	url, dir, path string
}

const giteaSettings = `
I_AM_BEING_UNSAFE_RUNNING_AS_ROOT = true
RUN_USER = %s
[database]
DB_TYPE = sqlite3
PATH = %[2]s/gitea.db
[repository]
ROOT = %[2]s/repositories
[security]
INSTALL_LOCK = true
[server]
HTTP_ADDR = 127.0.0.1
HTTP_PORT = %[3]d
ROOT_URL = http://127.0.0.1:%[3]d/
OFFLINE_MODE = true
STATIC_ROOT_PATH = %[4]s
[log]
LEVEL = Error
`

// startGitea starts the Gitea that `make gitea` built.
func startGitea(t *testing.T) *realGitea {
	t.Helper()
	built := os.Getenv("KUBEOP_GITEA")
	if built == "" {
		t.Skip("KUBEOP_GITEA names no folder with a Gitea; make gitea builds one and runs this test")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	listener.Close()
	self, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	g := &realGitea{t: t, url: fmt.Sprintf("http://127.0.0.1:%d", port), dir: t.TempDir(), path: filepath.Join(built, "gitea")}
	settings := fmt.Sprintf(giteaSettings, self.Username, g.dir, port, filepath.Join(built, "src"))
	if err := os.WriteFile(filepath.Join(g.dir, "app.ini"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	web := g.command("web")
	if err := web.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = web.Process.Kill()
		_ = web.Wait()
	})
	deadline := time.Now().Add(time.Minute)
	for {
		res, err := http.Get(g.url + "/api/healthz")
		if err == nil {
			res.Body.Close()
			if res.StatusCode == http.StatusOK {
				break
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("Gitea does not answer: %v", err)
		}
		time.Sleep(100 * time.Millisecond)
	}
	g.run("admin", "user", "create", "--username", "acme", "--password", "a-password-of-acme", "--email", "acme@example.com", "--admin", "--must-change-password=false")
	return g
}

func (g *realGitea) command(args ...string) *exec.Cmd {
	cmd := exec.Command(g.path, append([]string{"--config", filepath.Join(g.dir, "app.ini"), "--work-path", g.dir}, args...)...)
	cmd.Env = append(os.Environ(), "GITEA_WORK_DIR="+g.dir, "HOME="+g.dir)
	return cmd
}

func (g *realGitea) run(args ...string) string {
	g.t.Helper()
	out, err := g.command(args...).Output()
	if err != nil {
		g.t.Fatalf("%v: %v\n%s", args, err, out)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return lines[len(lines)-1] // Before it may be warnings.
}

// token makes an access token with a scope.
func (g *realGitea) token(scopes string) string {
	g.t.Helper()
	return g.run("admin", "user", "generate-access-token", "--username", "acme", "--token-name", scopes, "--scopes", scopes, "--raw")
}

// call calls Gitea's API as acme, and decodes the answer into out.
func (g *realGitea) call(method, path string, in, out any) {
	g.t.Helper()
	body, err := json.Marshal(in)
	if err != nil {
		g.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(g.t.Context(), method, g.url+"/api/v1"+path, bytes.NewReader(body))
	if err != nil {
		g.t.Fatal(err)
	}
	req.SetBasicAuth("acme", "a-password-of-acme")
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		g.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode >= 300 {
		g.t.Fatalf("%s %s: %s %v: %s", method, path, res.Status, err, text)
	}
	if err := json.Unmarshal(text, out); err != nil {
		g.t.Fatalf("%s %s: %v in %s", method, path, err, text)
	}
}

// TestARealGiteaTakesStatusesAndPullRequests sets statuses and opens a pull request at a Gitea that is no fake.
func TestARealGiteaTakesStatusesAndPullRequests(t *testing.T) {
	g := startGitea(t)
	var ignored any
	g.call("POST", "/user/repos", map[string]any{"name": "shop", "auto_init": true, "default_branch": "main"}, &ignored)
	g.call("POST", "/repos/acme/shop/contents/app.yaml", map[string]any{"content": "YQ==", "branch": "main", "new_branch": "scale"}, &ignored)
	var branch struct{ Commit struct{ ID string } }
	g.call("GET", "/repos/acme/shop/branches/main", nil, &branch)
	commit := branch.Commit.ID
	with := func(token string) *Repository {
		t.Helper()
		r, err := Open(loopback, Place{URL: g.url + "/acme/shop.git", Type: Gitea}, transport.Auth{BearerToken: token}, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(r.Close)
		return r
	}

	r := with(g.token("write:repository,write:issue"))
	for _, s := range []State{Pending, Failure, Failure, Success, Canceled} {
		err := r.SetStatus(t.Context(), Status{Commit: commit, Context: "kubeop/acme", State: s, Description: "it is " + string(s), Link: "https://example.com"})
		if err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	var statuses []struct{ Status, Context, Description string }
	g.call("GET", "/repos/acme/shop/commits/"+commit+"/statuses?sort=oldest", nil, &statuses)
	var got []string
	for _, s := range statuses {
		got = append(got, s.Context+" "+s.Status+" "+s.Description)
	}
	want := []string{"kubeop/acme pending it is pending", "kubeop/acme failure it is failure", "kubeop/acme failure it is failure", "kubeop/acme success it is success", "kubeop/acme error it is canceled"}
	if !slices.Equal(got, want) {
		t.Errorf("the statuses are %q, want %q", got, want)
	}

	number, link, err := r.OpenPullRequest(t.Context(), PullRequest{Title: "Scale web", Body: "more", From: "scale", Into: "main"})
	if err != nil || number != 1 || link == "" {
		t.Fatalf("opened %d at %q: %v", number, link, err)
	}
	listed, err := r.PullRequests(t.Context())
	if err != nil || len(listed) != 1 || listed[0].Number != 1 || listed[0].From != "scale" || listed[0].Into != "main" || len(listed[0].Commit) != 40 || listed[0].Fork {
		t.Errorf("the open pull requests are %+v, %v", listed, err)
	}
	if err := r.Comment(t.Context(), number, "**the plan**"); err != nil {
		t.Fatal(err)
	}
	var comments []struct{ Body string }
	g.call("GET", "/repos/acme/shop/issues/1/comments", nil, &comments)
	if len(comments) != 1 || comments[0].Body != "**the plan**" {
		t.Errorf("the comments are %+v", comments)
	}

	status := Status{Commit: commit, Context: "kubeop/acme", State: Success}
	if err := with(g.token("read:repository")).SetStatus(t.Context(), status); !errors.Is(err, failure.ErrAuthentication) || !strings.Contains(err.Error(), "write:repository") {
		t.Errorf("a token that may only read: %v", err)
	}
	if err := with("no-token-at-all").SetStatus(t.Context(), status); !errors.Is(err, failure.ErrAuthentication) {
		t.Errorf("an unknown token: %v", err)
	}
	status.Commit = hash
	if err := r.SetStatus(t.Context(), status); err == nil {
		t.Error("a commit that does not exist got a status")
	}
}
