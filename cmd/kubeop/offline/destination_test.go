package offline

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"

	"github.com/kubeop/kubeop/cmd/kubeop/call"
	"github.com/kubeop/kubeop/cmd/kubeop/exit"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

// cloned is a clone of a tenant's repository, in which the commands run.
type cloned struct {
	*sources.GitRepo
}

func clone(t *testing.T) *cloned {
	t.Helper()
	for _, who := range []string{"AUTHOR", "COMMITTER"} {
		t.Setenv("GIT_"+who+"_NAME", "Ann")
		t.Setenv("GIT_"+who+"_EMAIL", "ann@example.com")
	}
	t.Setenv("GIT_CONFIG_GLOBAL", "/dev/null")
	t.Setenv("GIT_CONFIG_SYSTEM", "/dev/null")
	c := &cloned{sources.NewGitRepo(t)}
	for name, text := range repository(nil) {
		c.Write(name, text)
	}
	c.Push("first")
	c.Git("fetch", "--quiet", "origin")
	c.Git("branch", "--quiet", "--set-upstream-to", "origin/main")
	t.Chdir(c.Work)
	return c
}

// bare runs git in the repository of the server.
func (c *cloned) bare(args ...string) string {
	c.T.Helper()
	return c.Run(filepath.Join(c.Root, c.Name), args...)
}

// other pushes a file as another person would.
func (c *cloned) other(file, text string) {
	c.T.Helper()
	dir := c.T.TempDir()
	c.Run(dir, "clone", "--quiet", filepath.Join(c.Root, c.Name), "other")
	dir = filepath.Join(dir, "other")
	at := filepath.Join(dir, file)
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		c.T.Fatal(err)
	}
	if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
		c.T.Fatal(err)
	}
	c.Run(dir, "add", "--all")
	c.Run(dir, "commit", "--quiet", "--message", "other")
	c.Run(dir, "push", "--quiet", "origin", "HEAD:main")
}

// live is do with the real clock, for what waits.
func live(t *testing.T, of func(*call.Call) *cobra.Command, args ...string) (string, error) {
	t.Helper()
	streams, _, stdout, _ := genericiooptions.NewTestIOStreams()
	command := of(call.New(streams, clock.RealClock{}))
	command.SilenceErrors, command.SilenceUsage = true, true
	command.SetArgs(args)
	command.SetOut(io.Discard)
	err := command.ExecuteContext(t.Context())
	return stdout.String(), err
}

// TestACommitLeavesTheCloneAsItIs: the commit is upon the newest one of the server, with the person's identity, and the clone's files and branch
// do not change.
func TestACommitLeavesTheCloneAsItIs(t *testing.T) {
	c := clone(t)
	const file = "projects/shop/apps/web/app.yaml"
	c.Write(file, app+"# not committed\n")
	c.other("README.md", "hello\n")
	out, err := live(t, Set, "shop/web", "spec.image.replicas=3", "--commit")
	head := c.bare("rev-parse", "main")
	if err != nil || out != "Committed "+head[:8]+" to origin/main: Set spec.image.replicas of app shop/web. `git pull` brings it into this clone.\n" {
		t.Fatalf("%q, %v", out, err)
	}
	if got := c.bare("log", "-1", "--format=%an|%cn|%s|%(trailers:key=Kubeop-Request,valueonly)", "main"); !strings.HasPrefix(got, "Ann|Ann|Set spec.image.replicas of app shop/web|") || len(got) < 80 {
		t.Errorf("the commit is %q", got)
	}
	if got := c.bare("diff", "--name-only", "main~1", "main"); got != file || c.bare("show", "main:README.md") != "hello" {
		t.Errorf("the commit changes %s", got)
	}
	if text := c.bare("show", "main:"+file); !strings.Contains(text, "replicas: 3") && !strings.Contains(text, `"replicas":3`) || strings.Contains(text, "not committed") {
		t.Errorf("the app has\n%s", text)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != app+"# not committed\n" || c.Git("rev-list", "--count", "HEAD") != "1" {
		t.Errorf("the clone has changed: %s, %v", text, err)
	}
	if out, err := live(t, Set, "shop/web", "spec.image.replicas=3", "--commit"); err != nil || out != "Nothing to commit: origin/main has this already, at "+head[:8]+".\n" {
		t.Errorf("again: %q, %v", out, err)
	}
	// The person has not seen that there are 3.
	if out, err := live(t, Set, "shop/web", "spec.image.replicas=4", "--commit"); err == nil || !strings.Contains(err.Error(), "another commit changed spec.image.replicas from no value to 3") {
		t.Errorf("%q, %v", out, err)
	}
}

func TestEveryWritingCommandCommits(t *testing.T) {
	c := clone(t)
	for _, step := range []struct {
		of      func(*call.Call) *cobra.Command
		args    []string
		subject string
		files   string
	}{
		{Create, []string{"project", "blog"}, "Create project blog", "projects/blog/project.yaml"},
		{Create, []string{"app", "blog/web", "--image", "registry.example.com/web:1", "-m", "Begin the blog"}, "Begin the blog", "projects/blog/apps/web/app.yaml"},
		{addIn, []string{"secret", "db", "--project", "shop", "--from-literal", "a=b", "--age", publicKey(t)}, "Add Secret db to project shop", "projects/shop/apps/secrets/app.yaml projects/shop/apps/secrets/manifests/db.yaml"},
		{Delete, []string{"app", "shop/web"}, "Delete app shop/web", "projects/shop/apps/web/app.yaml"},
		{Delete, []string{"project", "blog"}, "Delete project blog", "projects/blog/apps/web/app.yaml projects/blog/project.yaml"},
	} {
		if out, err := live(t, step.of, append(step.args, "--commit")...); err != nil {
			t.Fatalf("%v: %q, %v", step.args, out, err)
		}
		if subject, files := c.bare("log", "-1", "--format=%s", "main"), strings.Join(strings.Fields(c.bare("diff", "--name-only", "main~1", "main")), " "); subject != step.subject || files != step.files {
			t.Errorf("%v: the commit is %q, with %s", step.args, subject, files)
		}
		c.Git("pull", "--quiet")
	}
	if out, err := live(t, Create, "app", "shop/bad", "--image", "not an image", "--commit"); exit.Code(err) != exit.Differences || !strings.Contains(err.Error(), "not committed: 1 problem in projects/shop/apps/bad") || !strings.Contains(out, "projects/shop/apps/bad/app.yaml:") {
		t.Errorf("what is not valid: %q, %v", out, err)
	}
	if c.Git("rev-parse", "HEAD") != c.bare("rev-parse", "main") {
		t.Error("what is not valid was pushed")
	}
}

// TestARepositoryMayBeAFolderOfAClone: what is committed and checked is in that folder.
func TestARepositoryMayBeAFolderOfAClone(t *testing.T) {
	c := clone(t)
	for name, text := range repository(map[string]string{"projects/shop/project.yaml": declares("Project", "shop", "\n  typo: 1")}) {
		c.Write("deploy/"+name, text)
	}
	c.Push("a folder")
	c.Git("fetch", "--quiet", "origin")
	t.Chdir("deploy")
	if out, err := live(t, Set, "project", "shop", "spec.quota[pods]=3", "--commit"); err == nil || !strings.Contains(out, "projects/shop/project.yaml:5:3: unknown field") {
		t.Errorf("what is not valid in the folder: %q, %v", out, err)
	}
	if out, err := live(t, Set, "project", "shop", "--unset", "spec", "--commit"); err != nil || !strings.HasPrefix(out, "Committed ") {
		t.Errorf("%q, %v", out, err)
	}
	if got := c.bare("diff", "--name-only", "main~1", "main"); got != "deploy/projects/shop/project.yaml" {
		t.Errorf("the commit changes %s", got)
	}
}

func TestACommitNeedsAServerToPushTo(t *testing.T) {
	c := clone(t)
	for name, tc := range map[string]struct {
		before []string
		says   string
	}{
		"no upstream": {[]string{"branch", "--unset-upstream"}, "the branch main has no upstream, so it is not known where to push: git push -u origin main"},
		"no branch":   {[]string{"checkout", "--quiet", "--detach"}, "no branch is checked out"},
		"no server":   {[]string{"remote", "set-url", "origin", "/nonexistent.git"}, "nonexistent.git"},
	} {
		c.Git("checkout", "--quiet", "main")
		c.Git("branch", "--quiet", "--set-upstream-to", "origin/main")
		c.Git(tc.before...)
		if out, err := live(t, Create, "project", "blog", "--commit"); err == nil || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %q, %v", name, out, err)
		}
	}
	t.Chdir(write(t, repository(nil)))
	if _, err := live(t, Create, "project", "blog", "--commit"); err == nil || !strings.Contains(err.Error(), "is in no clone of a repository") {
		t.Errorf("no clone: %v", err)
	}
}

// TestDeleteKeepsWhatGitDoesNotHave, also if Git ignores it.
func TestDeleteKeepsWhatGitDoesNotHave(t *testing.T) {
	c := clone(t)
	c.Write(".gitignore", "*.secret\n")
	c.Write("projects/shop/apps/web/key.secret", "k")
	c.Push("ignore")
	for _, keep := range []string{"projects/shop/apps/web/key.secret", "projects/shop/apps/web/new.yaml"} {
		c.Write(keep, "k")
		if out, err := live(t, Delete, "app", "shop/web"); err == nil || !strings.Contains(err.Error(), "not committed") {
			t.Errorf("%q, %v", out, err)
		}
		if err := os.Remove(keep); err != nil {
			t.Error(err)
		}
	}
	if out, err := live(t, Delete, "app", "shop/web"); err != nil || out != "Deleted projects/shop/apps/web.\n" {
		t.Errorf("%q, %v", out, err)
	}
	if _, err := os.Lstat("projects/shop/apps/web"); err == nil || c.Git("status", "--porcelain") == "" {
		t.Error("the app is still there")
	}
	if _, err := live(t, Delete, "app", "shop/web"); err == nil || !strings.Contains(err.Error(), "no app shop/web is declared here") {
		t.Errorf("again: %v", err)
	}
	if _, err := live(t, Delete, "app", "../web"); err == nil || !strings.Contains(err.Error(), "does not name one app") {
		t.Errorf("a path: %v", err)
	}
	if _, err := live(t, Delete, "pod", "x"); err == nil || !strings.Contains(err.Error(), "write app, project, tenant, policy or registry") {
		t.Errorf("another kind: %v", err)
	}
	root := write(t, repository(nil))
	t.Chdir(root)
	if _, err := live(t, Delete, "app", "shop/web"); err == nil || !strings.Contains(err.Error(), "this is no clone of a repository") {
		t.Errorf("in no clone: %v", err)
	}
	if _, err := os.Stat(filepath.Join(root, "projects/shop/apps/web/app.yaml")); err != nil {
		t.Errorf("it was deleted: %v", err)
	}
}

// TestAPullRequestIsOpenedWithTheCredentialsOfGit: those that Git's helper has for the host.
func TestAPullRequestIsOpenedWithTheCredentialsOfGit(t *testing.T) {
	c := clone(t)
	if err := os.Symlink(".", filepath.Join(c.Root, "acme")); err != nil {
		t.Fatal(err)
	}
	c.bare("config", "http.receivepack", "true")
	server := sources.ServeGit(t, c.GitRepo, httptest.NewServer)
	var asked map[string]any
	server.Set(func() {
		server.Wrap = func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
			if !strings.HasPrefix(r.URL.Path, "/api/v1/repos/acme/app/pulls") {
				return false
			}
			if user, token, ok := r.BasicAuth(); !ok || user != "ann" || token != "t0ken" {
				w.WriteHeader(http.StatusUnauthorized)
				return true
			}
			if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
				t.Error(err)
			}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, `{"number": 7, "html_url": "http://git.example.com/acme/app/pulls/7", "user": {}, "head": {"repo": {"owner": {}}}, "base": {"repo": {"owner": {}}}}`)
			return true
		}
	})
	c.Git("remote", "set-url", "origin", strings.Replace(server.URL, "http://", "http://ann:t0ken@", 1)+"/acme/app.git")
	first := c.bare("rev-parse", "main")
	out, err := live(t, Create, "project", "blog", "--pull-request", "--git-host", "gitea", "-m", "Begin a blog")
	if err != nil || !strings.Contains(out, "Opened pull request 7: http://git.example.com/acme/app/pulls/7\n") {
		t.Fatalf("%q, %v", out, err)
	}
	branch, _ := asked["head"].(string)
	if asked["base"] != "main" || asked["title"] != "Begin a blog" || asked["body"] != "Create project blog." || !strings.HasPrefix(branch, "kubeop/create-project-blog-") {
		t.Errorf("asked for %v", asked)
	}
	if c.bare("rev-parse", "main") != first || c.bare("rev-parse", branch+"~1") != first {
		t.Errorf("the branches are\n%s", c.bare("branch", "-v"))
	}
	if out, err := live(t, Create, "project", "other", "--pull-request"); err == nil || !strings.Contains(err.Error(), "open the pull request from kubeop/create-project-other-") || !strings.Contains(out, "Pushed the branch") {
		t.Errorf("a host of unknown type: %q, %v", out, err)
	}
}

// TestOneCommandInAProcessOfItsOwn runs a command in a process of TestManyPeopleCommitAtOnce.
func TestOneCommandInAProcessOfItsOwn(t *testing.T) {
	args := strings.Fields(os.Getenv("TEST_COMMAND"))
	if len(args) == 0 {
		t.Skip("this is a process of another test")
	}
	of := map[string]func(*call.Call) *cobra.Command{"set": Set, "create": Create}[args[0]]
	if out, err := live(t, of, args[1:]...); err != nil {
		t.Fatal(out, err)
	}
}

// TestManyPeopleCommitAtOnce from clones of their own: every commit lands.
func TestManyPeopleCommitAtOnce(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := clone(t)
	const people = 12
	var all sync.WaitGroup
	for i := range people {
		dir := filepath.Join(t.TempDir(), "clone")
		c.Run(".", "clone", "--quiet", filepath.Join(c.Root, c.Name), dir)
		args := "set shop/web spec.suspend=true --commit"
		if i > 0 {
			args = fmt.Sprintf("create project p%d --commit", i)
		}
		all.Go(func() {
			cmd := exec.Command(program, "-test.run=^TestOneCommandInAProcessOfItsOwn$")
			cmd.Dir, cmd.Env = dir, append(os.Environ(), "TEST_COMMAND="+args)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s: %v\n%s", args, err, out)
			}
		})
	}
	all.Wait()
	if got := len(strings.Fields(c.bare("ls-tree", "--name-only", "main:projects"))); got != people {
		t.Errorf("%d of %d projects are in main", got, people)
	}
	if got := c.bare("rev-list", "--count", "main"); got != fmt.Sprint(people+1) || !strings.Contains(c.bare("show", "main:projects/shop/apps/web/app.yaml"), "suspend: true") {
		t.Errorf("main has %s commits, want one for each person", got)
	}
}
