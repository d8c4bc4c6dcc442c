package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/cmd/kubeop/exit"
)

// clone is a clone of the repository that declares the app acme/shop/web.
type clone struct {
	t       *testing.T
	dir     string
	commits []string
}

func (c *clone) git(args ...string) string {
	c.t.Helper()
	out, err := exec.Command("git", append([]string{"-C", c.dir, "-c", "user.name=ann", "-c", "user.email=ann@example.com"}, args...)...).CombinedOutput()
	if err != nil {
		c.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// commit commits contents of files; "" deletes one.
func (c *clone) commit(files map[string]string) {
	c.t.Helper()
	for name, text := range files {
		file := filepath.Join(c.dir, name)
		if text == "" {
			if err := os.Remove(file); err != nil {
				c.t.Fatal(err)
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			c.t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			c.t.Fatal(err)
		}
	}
	c.git("add", "-A")
	c.git("commit", "-qm", "change")
	c.commits = append(c.commits, c.git("rev-parse", "HEAD"))
}

func (c *clone) read(name string) string {
	c.t.Helper()
	text, err := os.ReadFile(filepath.Join(c.dir, name))
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// testRollback has an app whose second commit failed, and a third that changed another app.
func testRollback(t *testing.T, w *world) {
	w.t = t
	for key, value := range map[string]string{"GIT_AUTHOR_NAME": "ann", "GIT_AUTHOR_EMAIL": "ann@example.com", "GIT_COMMITTER_NAME": "ann", "GIT_COMMITTER_EMAIL": "ann@example.com"} {
		t.Setenv(key, value)
	}
	upstream := t.TempDir()
	c := &clone{t: t, dir: t.TempDir()}
	c.git("init", "-q", "--bare", upstream)
	c.git("init", "-q", "-b", "main")
	const folder = "projects/shop/apps/web/"
	c.commit(map[string]string{folder + "app.yaml": "good", folder + "values.yaml": "a"})
	c.commit(map[string]string{folder + "app.yaml": "bad", folder + "values.yaml": "", folder + "new.yaml": "b"})
	c.commit(map[string]string{"projects/shop/apps/api/app.yaml": "other"})
	c.git("remote", "add", "origin", upstream)
	c.git("push", "-qu", "origin", "main")

	app := &v1alpha1.App{}
	if err := w.Get(t.Context(), client.ObjectKey{Namespace: "kubeop-acme-shop", Name: "web"}, app); err != nil {
		t.Fatal(err)
	}
	app.Annotations[v1alpha1.RevisionAnnotation] = "main@sha1:" + c.commits[1]
	if err := w.Update(t.Context(), app); err != nil {
		t.Fatal(err)
	}
	app.Status.Deliveries[0].Commit, app.Status.Deliveries[1].Commit = c.commits[1], c.commits[0]
	w.status(app)

	fails := func(want string, args ...string) {
		t.Helper()
		if out, complaint, code := run(t, append([]string{"rollback"}, args...)...); code != exit.Failure || !strings.Contains(complaint, want) {
			t.Errorf("%v: exit code %d: %s%s, want %s", args, code, out, complaint, want)
		}
	}
	t.Chdir(t.TempDir())
	fails("run this in a clone of the repository", "acme/shop/web")
	another := &clone{t: t, dir: t.TempDir()}
	another.git("init", "-q")
	t.Chdir(another.dir)
	fails("it is another repository, or `git fetch` is needed", "acme/shop/web")

	t.Chdir(filepath.Join(c.dir, "projects"))
	if err := os.WriteFile(filepath.Join(c.dir, folder, "app.yaml"), []byte("in work"), 0o644); err != nil {
		t.Fatal(err)
	}
	fails("has changes that are not committed", "acme/shop/web")
	if got := c.read(folder + "app.yaml"); got != "in work" {
		t.Fatalf("the change is lost: %s", got)
	}
	c.git("checkout", "-q", ".")
	fails("is already as it was at "+c.commits[1][:8], "acme/shop/web", c.commits[1])
	fails("does not have projects/shop/apps/web", "acme/shop/web", "HEAD~9")

	out, complaint, code := run(t, "rollback", "acme/shop/web", "--push")
	if code != exit.OK || !strings.Contains(out, "to origin/main: projects/shop/apps/web is as it was at "+c.commits[0][:8]) || !strings.Contains(out, "`kubeop wait ") {
		t.Fatalf("%d: %s%s", code, out, complaint)
	}
	if head := c.git("rev-parse", "HEAD"); head != c.commits[2] || c.read(folder+"app.yaml") != "bad" {
		t.Error("the clone has changed")
	}
	c.rolledBack(folder)
	fails("is already as it was at "+c.commits[0][:8]+" in origin/main", "acme/shop/web", "--push")

	// Without --push, the commit is in the clone.
	c.git("reset", "-q", "--hard", c.commits[2])
	c.git("push", "-qf")
	if out, complaint, code := run(t, "rollback", "acme/shop/web"); code != exit.OK || !strings.Contains(out, "Committed: projects/shop/apps/web is as it was at "+c.commits[0][:8]) {
		t.Fatalf("%d: %s%s", code, out, complaint)
	}
	c.git("push", "-q")
	c.rolledBack(folder)

	// Another commit changed the app meanwhile.
	c.git("reset", "-q", "--hard", c.commits[2])
	c.commit(map[string]string{folder + "app.yaml": "repaired"})
	c.git("push", "-qf")
	c.git("reset", "-q", "--hard", c.commits[2])
	fails("another commit changed projects/shop/apps/web", "acme/shop/web", "--push")
}

// rolledBack checks that the server has one more commit, with the app as it was at first.
func (c *clone) rolledBack(folder string) {
	c.t.Helper()
	c.git("pull", "-q")
	if got := c.read(folder+"app.yaml") + c.read(folder+"values.yaml") + c.read("projects/shop/apps/api/app.yaml"); got != "gooda"+"other" {
		c.t.Errorf("the files are %q", got)
	}
	if _, err := os.Stat(filepath.Join(c.dir, folder, "new.yaml")); err == nil {
		c.t.Error("a file of the bad commit is still there")
	}
	if c.git("rev-parse", "HEAD") != c.git("rev-parse", "origin/main") || c.git("rev-parse", "HEAD~1") != c.commits[2] {
		c.t.Error("it is not one pushed commit on top of the others")
	}
	if subject := c.git("log", "-1", "--format=%s"); subject != "Roll back acme/shop/web to "+c.commits[0][:8] {
		c.t.Errorf("the commit is %q", subject)
	}
}
