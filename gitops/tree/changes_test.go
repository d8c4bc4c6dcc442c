package tree

import (
	"errors"
	"io/fs"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/gitops/identity"
)

// declaration is the text of a file that declares an object.
func declaration(kind, name, spec string) string {
	return "apiVersion: paas.kubeop.io/v1alpha1\nkind: " + kind + "\nmetadata: {name: " + name + "}\nspec: " + spec + "\n"
}

const anImage = "{type: Image, image: {reference: nginx}}"

// twoTenants is a platform repository with two projects and three apps.
func twoTenants() map[string]string {
	return map[string]string{
		"kubeop.yaml":                                  "layout: v1\n",
		"tenants/acme/tenant.yaml":                     declaration("Tenant", "acme", "{}"),
		"tenants/acme/projects/shop/project.yaml":      declaration("Project", "shop", "{}"),
		"tenants/acme/projects/shop/apps/api/app.yaml": declaration("App", "api", anImage),
		"tenants/acme/projects/shop/apps/web/app.yaml": declaration("App", "web", anImage),
		"tenants/rival/tenant.yaml":                    declaration("Tenant", "rival", "{}"),
		"tenants/rival/projects/x/project.yaml":        declaration("Project", "x", "{}"),
		"tenants/rival/projects/x/apps/y/app.yaml":     declaration("App", "y", anImage),
	}
}

func filesOf(texts map[string]string) repository {
	r := repository{}
	for name, content := range texts {
		r[name] = text(content)
	}
	return r
}

// TestChangesAreTheFoldersThatDiffer between two commits, of which the second was read after the first.
func TestChangesAreTheFoldersThatDiffer(t *testing.T) {
	const shop = "tenants/acme/projects/shop"
	all := []string{"acme", "acme/shop", "acme/shop/api", "acme/shop/web", "rival", "rival/x", "rival/x/y"}
	for name, c := range map[string]struct {
		change func(map[string]string)
		scope  Scope
		want   []string
	}{
		"nothing":                {func(map[string]string) {}, Scope{}, nil},
		"another repository":     {func(map[string]string) {}, Scope{Repository: "other"}, all},
		"an app":                 {func(m map[string]string) { m[shop+"/apps/web/app.yaml"] += "# more\n" }, Scope{}, []string{"acme/shop/web"}},
		"a file of an app":       {func(m map[string]string) { m[shop+"/apps/web/config.txt"] = "a" }, Scope{}, []string{"acme/shop/web"}},
		"a project":              {func(m map[string]string) { m[shop+"/project.yaml"] += "# more\n" }, Scope{}, []string{"acme/shop"}},
		"a tenant":               {func(m map[string]string) { m["tenants/acme/tenant.yaml"] += "# more\n" }, Scope{}, []string{"acme"}},
		"a new app":              {func(m map[string]string) { m[shop+"/apps/new/app.yaml"] = declaration("App", "new", anImage) }, Scope{}, []string{"acme/shop/new"}},
		"a deleted app":          {func(m map[string]string) { delete(m, shop+"/apps/api/app.yaml") }, Scope{}, []string{"acme/shop/api"}},
		"an app that is invalid": {func(m map[string]string) { m[shop+"/apps/api/app.yaml"] = declaration("App", "api", "{}") }, Scope{}, []string{"acme/shop/api"}},
		"a deleted project":      {func(m map[string]string) { maps.DeleteFunc(m, under("tenants/rival/projects")) }, Scope{}, []string{"rival/x", "rival/x/y"}},
		"a deleted tenant":       {func(m map[string]string) { maps.DeleteFunc(m, under("tenants/rival")) }, Scope{}, []string{"rival", "rival/x", "rival/x/y"}},
		"a renamed project": {func(m map[string]string) {
			m["tenants/rival/projects/z/project.yaml"] = declaration("Project", "z", "{}")
		}, Scope{}, []string{"rival/z"}},
		"a problem that it keeps": {func(m map[string]string) { m[shop+"/apps/web/app.yml"] = "a: b\n" }, Scope{}, []string{"acme/shop/web"}},
	} {
		t.Run(name, func(t *testing.T) {
			texts := twoTenants()
			before := fresh(filesOf(texts), Scope{})
			c.change(texts)
			var got []string
			Changes(before, shared.Read(filesOf(texts), c.scope, before), func(ref identity.Ref) { got = append(got, ref.Path()) })
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	var first []string
	Changes(nil, fresh(filesOf(twoTenants()), Scope{}), func(ref identity.Ref) { first = append(first, ref.Path()) })
	if diff := cmp.Diff(all, first); diff != "" {
		t.Errorf("without an earlier tree (-want +got):\n%s", diff)
	}
}

// under selects the files of a folder.
func under(folder string) func(string, string) bool {
	return func(name, _ string) bool { return len(name) > len(folder) && name[:len(folder)+1] == folder+"/" }
}

func TestTreesShareTheObjectsThatBothHave(t *testing.T) {
	whole := twoTenants()
	one, other := twoTenants(), twoTenants()
	maps.DeleteFunc(one, under("tenants/rival"))
	maps.DeleteFunc(other, under("tenants/acme"))
	a, b, both, none := fresh(filesOf(one), Scope{}), fresh(filesOf(other), Scope{}), fresh(filesOf(whole), Scope{}), fresh(filesOf(map[string]string{"kubeop.yaml": "layout: v1\n"}), Scope{})
	for name, c := range map[string]struct {
		a, b *Tree
		want bool
	}{"the same": {a, a, true}, "a part": {both, b, true}, "a larger one": {b, both, true}, "different ones": {a, b, false}, "an empty one": {a, none, false}} {
		if got := c.a.Shares(c.b); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
	if got := both.Counts(); got != (Counts{Tenants: 2, Projects: 2, Apps: 3}) || got.Objects() != 7 {
		t.Errorf("the tree has %+v, %d objects", got, got.Objects())
	}
}

// TestAWalkStopsWhenItsCallerStopsIt visits the objects in the order of Git.
func TestAWalkStopsWhenItsCallerStopsIt(t *testing.T) {
	tree := fresh(filesOf(twoTenants()), Scope{})
	all := []string{"acme", "acme/shop", "acme/shop/api", "acme/shop/web", "rival", "rival/x", "rival/x/y"}
	for n := 1; n <= len(all); n++ {
		var got []string
		tree.Walk(func(node Node) bool {
			got = append(got, node.Ref().Path())
			return len(got) < n
		})
		if diff := cmp.Diff(all[:n], got); diff != "" {
			t.Errorf("after %d (-want +got):\n%s", n, diff)
		}
	}
}

// TestTheFileOfAnObjectIsNamedFromTheRoot of the repository, also if a folder of it is read.
func TestTheFileOfAnObjectIsNamedFromTheRoot(t *testing.T) {
	for path, prefix := range map[string]string{"": "", "deploy": "deploy/"} {
		tree := fresh(filesOf(twoTenants()), Scope{Path: path})
		for ref, want := range map[identity.Ref]string{
			{Tenant: "acme"}:                              "tenants/acme/tenant.yaml",
			{Tenant: "acme", Project: "shop"}:             "tenants/acme/projects/shop/project.yaml",
			{Tenant: "acme", Project: "shop", App: "web"}: "tenants/acme/projects/shop/apps/web/app.yaml",
		} {
			node, there := tree.Find(ref)
			if !there || tree.File(node) != prefix+want {
				t.Errorf("%s is in %s, want %s", ref, tree.File(node), prefix+want)
			}
		}
	}
}

// TestAMovedDeclarationIsFound: deletions are held if a commit only moved the files.
func TestAMovedDeclarationIsFound(t *testing.T) {
	for name, c := range map[string]struct {
		file string
		want string
	}{"none": {"", ""}, "an app": {"apps/web/app.yaml", "apps/web/app.yaml"}, "another file": {"docs/readme.md", ""}} {
		texts := twoTenants()
		if c.file != "" {
			texts[c.file] = "kind: App\n"
		}
		if got := fresh(filesOf(texts), Scope{}).Misplaced(); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestAStrayFolderThatCannotBeReadIsAProblem: it may have declarations that were moved there.
func TestAStrayFolderThatCannotBeReadIsAProblem(t *testing.T) {
	texts := twoTenants()
	texts["stages/prod/readme.md"] = "hello"
	for path, want := range map[string]int{"stages/prod": 1, "stages": 1, "none": 0} {
		tree := fresh(&failing{Files: filesOf(texts), path: path}, Scope{})
		found := problems(tree)
		if len(found) != want || want > 0 && (found[0].File != "stages" || !errors.Is(found[0].Err, fs.ErrPermission)) {
			t.Errorf("%s cannot be read: %v", path, found)
		}
		if file, err := tree.Unread(); (err != nil) != (want > 0) || (file != "") != (want > 0) {
			t.Errorf("%s cannot be read: unread is %q, %v", path, file, err)
		}
	}
}

// limited notes the folders whose entries are listed with a limit of their own.
type limited struct {
	Files
	folder  string
	folders *[]string
}

func (l limited) Sub(path string) (Files, error) {
	within, err := l.Files.Sub(path)
	return limited{within, path, l.folders}, err
}

func (l limited) ReadDir(name string) ([]fs.DirEntry, error) {
	if l.folder != "" && !slices.Contains(*l.folders, l.folder) {
		*l.folders = append(*l.folders, l.folder)
	}
	return fs.ReadDir(l.Files, name)
}

// TestTenantsAndAppsHaveTheirOwnLimitsOfEntries, so that one cannot use up that of the others.
func TestTenantsAndAppsHaveTheirOwnLimitsOfEntries(t *testing.T) {
	var got []string
	fresh(limited{filesOf(twoTenants()), "", &got}, Scope{})
	want := []string{
		"tenants/acme", "tenants/acme/projects/shop/apps/api", "tenants/acme/projects/shop/apps/web", "tenants/rival", "tenants/rival/projects/x/apps/y",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
