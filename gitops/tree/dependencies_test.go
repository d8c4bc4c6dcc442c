package tree

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// ordered is a tenant's repository in which each app, named project/app, depends on others, named as in dependsOn.
func ordered(needs map[string][]string) repository {
	r := repository{"kubeop.yaml": {Data: []byte("layout: v1\n")}}
	put := func(name, text string) { r[name] = &fstest.MapFile{Data: []byte(text)} }
	for app, on := range needs {
		project, name, _ := strings.Cut(app, "/")
		put("projects/"+project+"/project.yaml", "apiVersion: paas.kubeop.io/v1alpha1\nkind: Project\nmetadata: {name: "+project+"}\n")
		text := "apiVersion: paas.kubeop.io/v1alpha1\nkind: App\nmetadata: {name: " + name + "}\nspec:\n  type: Image\n  image: {reference: nginx}\n"
		if len(on) > 0 {
			text += "  dependsOn:\n"
		}
		for _, d := range on {
			text += "  - " + d + "\n"
		}
		put("projects/"+project+"/apps/"+name+"/app.yaml", text)
	}
	return r
}

func TestAppsOnADependencyCycleAreRefused(t *testing.T) {
	cases := map[string]struct {
		needs map[string][]string
		// problems and apps are what is left.
		problems, apps []string
	}{
		"a line": {
			needs: map[string][]string{"a/x": {"name: y"}, "a/y": {"{name: z, project: b}"}, "b/z": {"name: elsewhere"}},
			apps:  []string{"x", "y", "z"},
		},
		"a diamond": {
			needs: map[string][]string{"a/x": {"name: y", "name: z"}, "a/y": {"name: w"}, "a/z": {"name: w"}, "a/w": nil},
			apps:  []string{"w", "x", "y", "z"},
		},
		"an app on itself": {
			needs:    map[string][]string{"a/x": {"name: w", "name: x"}, "a/w": nil, "b/z": nil},
			problems: []string{"projects/a/apps/x/app.yaml:9:5: dependsOn makes a ring: x → x; take one of these dependencies out [dependency-cycle]"},
			apps:     []string{"w", "z"},
		},
		"two apps, and one that waits for them": {
			needs: map[string][]string{"a/x": {"name: y"}, "a/y": {"{kind: App, name: x, project: a}"}, "b/z": {"{name: x, project: a}"}},
			problems: []string{
				"projects/a/apps/x/app.yaml:8:5: dependsOn makes a ring: x → y → x; take one of these dependencies out [dependency-cycle]",
				"projects/a/apps/y/app.yaml:8:17: dependsOn makes a ring: y → x → y; take one of these dependencies out [dependency-cycle]",
			},
			apps: []string{"z"},
		},
		"over projects": {
			needs: map[string][]string{"a/x": {"{name: y, project: b}"}, "b/y": {"{name: x, project: a}"}, "c/z": nil},
			problems: []string{
				"projects/a/apps/x/app.yaml:8:6: dependsOn makes a ring: x → b/y → x; take one of these dependencies out [dependency-cycle]",
				"projects/b/apps/y/app.yaml:8:6: dependsOn makes a ring: y → a/x → y; take one of these dependencies out [dependency-cycle]",
			},
			apps: []string{"z"},
		},
		"other kinds make none": {
			needs: map[string][]string{"a/x": {"{apiVersion: batch/v1, kind: Job, name: x}", "{kind: Project, name: x}", "{apiVersion: other.io/v1, kind: App, name: x}"}},
			apps:  []string{"x"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			tree := fresh(ordered(c.needs), Scope{Repository: "acme", Tenant: "acme"})
			var got, names []string
			for _, p := range problems(tree) {
				got = append(got, p.String())
			}
			for _, a := range apps(tree) {
				names = append(names, a.Name)
			}
			if diff := cmp.Diff(c.problems, got); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.apps, names); diff != "" {
				t.Errorf("apps (-want +got):\n%s", diff)
			}
		})
	}
}

// TestACycleBelowAPathNamesTheFileFromTheRoot names the file from the root of the repository.
func TestACycleBelowAPathNamesTheFileFromTheRoot(t *testing.T) {
	tree := fresh(ordered(map[string][]string{"a/x": {"name: x"}}), Scope{Repository: "acme", Tenant: "acme", Path: "deploy"})
	if len(problems(tree)) != 1 || problems(tree)[0].String() != "deploy/projects/a/apps/x/app.yaml:8:5: dependsOn makes a ring: x → x; take one of these dependencies out [dependency-cycle]" {
		t.Errorf("got %v", problems(tree))
	}
}

// TestACycleIsOpenedByOneOfItsApps: the other, whose folder did not change, is declared again.
func TestACycleIsOpenedByOneOfItsApps(t *testing.T) {
	scope := Scope{Repository: "acme", Tenant: "acme"}
	line, ring := map[string][]string{"a/x": {"name: y"}, "a/y": nil, "b/z": nil}, map[string][]string{"a/x": {"name: y"}, "a/y": {"name: x"}, "b/z": nil}
	first := shared.Read(ordered(line), scope, nil)
	second := shared.Read(ordered(ring), scope, first)
	third := shared.Read(ordered(ring), scope, second)
	fourth := shared.Read(ordered(line), scope, third)
	for name, step := range map[string]struct {
		before, after *Tree
		apps          int
		changes       []string
	}{
		"closed": {first, second, 1, []string{"acme/a/x", "acme/a/y"}},
		"again":  {second, third, 1, nil},
		"opened": {third, fourth, 3, []string{"acme/a/x", "acme/a/y"}},
	} {
		if got := changes(step.before, step.after); !slices.Equal(got, step.changes) || step.after.Counts().Apps != step.apps {
			t.Errorf("%s: changed %v, %d apps, want %v and %d", name, got, step.after.Counts().Apps, step.changes, step.apps)
		}
	}
}

// TestACycleIsReportedAnewOnlyIfItChanged, not with each change of another app of the project.
func TestACycleIsReportedAnewOnlyIfItChanged(t *testing.T) {
	scope := Scope{Repository: "acme", Tenant: "acme"}
	needs := map[string][]string{"a/x": {"name: y"}, "a/y": {"name: x"}, "a/z": nil}
	first := shared.Read(ordered(needs), scope, nil)
	needs["a/z"] = []string{"name: w"}
	if got := changes(first, shared.Read(ordered(needs), scope, first)); !slices.Equal(got, []string{"acme/a/z"}) {
		t.Errorf("changed are %v", got)
	}
}

func TestALargeCycleIsFoundInTime(t *testing.T) {
	const size = 1500
	needs := map[string][]string{}
	for i := range size {
		needs[fmt.Sprintf("a/x%d", i)] = []string{fmt.Sprintf("name: x%d", (i+1)%size)}
	}
	files := ordered(needs)
	began := time.Now()
	tree := fresh(files, Scope{Repository: "acme", Tenant: "acme"})
	if len(problems(tree)) != size || len(apps(tree)) != 0 {
		t.Errorf("%d problems, %d apps", len(problems(tree)), len(apps(tree)))
	}
	if longest := len(problems(tree)[0].Why); longest > 300 {
		t.Errorf("a message has %d bytes: %s", longest, problems(tree)[0].Why)
	}
	t.Logf("a ring of %d apps is read in %s", size, time.Since(began))
}

func TestExpressionsAndDependenciesAreChecked(t *testing.T) {
	cases := map[string]struct{ spec, want string }{
		"an expression about a dependency": {"dependsOn: [{name: y, readyExpr: 'dep.status.x =='}]", "projects/a/apps/x/app.yaml:7:25: spec.dependsOn[0].readyExpr: 1:16: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}: write CEL that is true once the dependency dep is ready, such as dep.status.succeeded >= 1 [invalid-expression]"},
		"a Secret":                         {"dependsOn: [{apiVersion: v1, kind: Secret, name: y}]", "projects/a/apps/x/app.yaml:7:32: spec.dependsOn[0].kind: no app may depend on a Secret [secret-dependency]"},
		"an expression about health":       {"healthCheckExprs: [{apiVersion: a.io/v1, kind: Db, current: 'statos.x == 1'}]", "projects/a/apps/x/app.yaml:7:22: spec.healthCheckExprs[0].current: 1:1: undeclared reference to 'statos' [invalid-expression]"},
		"health of a Secret":               {"healthCheckExprs: [{apiVersion: v1, kind: Secret, current: 'true'}]", "projects/a/apps/x/app.yaml:7:22: spec.healthCheckExprs[0].kind: no expression may read a Secret [invalid-expression]"},
		"a hook without an image":          {"hooks: {pre: [{name: migrate}]}", "projects/a/apps/x/app.yaml:7:17: spec.hooks.pre[0].image is required unless the app is of type Image [required-field]"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			files := ordered(map[string][]string{"a/x": nil})
			files["projects/a/apps/x/app.yaml"].Data = []byte("apiVersion: paas.kubeop.io/v1alpha1\nkind: App\nmetadata: {name: x}\nspec:\n" +
				"  type: Raw\n  raw: {manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}]}\n  " + c.spec + "\n")
			tree := fresh(files, Scope{Repository: "acme", Tenant: "acme"})
			if len(problems(tree)) != 1 || problems(tree)[0].String() != c.want {
				t.Errorf("got %v, want %s", problems(tree), c.want)
			}
		})
	}
}
