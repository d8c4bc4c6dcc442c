package tree

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/gitops/identity"
)

// bounded reads with a limit of so many bytes.
func bounded(bytes int64) *Reader {
	limits := budget.Default()
	limits.TreeBytes = bytes
	return shared.Within(limits)
}

// large is a Raw app of about so many bytes.
func large(name string, bytes int) *fstest.MapFile {
	return &fstest.MapFile{Data: fmt.Appendf(nil, "apiVersion: paas.kubeop.io/v1alpha1\nkind: App\nmetadata: {name: %s}\nspec:\n  type: Raw\n  suspend: true\n"+
		"  raw: {manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {x: %s}}]}\n", name, strings.Repeat("x", bytes))}
}

// many is a tenant's repository of one project with so many large apps.
func many(apps, bytes int) repository {
	r := repository{"kubeop.yaml": {Data: []byte("layout: v1\n")}, "projects/shop/project.yaml": {
		Data: []byte("apiVersion: paas.kubeop.io/v1alpha1\nkind: Project\nmetadata: {name: shop}\n"),
	}}
	for i := range apps {
		name := fmt.Sprintf("a%04d", i)
		r["projects/shop/apps/"+name+"/app.yaml"] = large(name, bytes)
	}
	return r
}

var acme = Scope{Repository: "acme", Tenant: "acme"}

// declared are the apps that are declared, kept the bytes that are remembered of them.
func declared(t *Tree) (apps []string, kept int) {
	t.Walk(func(n Node) bool {
		if n.Declared() && n.Ref().App != "" {
			apps = append(apps, n.Ref().App)
			kept += len(n.self().object)
		}
		return true
	})
	return apps, kept
}

// Suspended apps of 900 KB take that much each, if nobody counts before they are kept.
func TestATreeOverItsLimitIsReadAsFarAsItFits(t *testing.T) {
	files := many(30, 900_000)
	counted := &counting{Files: files, opened: map[string]int{}}
	tree := bounded(4<<20).Read(counted, acme, nil)
	apps, kept := declared(tree)
	if diff := cmp.Diff([]string{"a0000", "a0001", "a0002", "a0003"}, apps); diff != "" {
		t.Errorf("declared (-want +got):\n%s", diff)
	}
	if kept > 4<<20 || len(counted.opened) > 10 {
		t.Errorf("%d bytes are kept, and %d files were opened", kept, len(counted.opened))
	}
	p := problems(tree)[0]
	for _, want := range []string{"projects/shop/apps/a0004/app.yaml: with this file of 900194 bytes and those before it, the files project.yaml and app.yaml of tenant acme take too much: 4502142 bytes, and the limit is 4Mi; remove some, or ask an administrator of the cluster for more with spec.limits.treeBytes of the Tenant, in tenant.yaml of the platform repository [over-limit]", "projects/shop/apps/a0004/app.yaml: with this file of 900194 bytes and those before it, the files project.yaml and app.yaml of tenant acme take too much: 4502142 bytes, and the limit is 4Mi; remove some, or ask an administrator of the cluster for more with spec.limits.treeBytes of the Tenant, in tenant.yaml of the platform repository [over-limit]", "projects/shop/apps/a0004/app.yaml: with this file of 900194 bytes and those before it, the files project.yaml and app.yaml of tenant acme take too much: 4502142 bytes, and the limit is 4Mi; remove some, or ask an administrator of the cluster for more with spec.limits.treeBytes of the Tenant, in tenant.yaml of the platform repository [over-limit]", "projects/shop/apps/a0004/app.yaml: with this file of 900194 bytes and those before it, the files project.yaml and app.yaml of tenant acme take too much: 4502142 bytes, and the limit is 4Mi; remove some, or ask an administrator of the cluster for more with spec.limits.treeBytes of the Tenant, in tenant.yaml of the platform repository [over-limit]"} {
		if p.String() != want {
			t.Errorf("the problem is %q, want it to say %q", p, want)
		}
	}
	if p.Of != (identity.Ref{Tenant: "acme", Project: "shop", App: "a0004"}) || p.Err != nil {
		t.Errorf("the problem is of %v, and its error %v", p.Of, p.Err)
	}
	if again := bounded(4<<20).Read(counted, acme, tree); !slices.Equal(messages(tree), messages(again)) {
		t.Errorf("read a second time it says something else:\n%s", cmp.Diff(messages(tree), messages(again)))
	}
}

func messages(t *Tree) (all []string) {
	for _, p := range problems(t) {
		all = append(all, p.String())
	}
	return all
}

// The problems of files beyond the limit take memory, too. So after some of them the tree reads no further file, and none of the rest counts as removed.
func TestAFullTreeIsNotLookedAtAnyFurther(t *testing.T) {
	files := many(250, 1)
	tree := bounded(64<<10).Read(files, acme, nil)
	apps, _ := declared(tree)
	if len(apps) < 50 || len(apps) > 64 || len(problems(tree)) > 100 {
		t.Fatalf("%d apps are declared, %d problems are reported", len(apps), len(problems(tree)))
	}
	got := messages(tree)
	if i := slices.IndexFunc(got, func(m string) bool { return strings.Contains(m, "folders after it are not read: ") }); i < 0 {
		t.Errorf("nothing says that there are more: %v", got[len(got)-1])
	}
	if tree.Covers(identity.Ref{Tenant: "acme", Project: "shop", App: "a0249"}) {
		t.Error("an app that was not read counts as removed")
	}
}

// Aliases make large objects of small files: what is kept counts.
func TestKeptFilesCountWithTheirAliases(t *testing.T) {
	files := many(2, 1)
	for name := range files {
		if strings.HasSuffix(name, "app.yaml") {
			files[name].Data = []byte(strings.NewReplacer("{x: x}", "{x: &x "+strings.Repeat("y", 10_000)+strings.Repeat(", x%: *x", 5)+"}").Replace(string(files[name].Data)))
			for i := range 5 {
				files[name].Data = []byte(strings.Replace(string(files[name].Data), "x%", fmt.Sprintf("x%d", i), 1))
			}
		}
	}
	reader := bounded(100_000)
	first := reader.Read(files, acme, nil)
	if apps, kept := declared(first); len(apps) != 1 || kept < 60_000 || kept > 100_000 {
		t.Fatalf("%v are declared with %d bytes: %v", apps, kept, messages(first))
	}
	counted := &counting{Files: files, opened: map[string]int{}}
	second := reader.Read(counted, acme, first)
	if apps, _ := declared(second); len(apps) != 1 || len(counted.opened) > 0 {
		t.Errorf("%v are declared, and what is known to be too large was read again: %v", apps, counted.opened)
	}
}

// A reading that goes on from the one before ends like one that does not.
func TestReadingStepByStepEqualsReadingAtOnceNearTheLimit(t *testing.T) {
	files := many(6, 20_000)
	files["projects/blog/project.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: paas.kubeop.io/v1alpha1\nkind: Project\nmetadata: {name: blog}\n")}
	reader := bounded(100_000)
	before := reader.Read(files, acme, nil)
	step := func(what string, want ...string) {
		t.Helper()
		now := reader.Read(files, acme, before)
		apps, _ := declared(now)
		if diff := cmp.Diff(want, apps); diff != "" {
			t.Errorf("%s: declared (-want +got):\n%s", what, diff)
		}
		if diff := cmp.Diff(describe(reader.Read(files, acme, nil)), describe(now)); diff != "" {
			t.Errorf("%s: read step by step it differs from read at once (-at once +step by step):\n%s", what, diff)
		}
		before = now
	}
	step("at first", "a0000", "a0001", "a0002", "a0003")
	delete(files, "projects/shop/apps/a0001/app.yaml")
	step("one went", "a0000", "a0002", "a0003", "a0004")
	files["projects/blog/apps/first/app.yaml"] = large("first", 70_000)
	step("a project before it grew", "first", "a0000")
	reader = bounded(1 << 20)
	step("administrators allow more", "first", "a0000", "a0002", "a0003", "a0004", "a0005")
	reader = bounded(100_000)
	step("administrators allow less", "first", "a0000")
	files["projects/shop/project.yaml"].Data = append(files["projects/shop/project.yaml"].Data, strings.Repeat("# much\n", 5000)...)
	step("a project.yaml is too large", "first", "a0000")
	if n, _ := before.Find(identity.Ref{Tenant: "acme", Project: "shop"}); n.Declared() || len(n.Problems()) != 1 {
		t.Errorf("the project is declared: %v", n.Problems())
	}
}

// TestAProjectThatFitsAgainIsDeclared, although its folder did not change and has the same apps as before.
func TestAProjectThatFitsAgainIsDeclared(t *testing.T) {
	files := many(0, 0)
	files["projects/blog/project.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: paas.kubeop.io/v1alpha1\nkind: Project\nmetadata: {name: blog}\n")}
	files["projects/blog/apps/first/app.yaml"] = large("first", 70_000)
	files["projects/shop/project.yaml"].Data = append(files["projects/shop/project.yaml"].Data, strings.Repeat("# much\n", 5000)...)
	reader, shop := bounded(100_000), identity.Ref{Tenant: "acme", Project: "shop"}
	before := reader.Read(files, acme, nil)
	if n, _ := before.Find(shop); n.Declared() || len(n.Problems()) != 1 {
		t.Fatalf("a project of 35 KB beside an app of 70 KB is declared within 100 KB: %v", n.Problems())
	}
	files["projects/blog/apps/first/app.yaml"] = large("first", 10_000)
	now := reader.Read(files, acme, before)
	if n, _ := now.Find(shop); !n.Declared() || len(n.Problems()) > 0 {
		t.Errorf("the project is refused although it fits: %v", n.Problems())
	}
	if got := changes(before, now); !slices.Contains(got, "acme/shop") {
		t.Errorf("changed are %v", got)
	}
}

// TestAnInvalidFileThatDidNotChangeCostsTheSame, and is not read again.
func TestAnInvalidFileThatDidNotChangeCostsTheSame(t *testing.T) {
	files := many(2, 10)
	files["projects/shop/project.yaml"].Data = []byte(declaration("Project", "shop", "{nonsense: 1}"))
	first := shared.Read(files, acme, nil)
	delete(files, "projects/shop/apps/a0001/app.yaml")
	counted := &counting{Files: files, opened: map[string]int{}}
	again, anew := shared.Read(counted, acme, first), fresh(files, acme)
	if diff := cmp.Diff(describe(anew), describe(again)); diff != "" || len(counted.opened) > 0 {
		t.Errorf("%v were opened; read after an earlier tree, it differs (-want +got):\n%s", counted.opened, diff)
	}
	shop := identity.Ref{Tenant: "acme", Project: "shop"}
	is, _ := again.Find(shop)
	want, _ := anew.Find(shop)
	if is.self().spent != want.self().spent || want.self().spent == 0 {
		t.Errorf("it takes %d bytes, and read anew %d", is.self().spent, want.self().spent)
	}
}

// In the platform repository each tenant has a limit of its own, and the administrators' file says which.
func TestEachTenantHasItsLimit(t *testing.T) {
	files := repository{"kubeop.yaml": {Data: []byte("layout: v1\n")}}
	for tenant, limit := range map[string]string{"acme": "", "zeta": "spec: {limits: {treeBytes: 64Ki}}\n"} {
		for name, file := range many(10, 20_000) {
			if name != "kubeop.yaml" {
				files["tenants/"+tenant+"/"+name] = file
			}
		}
		files["tenants/"+tenant+"/tenant.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: paas.kubeop.io/v1alpha1\nkind: Tenant\nmetadata: {name: " + tenant + "}\n" + limit)}
	}
	platform := Scope{Repository: "platform"}
	tree := bounded(1<<20).Read(files, platform, nil)
	if apps, _ := declared(tree); len(apps) != 10+3 {
		t.Errorf("%d apps are declared, want 10 of one tenant and 3 of the other: %v", len(apps), messages(tree)[0])
	}
	for _, p := range problems(tree) {
		if !strings.HasPrefix(p.File, "tenants/zeta/") {
			t.Errorf("the limit of another tenant: %s", p)
		}
	}
}

// Bounds of the definition and of the operator's settings are the same.
func TestLimitsAreHeldToTheSameBounds(t *testing.T) {
	cases := map[string]bool{
		"{projects: -1}": false, "{projects: 10000}": true, "{projects: 10001}": false, "{apps: 100000}": true, "{apps: 100001}": false,
		"{treeBytes: 64Ki}": true, "{treeBytes: 63Ki}": false, "{treeBytes: 1Gi}": true, "{treeBytes: 1025Mi}": false,
		"{appObjects: 0}": false, "{appObjects: 5000}": true, "{appObjects: 5001}": false,
		"{appBytes: 64Ki}": true, "{appBytes: 1}": false, "{appBytes: 16Mi}": true, "{appBytes: 17Mi}": false,
		"{appValues: 1000}": true, "{appValues: 999}": false, "{appValues: 5000000}": true, "{appValues: 5000001}": false,
		"{sourceBytes: 1Mi}": true, "{sourceBytes: 1Ki}": false, "{sourceBytes: 3Gi}": true, "{sourceBytes: 4Gi}": false,
	}
	for limits, want := range cases {
		t.Run(limits, func(t *testing.T) {
			files := baseFiles(t, "platform")
			file := files["tenants/acme/tenant.yaml"]
			file.Data = append(file.Data, "  limits: "+limits+"\n"...)
			tree := fresh(files, Scope{Repository: "platform"})
			if got := len(problems(tree)) == 0; got != want {
				t.Fatalf("accepted: %t, want %t: %v", got, want, messages(tree))
			}
			if !want {
				return
			}
			if err := budget.Check(&decode(tree.Tenants[0].self(), &v1alpha1.Tenant{}).Spec.Limits); err != nil {
				t.Errorf("as a setting of the operator it is refused: %v", err)
			}
		})
	}
}
