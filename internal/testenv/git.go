package testenv

import (
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Repo is a Git repository on the test's Git server, with a work tree to push from.
type Repo struct {
	Name, URL, User, Password string

	t   testing.TB
	env *Env
	dir string
}

// Repo creates a repository that only its user may read and write. If hook is not empty, this URL is called after each push, signed with the
// key.
func (e *Env) Repo(t testing.TB, name, hook, key string) *Repo {
	t.Helper()
	r := &Repo{Name: name, User: "dev", Password: "pass-" + name + "-word", URL: e.GitURL + "/" + name + ".git", t: t, env: e, dir: t.TempDir()}
	args := []string{"repo", "create", name, "--dir", e.clusterDir(), "--user", r.User, "--password", r.Password}
	if hook != "" {
		args = append(args, "--webhook", hook, "--webhook-secret", key)
	}
	r.run(e.cluster, args...)
	remote, err := url.Parse(r.URL)
	if err != nil {
		t.Fatal(err)
	}
	remote.User = url.UserPassword(r.User, r.Password)
	r.git("init", "-q", "-b", "main")
	r.git("remote", "add", "origin", remote.String())
	return r
}

// Push writes files, removes those with the content "-", commits and pushes. It returns the revision in kubeop's format.
func (r *Repo) Push(files map[string]string) string {
	r.t.Helper()
	for name, content := range files {
		r.write(name, content)
	}
	r.git("add", "-A")
	r.git("commit", "-q", "--allow-empty", "-m", "change")
	r.git("push", "-q", "-f", "origin", "main")
	return "main@sha1:" + strings.TrimSpace(r.git("rev-parse", "HEAD"))
}

// PushBranch is Push to another branch, which begins at the last pushed commit of main if it is new. The files stay those of main.
func (r *Repo) PushBranch(branch string, files map[string]string) string {
	r.t.Helper()
	start := "main"
	if r.git("branch", "--list", branch) != "" {
		start = branch
	}
	r.git("checkout", "-q", "-B", branch, start)
	for name, content := range files {
		r.write(name, content)
	}
	r.git("add", "-A")
	r.git("commit", "-q", "--allow-empty", "-m", "change")
	r.git("push", "-q", "-f", "origin", branch)
	revision := branch + "@sha1:" + strings.TrimSpace(r.git("rev-parse", "HEAD"))
	r.git("checkout", "-q", "main")
	return revision
}

// DeleteBranch deletes a branch on the server.
func (r *Repo) DeleteBranch(branch string) {
	r.t.Helper()
	r.git("push", "-q", "origin", "--delete", branch)
}

// Pull brings the files to what the server has, and returns its newest commit.
func (r *Repo) Pull() string {
	r.t.Helper()
	r.git("pull", "-q", "--ff-only", "origin", "main")
	return strings.TrimSpace(r.git("rev-parse", "HEAD"))
}

// Read returns a file.
func (r *Repo) Read(name string) string {
	r.t.Helper()
	text, err := os.ReadFile(filepath.Join(r.dir, name))
	if err != nil {
		r.t.Fatal(err)
	}
	return string(text)
}

// Back force-pushes an earlier revision, as Push returned it.
func (r *Repo) Back(revision string) {
	r.t.Helper()
	_, hash, _ := strings.Cut(revision, "@sha1:")
	r.git("reset", "-q", "--hard", hash)
	r.git("push", "-q", "-f", "origin", "main")
}

// Link writes a symbolic link, for the next Push.
func (r *Repo) Link(target, name string) {
	r.t.Helper()
	path := filepath.Join(r.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.Symlink(target, path); err != nil {
		r.t.Fatal(err)
	}
}

// Vanish removes the repository from the server, and Return brings it back.
func (r *Repo) Vanish() { r.rename(r.Name+".git", r.Name+".gone") }

// Return undoes Vanish.
func (r *Repo) Return() { r.rename(r.Name+".gone", r.Name+".git") }

func (r *Repo) rename(from, to string) {
	r.t.Helper()
	dir := filepath.Join(r.env.clusterDir(), "git", "repositories")
	if err := os.Rename(filepath.Join(dir, from), filepath.Join(dir, to)); err != nil {
		r.t.Fatal(err)
	}
}

func (r *Repo) write(name, content string) {
	r.t.Helper()
	path := filepath.Join(r.dir, name)
	if content == "-" {
		if err := os.RemoveAll(path); err != nil {
			r.t.Fatal(err)
		}
		return
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

func (r *Repo) git(args ...string) string {
	r.t.Helper()
	identity := []string{"-C", r.dir, "-c", "user.name=test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false"}
	return r.run("git", append(identity, args...)...)
}

func (r *Repo) run(program string, args ...string) string {
	r.t.Helper()
	out, err := exec.Command(program, args...).CombinedOutput()
	if err != nil {
		r.t.Fatalf("%s %s: %v\n%s", filepath.Base(program), args[0], err, out)
	}
	return string(out)
}
