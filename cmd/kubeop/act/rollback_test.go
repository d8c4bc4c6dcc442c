package act

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/utils/clock"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/internal/testenv/memory"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

// TestRollbackCommitsTheFolderAsItWas, and nothing beside it, in a clone that has the commit that the cluster runs.
func TestRollbackCommitsTheFolderAsItWas(t *testing.T) {
	const folder = "projects/shop/apps/web/"
	for key, value := range map[string]string{"GIT_AUTHOR_NAME": "ann", "GIT_AUTHOR_EMAIL": "ann@example.com", "GIT_COMMITTER_NAME": "ann", "GIT_COMMITTER_EMAIL": "ann@example.com"} {
		t.Setenv(key, value)
	}
	repo := sources.NewGitRepo(t)
	repo.Write(folder+"app.yaml", "good")
	good := repo.Push("good")
	repo.Write(folder+"app.yaml", "bad")
	repo.Write("other", "new")
	bad := repo.Push("bad")
	app := newApp()
	app.Annotations[v1alpha1.RevisionAnnotation] = "main@sha1:" + bad
	app.Status.Deliveries = []v1alpha1.DeliveryRecord{{Commit: bad, Result: v1alpha1.DeliveryFailed}, {Commit: good, Result: v1alpha1.DeliverySucceeded}}
	undeclared := newApp()
	undeclared.Name = "free"
	delete(undeclared.Annotations, v1alpha1.FolderAnnotation)
	other := newApp()
	other.Name = "other"
	s := memory.Serve(t, app, undeclared, other)
	t.Chdir(repo.Work)
	rollback := func(args ...string) (string, error) {
		return newCall(s, clock.RealClock{}, "").run(t, Rollback, args...)
	}
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(repo.Work, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}

	repo.Write(folder+"app.yaml", "in work")
	out, err := rollback("acme/shop/web")
	wantEnd(t, out, err, "", "has changes that are not committed; commit or stash them")
	if got := read(folder + "app.yaml"); got != "in work" {
		t.Fatalf("the change is lost: %q", got)
	}
	repo.Git("checkout", "--quiet", ".")
	out, err = rollback("acme/shop/web", bad)
	wantEnd(t, out, err, "", "projects/shop/apps/web is already as it was at "+bad[:8])
	out, err = rollback("acme/shop/other")
	wantEnd(t, out, err, "", "no earlier delivery of the app acme/shop/other succeeded; name a commit")
	out, err = rollback("acme/shop/free", good)
	wantEnd(t, out, err, "", "no repository declares the app acme/shop/free")

	out, err = rollback("acme/shop/web")
	wantEnd(t, out, err, "Committed: projects/shop/apps/web is as it was at "+good[:8]+".\nLook at it with `git show`, and push it.\n", "")
	if app, other := read(folder+"app.yaml"), read("other"); app != "good" || other != "new" {
		t.Errorf("app.yaml is %q, the file beside the folder %q", app, other)
	}
	if got, want := repo.Git("log", "-1", "--format=%s"), "Roll back acme/shop/web to "+good[:8]; strings.TrimSpace(got) != want {
		t.Errorf("the commit is %q, want %q", got, want)
	}
	if got := strings.TrimSpace(repo.Git("rev-parse", "HEAD~1")); got != bad {
		t.Errorf("the commit before is %s, want %s", got, bad)
	}

	t.Chdir(t.TempDir())
	out, err = rollback("acme/shop/web")
	wantEnd(t, out, err, "", "run this in a clone of the repository that declares the app acme/shop/web")
	another := sources.NewGitRepo(t)
	another.Write("a", "1")
	another.Push("first")
	t.Chdir(another.Work)
	out, err = rollback("acme/shop/web")
	wantEnd(t, out, err, "", "it is another repository, or `git fetch` is needed")
}

// TestRollbackPushesACommitAndLeavesTheCloneAsItIs commits at the server and leaves the clone as it is. It pushes nothing that is there already, or over a newer change.
func TestRollbackPushesACommitAndLeavesTheCloneAsItIs(t *testing.T) {
	const folder = "projects/shop/apps/web/"
	repo := sources.NewGitRepo(t)
	repo.Write(folder+"app.yaml", "good")
	good := repo.Push("good")
	repo.Write(folder+"app.yaml", "bad")
	repo.Write("other", "new")
	bad := repo.Push("bad")
	app := newApp()
	app.Annotations[v1alpha1.RevisionAnnotation] = "main@sha1:" + bad
	s := memory.Serve(t, app)
	t.Chdir(repo.Work)
	repo.Git("fetch", "--quiet")
	repo.Git("branch", "--quiet", "--set-upstream-to", "origin/main")
	rollback := func(args ...string) (string, error) {
		return newCall(s, clock.RealClock{}, "").run(t, Rollback, append(args, "--push")...)
	}
	out, err := rollback("acme/shop/web", strings.Repeat("1", 40))
	wantEnd(t, out, err, "", "commit 11111111 does not have projects/shop/apps/web")
	out, err = rollback("acme/shop/web", bad)
	wantEnd(t, out, err, "", "projects/shop/apps/web is already as it was at "+bad[:8])
	out, err = rollback("acme/shop/web", good)
	if err != nil || !strings.Contains(out, ": projects/shop/apps/web is as it was at "+good[:8]+". `git pull` brings it into this clone.\n`kubeop wait acme/shop/web --commit ") {
		t.Fatalf("%q, %v", out, err)
	}
	if got := strings.TrimSpace(repo.Git("rev-parse", "HEAD")); got != bad {
		t.Errorf("the clone is at %s, want %s", got, bad)
	}
	repo.Git("fetch", "--quiet")
	upstream := "@{upstream}"
	if got := repo.Git("show", upstream+":"+folder+"app.yaml"); got != "good" {
		t.Errorf("app.yaml at the server is %q", got)
	}
	if got := repo.Git("show", upstream+":other"); got != "new" {
		t.Errorf("the file beside the folder is %q", got)
	}
	if got, want := repo.Git("log", "-1", "--format=%s|%b", upstream), "Roll back acme/shop/web to "+good[:8]+"|Restore projects/shop/apps/web as it was at commit "+good+"."; !strings.HasPrefix(got, want) {
		t.Errorf("the commit is %q, want %q", got, want)
	}
	repo.Git("pull", "--quiet")
	repo.Write(folder+"app.yaml", "newer")
	repo.Push("newer")
	if out, err = rollback("acme/shop/web", good); err == nil {
		t.Errorf("a newer change was undone: %q", out)
	}
}

// TestRollbackFromARefusedCommit returns to what is delivered now. The clone need not have the refused commit, and nothing newer is undone.
func TestRollbackFromARefusedCommit(t *testing.T) {
	const folder = "projects/shop/apps/web/"
	repo := sources.NewGitRepo(t)
	repo.Write(folder+"app.yaml", "old")
	old := repo.Push("old")
	repo.Write(folder+"app.yaml", "good")
	good := repo.Push("good")
	repo.Git("fetch", "--quiet")
	repo.Git("branch", "--quiet", "--set-upstream-to", "origin/main")
	clone := filepath.Join(t.TempDir(), "clone")
	repo.Git("clone", "--quiet", repo.Git("remote", "get-url", "origin"), clone)
	repo.Write(folder+"app.yaml", "broken")
	broken := repo.Push("broken")
	app := newApp()
	app.Annotations[v1alpha1.RevisionAnnotation] = "main@sha1:" + good
	app.Status.Refused = &v1alpha1.Refused{Revision: "main@sha1:" + broken}
	app.Status.Deliveries = []v1alpha1.DeliveryRecord{{Commit: good, Result: v1alpha1.DeliverySucceeded}, {Commit: old, Result: v1alpha1.DeliverySucceeded}}
	s := memory.Serve(t, app)
	t.Chdir(clone)
	if out, err := newCall(s, clock.RealClock{}, "").run(t, Rollback, "acme/shop/web", "--push"); err != nil {
		t.Fatalf("%q, %v", out, err)
	}
	repo.Git("fetch", "--quiet")
	if got := repo.Git("show", "@{upstream}:"+folder+"app.yaml"); got != "good" {
		t.Errorf("app.yaml at the server is %q", got)
	}
	repo.Git("pull", "--quiet")
	repo.Write(folder+"app.yaml", "repaired")
	repo.Push("repaired")
	_, err := newCall(s, clock.RealClock{}, "").run(t, Rollback, "acme/shop/web", "--push")
	wantEnd(t, "", err, "", "another commit changed projects/shop/apps/web")
}
