package fetch

import (
	"crypto/subtle"
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

// gitRepo is a repository on a test server, with a clone to commit in.
type gitRepo struct {
	t    *testing.T
	root string // of the server
	name string
	work string
}

// newGitRepo makes an empty bare repository "<name>.git" below a new root.
func newGitRepo(t *testing.T) *gitRepo {
	t.Helper()
	r := &gitRepo{t: t, root: t.TempDir(), name: "app.git", work: t.TempDir()}
	r.run(r.root, "init", "--quiet", "--bare", "--initial-branch=main", r.name)
	r.run(r.work, "init", "--quiet", "--initial-branch=main")
	r.git("remote", "add", "origin", filepath.Join(r.root, r.name))
	return r
}

func (r *gitRepo) run(dir string, args ...string) string {
	r.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
		"GIT_AUTHOR_NAME=t", "GIT_AUTHOR_EMAIL=t@example.com", "GIT_COMMITTER_NAME=t", "GIT_COMMITTER_EMAIL=t@example.com",
		"GIT_ALLOW_PROTOCOL=file")
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

func (r *gitRepo) git(args ...string) string {
	r.t.Helper()
	return r.run(r.work, args...)
}

func (r *gitRepo) write(path, content string) {
	r.t.Helper()
	path = filepath.Join(r.work, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

// push commits everything and pushes all branches and tags; it returns the commit's hash.
func (r *gitRepo) push(message string) string {
	r.t.Helper()
	r.git("add", "--all")
	r.git("commit", "--quiet", "--allow-empty", "--message", message)
	r.pushAll()
	return r.git("rev-parse", "HEAD")
}

func (r *gitRepo) pushAll() {
	r.t.Helper()
	r.git("push", "--quiet", "--force", "--all", "origin")
	r.git("push", "--quiet", "--force", "--tags", "origin")
}

// gitServer serves a root over smart HTTP and counts what it is asked.
type gitServer struct {
	*httptest.Server
	backend  http.Handler
	mu       sync.Mutex
	requests []string
	// allow says whether a request may pass; nil lets all pass.
	allow func(*http.Request) bool
	// wrap may replace the answer; it returns true when it did.
	wrap func(http.ResponseWriter, *http.Request, http.Handler) bool
}

func (s *gitServer) url() string { return s.URL + "/app.git" }

// seen returns the requests since the last call, such as "GET /app.git/info/refs".
func (s *gitServer) seen() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := s.requests
	s.requests = nil
	return seen
}

// set changes allow or wrap while requests may be under way.
func (s *gitServer) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

func (s *gitServer) serve(w http.ResponseWriter, req *http.Request) {
	s.mu.Lock()
	s.requests = append(s.requests, req.Method+" "+req.URL.Path)
	allow, wrap := s.allow, s.wrap
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

func serve(t *testing.T, repo *gitRepo, start func(http.Handler) *httptest.Server) *gitServer {
	t.Helper()
	path, err := exec.Command("git", "--exec-path").Output()
	if err != nil {
		t.Fatal(err)
	}
	s := &gitServer{backend: &cgi.Handler{
		Path:   filepath.Join(strings.TrimSpace(string(path)), "git-http-backend"),
		Env:    []string{"GIT_PROJECT_ROOT=" + repo.root, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_GLOBAL=/dev/null"},
		Stderr: io.Discard,
		Logger: log.New(io.Discard, "", 0),
	}}
	s.Server = start(http.HandlerFunc(s.serve))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	t.Cleanup(s.Close)
	return s
}

func basic(user, password string) func(*http.Request) bool {
	return func(req *http.Request) bool {
		u, p, ok := req.BasicAuth()
		return ok && subtle.ConstantTimeCompare([]byte(u+":"+p), []byte(user+":"+password)) == 1
	}
}

func bearer(token string) func(*http.Request) bool {
	return func(req *http.Request) bool { return req.Header.Get("Authorization") == "Bearer "+token }
}

// fetchOK fetches and fails the test on an error.
func fetchOK(t *testing.T, store *GitStore, src Git) Commit {
	t.Helper()
	commit, err := store.Fetch(t.Context(), src)
	if err != nil {
		t.Fatalf("Fetch: %v", err)
	}
	return commit
}

// text reads a file of the commit.
func text(t *testing.T, commit Commit, path string) string {
	t.Helper()
	content, err := commit.Root.ReadFile(path)
	if err != nil {
		t.Fatalf("ReadFile(%s): %v", path, err)
	}
	return string(content)
}
