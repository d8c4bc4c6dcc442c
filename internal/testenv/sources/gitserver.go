package sources

import (
	"crypto/subtle"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// GitRepo is a repository on a test server, with a clone to commit in.
type GitRepo struct {
	T    *testing.T
	Root string // of the server
	Name string
	Work string
}

// NewGitRepo creates an empty bare repository below a new root.
func NewGitRepo(t *testing.T) *GitRepo {
	t.Helper()
	r := &GitRepo{T: t, Root: t.TempDir(), Name: "app.git", Work: t.TempDir()}
	r.Run(r.Root, "init", "--quiet", "--bare", "--initial-branch=main", r.Name)
	r.Run(r.Work, "init", "--quiet", "--initial-branch=main")
	r.Git("remote", "add", "origin", filepath.Join(r.Root, r.Name))
	return r
}

// Copy returns a copy of the repository and its clone for another test, which is cheaper than the same commits again.
func (r *GitRepo) Copy(t *testing.T) *GitRepo {
	t.Helper()
	c := &GitRepo{T: t, Root: t.TempDir(), Name: r.Name, Work: t.TempDir()}
	if err := errors.Join(os.CopyFS(c.Root, os.DirFS(r.Root)), os.CopyFS(c.Work, os.DirFS(r.Work))); err != nil {
		t.Fatal(err)
	}
	c.Git("remote", "set-url", "origin", filepath.Join(c.Root, c.Name))
	return c
}

// Run runs git in a folder, without the user's configuration.
func (r *GitRepo) Run(dir string, args ...string) string {
	r.T.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
		"GIT_AUTHOR_NAME=t", "GIT_AUTHOR_EMAIL=t@example.com", "GIT_COMMITTER_NAME=t", "GIT_COMMITTER_EMAIL=t@example.com",
		"GIT_ALLOW_PROTOCOL=file", "GIT_TEMPLATE_DIR=", // No maintenance after each command, and no sample hooks in each repository.
		"GIT_CONFIG_COUNT=3", "GIT_CONFIG_KEY_0=maintenance.auto", "GIT_CONFIG_VALUE_0=false", "GIT_CONFIG_KEY_1=receive.autogc", "GIT_CONFIG_VALUE_1=false",
		"GIT_CONFIG_KEY_2=core.fsync", "GIT_CONFIG_VALUE_2=none")
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.T.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// Git runs git in the clone.
func (r *GitRepo) Git(args ...string) string {
	r.T.Helper()
	return r.Run(r.Work, args...)
}

func (r *GitRepo) Write(path, content string) {
	r.T.Helper()
	path = filepath.Join(r.Work, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		r.T.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		r.T.Fatal(err)
	}
}

// Push commits everything and pushes all branches and tags; it returns the commit's hash.
func (r *GitRepo) Push(message string) string {
	r.T.Helper()
	r.Git("add", "--all")
	r.Git("commit", "--quiet", "--allow-empty", "--message", message)
	r.PushAll()
	return r.Git("rev-parse", "HEAD")
}

// PushAll pushes all branches and tags.
func (r *GitRepo) PushAll() {
	r.T.Helper()
	r.Git("push", "--quiet", "--force", "origin", "refs/heads/*", "refs/tags/*")
}

// GitServer serves a root over smart HTTP and records the requests.
type GitServer struct {
	*httptest.Server
	backend  http.Handler
	mu       sync.Mutex
	requests []string
	// Allow reports whether a request is authorized. Nil authorizes all.
	Allow func(*http.Request) bool
	// Wrap may answer the request itself. It returns true if it did.
	Wrap func(http.ResponseWriter, *http.Request, http.Handler) bool
}

// RepoURL returns the URL of the repository.
func (s *GitServer) RepoURL() string { return s.URL + "/app.git" }

// Seen returns the requests since the last call, such as "GET /app.git/info/refs".
func (s *GitServer) Seen() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := s.requests
	s.requests = nil
	return seen
}

// Set calls change, which may change Allow or Wrap while requests are in progress.
func (s *GitServer) Set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

func (s *GitServer) serve(w http.ResponseWriter, req *http.Request) {
	s.mu.Lock()
	s.requests = append(s.requests, req.Method+" "+req.URL.Path)
	allow, wrap := s.Allow, s.Wrap
	s.mu.Unlock()
	if allow != nil && !allow(req) {
		w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
		http.Error(w, "no: "+req.Header.Get("Authorization"), http.StatusUnauthorized)
		return
	}
	if wrap == nil || !wrap(w, req, s.backend) {
		s.backend.ServeHTTP(w, req)
	}
}

// ServeGit serves a repository with the server that start returns, such as httptest.NewServer.
func ServeGit(t *testing.T, repo *GitRepo, start func(http.Handler) *httptest.Server) *GitServer {
	t.Helper()
	path, err := exec.Command("git", "--exec-path").Output()
	if err != nil {
		t.Fatal(err)
	}
	s := &GitServer{backend: &cgi.Handler{
		Path:   filepath.Join(strings.TrimSpace(string(path)), "git-http-backend"),
		Env:    []string{"GIT_PROJECT_ROOT=" + repo.Root, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_GLOBAL=/dev/null"},
		Stderr: io.Discard,
		Logger: log.New(io.Discard, "", 0),
	}}
	s.Server = start(http.HandlerFunc(s.serve))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	t.Cleanup(s.Close)
	return s
}

// Basic authorizes requests with this user and password.
func Basic(user, password string) func(*http.Request) bool {
	return func(req *http.Request) bool {
		u, p, ok := req.BasicAuth()
		return ok && subtle.ConstantTimeCompare([]byte(u+":"+p), []byte(user+":"+password)) == 1
	}
}

// Bearer authorizes requests with this token.
func Bearer(token string) func(*http.Request) bool {
	return func(req *http.Request) bool { return req.Header.Get("Authorization") == "Bearer "+token }
}
