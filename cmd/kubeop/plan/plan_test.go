package plan

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/cmd/kubeop/call"
	"github.com/kubeop/kubeop/cmd/kubeop/exit"
	"github.com/kubeop/kubeop/controllers/plan"
	"github.com/kubeop/kubeop/controllers/plan/render"
	"github.com/kubeop/kubeop/internal/testenv/memory"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

// clone is a clone of the repository of the tenant acme, and a cluster that follows it.
type clone struct {
	*sources.GitRepo
	server *memory.Server
	// itself: the person may act as the deployers of projects. applied are the objects that were tried, and by whom.
	itself  bool
	applied []string
}

func newClone(t *testing.T) *clone {
	t.Helper()
	repository := &v1alpha1.Repository{ObjectMeta: metav1.ObjectMeta{Name: "acme"}, Spec: v1alpha1.RepositorySpec{Tenant: "acme", URL: "https://git.example.com/acme.git"}}
	project := &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-acme", Name: "shop", UID: "shop", Labels: map[string]string{v1alpha1.RepositoryLabel: "acme"}}}
	d := &clone{GitRepo: sources.NewGitRepo(t), server: memory.Serve(t, repository, project, &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "acme"}})}
	d.server.Intercept = d.answer
	head := "apiVersion: " + v1alpha1.GroupVersion.String() + "\nkind: "
	d.Write("kubeop.yaml", "layout: v1\n")
	d.Write("projects/shop/project.yaml", head+"Project\nmetadata: {name: shop}\n")
	d.Write("projects/shop/apps/web/app.yaml", head+"App\nmetadata: {name: web}\nspec: {type: Raw, raw: {path: manifests}}\n")
	d.settings("1")
	d.Push("first")
	t.Chdir(d.Work)
	return d
}

// settings writes the only manifest of the app web.
func (d *clone) settings(value string) {
	d.Write("projects/shop/apps/web/manifests/settings.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {a: \""+value+"\"}\n")
}

// answer answers what the server in memory does not: its version, what a person may do, and applies.
func (d *clone) answer(w http.ResponseWriter, r *http.Request) bool {
	var of any
	switch {
	case r.URL.Path == "/version":
		of = map[string]string{"major": "1", "minor": "37", "gitVersion": "v1.37.0"}
	case strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews"):
		of = map[string]any{"kind": "SelfSubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "status": map[string]any{"allowed": d.itself}}
	case r.Method == http.MethodPatch:
		d.applied = append(d.applied, r.Header.Get("Impersonate-User")+" "+r.URL.Path+" "+r.URL.Query().Get("dryRun"))
		body, err := io.ReadAll(r.Body)
		if err != nil {
			d.T.Error(err)
		}
		of = json.RawMessage(body)
	default:
		return false
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(of); err != nil {
		d.T.Error(err)
	}
	return true
}

// do runs a command.
func (d *clone) do(of func(*call.Call, plan.NewRenderer) *cobra.Command, args ...string) (string, error) {
	streams, _, stdout, _ := genericiooptions.NewTestIOStreams()
	c := call.New(streams, clocktesting.NewFakeClock(time.Unix(1, 0)))
	c.Flags.KubeConfig = &d.server.Kubeconfig
	command := of(c, render.New)
	command.SilenceErrors, command.SilenceUsage = true, true
	command.SetArgs(args)
	command.SetOut(io.Discard)
	err := command.ExecuteContext(d.T.Context())
	return stdout.String(), err
}

// planned runs a command with the format JSON, and reads what it prints.
func (d *clone) planned(of func(*call.Call, plan.NewRenderer) *cobra.Command, args ...string) *plan.Plan {
	d.T.Helper()
	out, err := d.do(of, append(args, "-o", "json")...)
	made := &plan.Plan{}
	if jsonErr := json.Unmarshal([]byte(out), made); exit.Code(err) != exit.Differences || jsonErr != nil {
		d.T.Fatalf("%v, %v: %s", err, jsonErr, out)
	}
	return made
}

func TestFilesArePlannedAsTheyAreAndACommitAsItWas(t *testing.T) {
	d := newClone(t)
	head := d.Git("rev-parse", "HEAD")
	d.settings("2")
	d.Write("projects/shop/apps/web/manifests/more.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: more}\n")
	for arg, want := range map[string]struct {
		revision string
		objects  int
	}{".": {"worktree@sha1:" + strings.Repeat("0", 40), 2}, "projects/shop": {"worktree@sha1:" + strings.Repeat("0", 40), 2}, "kubeop.yaml": {"worktree@sha1:" + strings.Repeat("0", 40), 2}, "HEAD": {"HEAD@sha1:" + head, 1}} {
		made := d.planned(Command, arg, "--repository", "acme")
		if made.Repository != "acme" || made.Revision != want.revision || len(made.Apps) != 1 || len(made.Apps[0].Changes) != want.objects {
			t.Errorf("%s: got %+v", arg, made)
		}
	}
	if out := d.Git("status", "--porcelain"); !strings.Contains(out, "?? projects/shop/apps/web/manifests/more.yaml") {
		t.Errorf("a plan changed the clone:\n%s", out)
	}
	for format, want := range map[string]string{
		"table": "App acme/shop/web\n  + ConfigMap/more\n  + ConfigMap/settings\n  compared without the API server", "markdown": "### kubeop plan for `acme`: ", "yaml": "repository: acme\n",
	} {
		if out, err := d.do(Command, "--repository", "acme", "-o", format); exit.Code(err) != exit.Differences || !strings.Contains(out, want) {
			t.Errorf("%s: %v\n%s", format, err, out)
		}
	}
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"no commit":     {[]string{"none", "--repository", "acme"}, "none is neither a folder nor a commit of the clone in the current folder"},
		"no repository": {[]string{"--repository", "none"}, "reading repository none, which can be named by --repository or --tenant: "},
		"no preview":    {[]string{"--repository", "acme", "--preview", "login"}, "login has no preview: spec.previews of no project of repository acme matches it"},
	} {
		if out, err := d.do(Command, tc.args...); exit.Code(err) != exit.Failure || out != "" || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %s\n%s", name, err, tc.want, out)
		}
	}
}

// TestOnlyImpersonatorsOfTheDeployerTryTheObjects in dry runs of the API server, and nobody else writes anything.
func TestOnlyImpersonatorsOfTheDeployerTryTheObjects(t *testing.T) {
	d := newClone(t)
	d.planned(Command, "--repository", "acme")
	if len(d.applied) != 0 {
		t.Errorf("a person wrote %v", d.applied)
	}
	d.itself = true
	made := d.planned(Command, "--repository", "acme")
	want := []string{"system:serviceaccount:kubeop-acme-shop:" + v1alpha1.Deployer + " /api/v1/namespaces/kubeop-acme-shop/configmaps/settings All"}
	if diff := cmp.Diff(want, d.applied); diff != "" || made.Apps[0].Note != "" {
		t.Errorf("the note is %q; -want +got:\n%s", made.Apps[0].Note, diff)
	}
}

// TestEachErrorOfAPlanIsReturned, whichever request fails.
func TestEachErrorOfAPlanIsReturned(t *testing.T) {
	d := newClone(t)
	if n := d.server.EachRequest(t, func() error {
		_, err := d.do(Diff, "acme/shop/web", "--revision", "HEAD..HEAD")
		return err
	}); n < 6 {
		t.Errorf("%d requests", n)
	}
}

// TestADiffIsOfOneApp: with the cluster, of the files or of a commit, or between two commits.
func TestADiffIsOfOneApp(t *testing.T) {
	d := newClone(t)
	d.settings("2")
	d.Write("projects/shop/apps/api/app.yaml", "apiVersion: "+v1alpha1.GroupVersion.String()+"\nkind: App\nmetadata: {name: api}\nspec: {type: Image, image: {reference: a.example/b:1}}\n")
	d.Push("second")
	for _, args := range [][]string{{"acme/shop/web"}, {"acme/shop/web", "--revision", "HEAD~1"}, {"acme/shop/web", "--repository", "acme"}} {
		made := d.planned(Diff, args...)
		if len(made.Changes) != 0 || len(made.Apps) != 1 || made.Apps[0].App != "acme/shop/web" || made.Summary() != "1 to create" {
			t.Errorf("%v: got %+v", args, made)
		}
	}
	made := d.planned(Diff, "acme/shop/web", "--revision", "HEAD~1..HEAD")
	want := &plan.Plan{Repository: "acme", Revision: "HEAD~1..HEAD", Apps: []plan.App{{
		App: "acme/shop/web", Source: "HEAD@sha1:" + d.Git("rev-parse", "HEAD"),
		Changes: []plan.Change{{Action: plan.Update, Object: "ConfigMap/settings", Fields: []plan.Field{{Path: "/data/a", Before: `"1"`, After: `"2"`}}}},
	}}}
	if diff := cmp.Diff(want, made, cmp.AllowUnexported(plan.Change{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if out, err := d.do(Diff, "acme/shop/web", "--revision", "HEAD..HEAD"); err != nil || !strings.Contains(out, "Plan: no changes") {
		t.Errorf("of nothing: %v\n%s", err, out)
	}
	for args, want := range map[string]string{
		"web": "does not say which tenant", "beta/shop/web": "reading the tenant beta: ",
		"acme/shop/none": "the commit does not declare the app acme/shop/none", "acme/shop/web --revision none..HEAD": "none is neither a folder nor a commit",
		"acme/shop/api --revision HEAD~1..HEAD": "HEAD~1: the commit does not declare the app acme/shop/api", "beta/shop/web --revision HEAD..HEAD --repository beta": "HEAD: reading repository beta, ",
	} {
		if out, err := d.do(Diff, strings.Fields(args)...); exit.Code(err) != exit.Failure || out != "" || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s\n%s", args, err, want, out)
		}
	}
}

// TestAClonesRepositoryIsThePlatforms if its folder has tenants.
func TestAClonesRepositoryIsThePlatforms(t *testing.T) {
	d := newClone(t)
	d.Write("tenants/beta/tenant.yaml", "")
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	if _, err := d.do(Command); err == nil || !strings.HasPrefix(err.Error(), "reading repository "+v1alpha1.PlatformRepository+", ") {
		t.Errorf("got %v", err)
	}
	if left, err := os.ReadDir(temporary); err != nil || len(left) != 0 {
		t.Errorf("left behind are %v, %v", left, err)
	}
	if err := os.RemoveAll(filepath.Join(d.Work, "tenants")); err != nil {
		t.Fatal(err)
	}
	d.Write("tenants", "a file")
	if _, err := d.do(Command); err == nil || !strings.HasPrefix(err.Error(), "reading repository "+filepath.Base(d.Work)+", ") {
		t.Errorf("with a file of that name: %v", err)
	}
}

// TestADiffFindsAnAppInThePlatformRepository, whose tenant has no repository of its own.
func TestADiffFindsAnAppInThePlatformRepository(t *testing.T) {
	head := "apiVersion: " + v1alpha1.GroupVersion.String() + "\nkind: "
	d := &clone{GitRepo: sources.NewGitRepo(t), server: memory.Serve(t,
		&v1alpha1.Repository{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.PlatformRepository}, Spec: v1alpha1.RepositorySpec{URL: "https://git.example.com/platform.git"}},
		&v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "acme", Labels: map[string]string{v1alpha1.RepositoryLabel: v1alpha1.PlatformRepository}}},
	)}
	d.server.Intercept = d.answer
	d.Write("kubeop.yaml", "layout: v1\n")
	d.Write("tenants/acme/tenant.yaml", head+"Tenant\nmetadata: {name: acme}\n")
	d.Write("tenants/acme/projects/shop/project.yaml", head+"Project\nmetadata: {name: shop}\n")
	d.Write("tenants/acme/projects/shop/apps/web/app.yaml", head+"App\nmetadata: {name: web}\nspec: {type: Raw, raw: {path: manifests}}\n")
	d.Write("tenants/acme/projects/shop/apps/web/manifests/settings.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n")
	d.Push("first")
	t.Chdir(d.Work)
	if made := d.planned(Diff, "acme/shop/web"); made.Repository != v1alpha1.PlatformRepository || len(made.Apps) != 1 || made.Apps[0].App != "acme/shop/web" {
		t.Errorf("got %+v", made)
	}
}
