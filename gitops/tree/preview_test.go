package tree

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/gitops/identity"
)

const (
	webApp = "apiVersion: paas.kubeop.io/v1alpha1\nkind: App\nmetadata: {name: web}\nspec:\n  type: Image\n  image: {reference: \"registry.example.com/web:1\"}\n"
	shop   = "apiVersion: paas.kubeop.io/v1alpha1\nkind: Project\nmetadata: {name: shop}\n"
)

var ofTeam = Scope{Repository: "team", Tenant: "team"}

func branchFiles(files map[string]string) repository {
	r := repository{}
	for name, text := range files {
		r[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return r
}

func mainFiles() repository {
	return branchFiles(map[string]string{
		"kubeop.yaml": "layout: v1\n", "projects/shop/project.yaml": shop, "projects/shop/apps/web/app.yaml": webApp,
	})
}

func previewOf(branch, settings string) Preview {
	return Preview{
		Project: &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Name: "shop-pr-" + branch}},
		Origin:  Origin{Of: "shop", Branch: "feature/" + branch, Revision: "feature/" + branch + "@sha1:1", Author: "Ann"},
		Adapt:   func(app *v1alpha1.App) { app.Spec.Suspend = settings == "suspended" }, Settings: settings,
	}
}

func readPreview(t *testing.T, files Files, v Preview, before *Tree) *Project {
	t.Helper()
	project, err := shared.ReadPreview(files, ofTeam, v, before)
	if err != nil {
		t.Fatal(err)
	}
	return project
}

func TestAPreviewHasTheAppsOfItsBranch(t *testing.T) {
	main := fresh(mainFiles(), ofTeam)
	branch := branchFiles(map[string]string{
		"projects/shop/project.yaml": "not: even, valid: yaml", "projects/shop/apps/web/app.yaml": strings.Replace(webApp, "web:1", "web:2", 1),
		"projects/other/project.yaml": shop,
	})
	both := main.With([]*Project{readPreview(t, branch, previewOf("a", ""), nil)})
	ref := identity.Ref{Tenant: "team", Project: "shop-pr-a", App: "web"}
	node, there := both.Find(ref)
	if !there || !node.Declared() {
		t.Fatalf("the app of the preview is not declared: %v", node)
	}
	app := both.Object(node, "main@sha1:0").(*v1alpha1.App)
	if app.Spec.Image.Reference != "registry.example.com/web:2" || app.Namespace != "kubeop-team-shop-pr-a" || app.Annotations[v1alpha1.RevisionAnnotation] != "feature/a@sha1:1" ||
		app.Annotations[v1alpha1.BranchAnnotation] != "feature/a" || app.Annotations[v1alpha1.PreviewOfAnnotation] != "shop" {
		t.Errorf("the app of the preview is %v", app)
	}
	plain, _ := both.Find(identity.Ref{Tenant: "team", Project: "shop", App: "web"})
	if got := both.Object(plain, "main@sha1:0").(*v1alpha1.App); got.Spec.Image.Reference != "registry.example.com/web:1" || got.Annotations[v1alpha1.BranchAnnotation] != "" {
		t.Errorf("the app of the project itself is %v", got)
	}
	if c := both.Counts(); c.Projects != 2 || c.Apps != 2 || c.Problems != 0 {
		t.Errorf("the tree counts %+v", c)
	}
	var changed []string
	Changes(main, both, func(r identity.Ref) { changed = append(changed, r.Path()) })
	if got := strings.Join(changed, " "); got != "team/shop-pr-a team/shop-pr-a/web" {
		t.Errorf("the preview changes %s", got)
	}
	if again := both.With(both.Previews()); again != both {
		t.Error("the same previews make another tree")
	}
	if without := both.With(nil); len(without.Previews()) != 0 || without.Counts() != main.Counts() {
		t.Errorf("without previews the tree counts %+v", without.Counts())
	}
}

func TestABranchCostsOnlyItsPreview(t *testing.T) {
	main := fresh(mainFiles(), ofTeam)
	bad := readPreview(t, branchFiles(map[string]string{
		"projects/shop/apps/web/app.yaml": webApp + "  colour: red\n", "projects/shop/apps/api/app.yaml": strings.ReplaceAll(webApp, "web", "api"),
	}), previewOf("a", ""), nil)
	both := main.With([]*Project{bad})
	both.All(func(p Problem) bool { t.Errorf("the commit has the problem %s", p); return true })
	problems := bad.AllProblems()
	if len(problems) != 1 || !strings.HasPrefix(problems[0].String(), "projects/shop/apps/web/app.yaml:7:3: in branch feature/a: ") {
		t.Errorf("the problems are %v", problems)
	}
	for app, want := range map[string]bool{"web": false, "api": true} {
		if n, _ := both.Find(identity.Ref{Tenant: "team", Project: "shop-pr-a", App: app}); n == nil || n.Declared() != want {
			t.Errorf("app %s is declared: %v", app, n)
		}
	}
}

func TestABranchSpendsOnlyItsShareOfTheLimit(t *testing.T) {
	files := map[string]string{}
	for _, name := range []string{"a", "b", "c", "d"} {
		files["projects/shop/apps/"+name+"/app.yaml"] = strings.ReplaceAll(webApp, "{name: web}", "{name: "+name+"}") + strings.Repeat("# long\n", 600)
	}
	limits := shared.Limits
	limits.TreeBytes = 40_000
	v := previewOf("a", "")
	project, err := shared.Within(limits).ReadPreview(branchFiles(files), ofTeam, v, nil)
	if err != nil {
		t.Fatal(err)
	}
	if p := project.AllProblems(); len(p) == 0 || !strings.Contains(p[0].Why, "in branch feature/a: ") || !strings.Contains(p[0].Why, "of tenant team take too much: ") || !strings.Contains(p[0].Why, "10000") {
		t.Errorf("the problems are %v", p)
	}
	if both := fresh(mainFiles(), ofTeam).With([]*Project{project}); both.Tenants[0].Unknown || !both.Covers(identity.Ref{Tenant: "team", Project: "gone"}) {
		t.Error("a branch that is too large makes the commit incomplete")
	}
}

// TestABranchIsReadAgainAfterItsLimitChanged, although its files are the same.
func TestABranchIsReadAgainAfterItsLimitChanged(t *testing.T) {
	narrow := shared.Limits
	narrow.TreeBytes = 40
	small, main := shared.Within(narrow), mainFiles()
	var before *Tree
	for _, step := range []struct {
		reader  *Reader
		allowed bool
	}{{small, false}, {shared, true}, {small, false}} {
		project, err := step.reader.ReadPreview(main, ofTeam, previewOf("a", ""), before)
		if err != nil {
			t.Fatal(err)
		}
		if p := project.AllProblems(); (len(p) == 0) != step.allowed {
			t.Errorf("with %d bytes the problems are %v", step.reader.Limits.TreeBytes, p)
		}
		before = step.reader.Read(main, ofTeam, before).With([]*Project{project})
	}
}

func TestAPreviewIsReadAgainOnlyIfItChanged(t *testing.T) {
	main, files := fresh(mainFiles(), ofTeam), mainFiles()
	first := readPreview(t, files, previewOf("a", ""), nil)
	both := main.With([]*Project{first})
	if again := readPreview(t, files, previewOf("a", ""), both); again != first {
		t.Error("an unchanged preview is read again")
	}
	other := readPreview(t, files, previewOf("a", "suspended"), both)
	ref := identity.Ref{Tenant: "team", Project: "shop-pr-a", App: "web"}
	tree := main.With([]*Project{other})
	node, _ := tree.Find(ref)
	old, _ := both.Find(ref)
	if is, was := tree.Object(node, "").(*v1alpha1.App), both.Object(old, "").(*v1alpha1.App); !is.Spec.Suspend || was.Spec.Suspend ||
		is.Annotations[v1alpha1.TreeAnnotation] == was.Annotations[v1alpha1.TreeAnnotation] {
		t.Errorf("other settings make the app %v of %v", is, was)
	}
	labelled := previewOf("a", "")
	labelled.Project.Labels = map[string]string{"team": "blue"}
	if again := readPreview(t, files, labelled, both); again == first || main.With([]*Project{again}).Object(again, "").GetLabels()["team"] != "blue" {
		t.Error("a preview whose project changed is not read again")
	}
	if fresh := shared.Read(files, ofTeam, both); len(fresh.Previews()) != 0 {
		t.Error("the commit itself declares a preview")
	}
}

func TestADeclaredProjectWinsOverAPreview(t *testing.T) {
	files := mainFiles()
	files["projects/shop-pr-a/project.yaml"] = &fstest.MapFile{Data: []byte(strings.Replace(shop, "name: shop", "name: shop-pr-a", 1))}
	main := fresh(files, ofTeam)
	if main.With([]*Project{readPreview(t, mainFiles(), previewOf("a", ""), nil)}) != main {
		t.Error("the preview replaces the declared project")
	}
}

// unreadable fails for the app's file.
type unreadable struct{ repository }

func (u unreadable) Open(name string) (fs.File, error) {
	if strings.HasSuffix(name, "app.yaml") {
		return nil, fs.ErrPermission
	}
	return u.repository.Open(name)
}

func (u unreadable) Sub(path string) (Files, error) { return sub{u, path}, nil }

func TestABranchThatCannotBeReadIsNoPreview(t *testing.T) {
	if got, err := shared.ReadPreview(unreadable{mainFiles()}, ofTeam, previewOf("a", ""), nil); err == nil {
		t.Errorf("got %v", got)
	}
	if got, err := shared.ReadPreview(branchFiles(map[string]string{"kubeop.yaml": "layout: v1\n"}), ofTeam, previewOf("a", ""), nil); err == nil {
		t.Errorf("a branch without the project has the preview %v", got)
	}
	got, err := shared.ReadPreview(&failing{mainFiles(), "projects/shop"}, ofTeam, previewOf("a", ""), nil)
	if want := "open projects/shop: permission denied"; got != nil || err == nil || err.Error() != want {
		t.Errorf("a folder that cannot be listed: %v, %v", got, err)
	}
}

// TestAProjectThatWasDeclaredIsReadAnewAsAPreview of the same name.
func TestAProjectThatWasDeclaredIsReadAnewAsAPreview(t *testing.T) {
	files := mainFiles()
	files["projects/shop-pr-a/project.yaml"] = text(strings.Replace(shop, "shop", "shop-pr-a", 1))
	before := fresh(files, ofTeam)
	got := readPreview(t, mainFiles(), previewOf("a", ""), before)
	from := fresh(mainFiles(), ofTeam).With([]*Project{got}).OriginOf(got.Ref())
	if len(got.Apps) != 1 || from == nil || from.Branch != "feature/a" || before.OriginOf(got.Ref()) != nil {
		t.Errorf("the preview has %d apps, from %+v", len(got.Apps), from)
	}
}

func TestPreviewsInThePlatformRepositoryAreRefused(t *testing.T) {
	files := branchFiles(map[string]string{
		"kubeop.yaml":                             "layout: v1\n",
		"tenants/team/tenant.yaml":                "apiVersion: paas.kubeop.io/v1alpha1\nkind: Tenant\nmetadata: {name: team}\nspec: {}\n",
		"tenants/team/projects/shop/project.yaml": shop + "spec:\n  previews: {branches: \"feature/*\"}\n",
	})
	var got []string
	fresh(files, Scope{Repository: "platform"}).All(func(p Problem) bool { got = append(got, p.String()); return true })
	if len(got) != 1 || !strings.HasPrefix(got[0], "tenants/team/projects/shop/project.yaml:5:3: spec.previews: only a project in a tenant's own repository") {
		t.Errorf("the problems are %q", got)
	}
}
