package tree

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/gitops/document"
	"github.com/kubeop/kubeop/gitops/identity"
)

var update = flag.Bool("update", false, "write what was read into the golden part of testdata/*.txt")

// shared is compiled once: the schemas take longer than all the tests.
var shared = func() *Reader {
	r, err := NewReader()
	if err != nil {
		panic(err)
	}
	return r
}()

// fresh reads with the compiled schemas and no memory.
func fresh(files Files, scope Scope) *Tree {
	return shared.Read(files, scope, nil)
}

// Each file of testdata is a repository and what is read from it; see loadCase for the format.
func TestReadGivesTheTreeOfEachCaseFile(t *testing.T) {
	cases, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(cases) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, name := range cases {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txt"), func(t *testing.T) {
			c := loadCase(t, name)
			got := describe(fresh(c.files, c.scope))
			if *update {
				c.rewrite(t, name, got)
				return
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("read differs from the golden part of %s (-want +got):\n%s", name, diff)
			}
		})
	}
}

// describe lists the problems with what stays as it was for them, then the objects.
func describe(t *Tree) string {
	var b strings.Builder
	for _, p := range problems(t) {
		held := "nothing"
		switch {
		case p.Of != identity.Ref{}:
			held = p.Of.Path()
		case !t.Usable():
			held = "everything"
		}
		fmt.Fprintf(&b, "%s [holds %s]\n", p, held)
	}
	for _, o := range objects(t) {
		fmt.Fprintf(&b, "%s %s\n", o.GetObjectKind().GroupVersionKind().Kind, client.ObjectKeyFromObject(o))
	}
	return b.String()
}

func problems(t *Tree) []Problem {
	var all []Problem
	t.All(func(p Problem) bool {
		all = append(all, p)
		return true
	})
	sortProblems(all)
	return all
}

const revision = "main@sha1:c0ffee"

// objects are what the tree declares: Policies, then Registries, then Tenants, then Projects, then Apps.
func objects(t *Tree) []client.Object {
	byKind := map[string][]client.Object{}
	t.Walk(func(n Node) bool {
		if n.Declared() {
			byKind[n.Ref().Kind()] = append(byKind[n.Ref().Kind()], t.Object(n, revision))
		}
		return true
	})
	return slices.Concat(byKind[v1alpha1.PolicyKind], byKind[v1alpha1.RegistryKind], byKind[v1alpha1.TenantKind], byKind[v1alpha1.ProjectKind], byKind[v1alpha1.AppKind])
}

func apps(t *Tree) []*v1alpha1.App {
	var all []*v1alpha1.App
	for _, o := range objects(t) {
		if app, ok := o.(*v1alpha1.App); ok {
			all = append(all, app)
		}
	}
	return all
}

func TestDeclaredObjectsHaveTheirLabelsAndAnnotations(t *testing.T) {
	tests := map[string]struct {
		scope Scope
		base  string
	}{
		"platform":                   {scope: Scope{Repository: "platform"}, base: "platform"},
		"tenant":                     {scope: Scope{Repository: "acme", Tenant: "acme"}, base: "tenant"},
		"tenant in a folder of many": {scope: Scope{Repository: "acme", Tenant: "acme", Path: "teams/acme"}, base: "tenant"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tree := fresh(baseFiles(t, tc.base), tc.scope)
			if len(problems(tree)) > 0 {
				t.Fatalf("problems: %v", problems(tree))
			}
			var out bytes.Buffer
			for _, o := range objects(tree) {
				text, err := json.MarshalIndent(map[string]any{
					"kind": o.GetObjectKind().GroupVersionKind().String(), "name": client.ObjectKeyFromObject(o).String(),
					"labels": o.GetLabels(), "annotations": o.GetAnnotations(),
				}, "", "  ")
				if err != nil {
					t.Fatal(err)
				}
				out.Write(append(text, '\n'))
			}
			golden(t, "testdata/stamps-"+strings.ReplaceAll(name, " ", "-")+".golden", out.String())
		})
	}
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("differs from %s (-want +got):\n%s", file, diff)
	}
}

// What Read returns must be accepted by the API server: it validates again what the typed object says of itself.
func TestReadObjectsSurviveTheirOwnRules(t *testing.T) {
	tree := fresh(baseFiles(t, "platform"), Scope{Repository: "platform"})
	for _, o := range objects(tree) {
		at, ok := identity.Of(o)
		o.SetNamespace("")
		o.SetLabels(nil)
		o.SetAnnotations(nil)
		data, err := json.Marshal(o)
		if err != nil || !ok {
			t.Fatal(err, ok)
		}
		d := document.Parse(o.GetName(), data)
		delete(d.Value, "status")
		for _, f := range shared.kinds.Object(d, at, false).Findings {
			t.Errorf("%s: %s", f.File, f.Why)
		}
	}
}

// Only what changed is judged again, what did not change is the same node, and Changes names the rest.
func TestReadChecksOnlyChangedFiles(t *testing.T) {
	files := baseFiles(t, "platform")
	counted := &counting{Files: files, opened: map[string]int{}}
	scope := Scope{Repository: "platform"}
	first := shared.Read(counted, scope, nil)

	counted.opened = map[string]int{}
	second := shared.Read(counted, scope, first)
	if diff := cmp.Diff(describe(first), describe(second)); diff != "" {
		t.Errorf("second reading differs:\n%s", diff)
	}
	if len(counted.opened) > 0 {
		t.Errorf("an unchanged commit was parsed again: %v", counted.opened)
	}
	if changed := changes(first, second); len(changed) > 0 {
		t.Errorf("nothing changed, and yet: %v", changed)
	}

	const app = "tenants/acme/projects/shop/apps/web/app.yaml"
	files[app].Data = append(bytes.Clone(files[app].Data), "  bogus: 1\n"...)
	third := shared.Read(counted, scope, second)
	if diff := cmp.Diff(map[string]int{app: 1}, counted.opened); diff != "" {
		t.Errorf("parsed files (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"acme/shop/web"}, changes(second, third)); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	if len(problems(third)) != 1 || len(objects(third)) != len(objects(second))-1 {
		t.Errorf("the changed file was not judged: %v", problems(third))
	}
	if _, other := changed(t, second, third, identity.Ref{Tenant: "acme", Project: "blog"}); other {
		t.Error("a project that the commit was not about was read again")
	}

	delete(files, app)
	files["tenants/zeta/tenant.yaml"] = &fstest.MapFile{Data: []byte(strings.ReplaceAll(string(files["tenants/acme/tenant.yaml"].Data), "acme", "zeta"))}
	fourth := shared.Read(counted, scope, third)
	if diff := cmp.Diff([]string{"acme/shop/web", "zeta"}, changes(third, fourth)); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(describe(fresh(files, scope)), describe(fourth)); diff != "" {
		t.Errorf("read step by step it differs from read at once (-at once +step by step):\n%s", diff)
	}
	if all := changes(nil, fourth); len(all) != 6 {
		t.Errorf("of a tree that nothing is known of everything is new: %v", all)
	}
}

func changes(before, after *Tree) (paths []string) {
	Changes(before, after, func(r identity.Ref) { paths = append(paths, r.Path()) })
	return paths
}

// changed returns the node in the later tree, and whether it is another one than in the earlier.
func changed(t *testing.T, before, after *Tree, ref identity.Ref) (Node, bool) {
	t.Helper()
	was, ok := before.Find(ref)
	is, still := after.Find(ref)
	if !ok || !still {
		t.Fatalf("%v is not in both trees", ref)
	}
	return is, is != was
}

// A store that fails holds back what could not be read, whatever is read.
func TestAStoreThatFailsHoldsBackOnlyWhatWasNotRead(t *testing.T) {
	tests := map[string]struct{ fails, holds, uncovered string }{
		"root":          {fails: ".", uncovered: "acme acme/shop acme/shop/web"},
		"layout":        {fails: "kubeop.yaml", uncovered: "acme acme/shop acme/shop/web"},
		"tenants":       {fails: "tenants", uncovered: "acme acme/shop acme/shop/web"},
		"tenant folder": {fails: "tenants/acme", holds: "acme", uncovered: "acme/shop acme/shop/web"},
		"tenant file":   {fails: "tenants/acme/tenant.yaml", holds: "acme"},
		"projects":      {fails: "tenants/acme/projects", uncovered: "acme/shop acme/shop/web"},
		"project":       {fails: "tenants/acme/projects/shop", holds: "acme/shop", uncovered: "acme/shop/web"},
		"apps":          {fails: "tenants/acme/projects/shop/apps", uncovered: "acme/shop/web"},
		"app folder":    {fails: "tenants/acme/projects/shop/apps/web", holds: "acme/shop/web"},
		"app file":      {fails: "tenants/acme/projects/shop/apps/web/app.yaml", holds: "acme/shop/web"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tree := fresh(&failing{Files: baseFiles(t, "platform"), path: tc.fails}, Scope{Repository: "platform"})
			if len(problems(tree)) != 1 {
				t.Fatalf("want one problem, got %v", problems(tree))
			}
			p := problems(tree)[0]
			if p.Of.Path() != tc.holds || !errors.Is(p.Err, fs.ErrPermission) {
				t.Errorf("got %s holding %s, want %s held for the store's error", p, p.Of.Path(), tc.holds)
			}
			if _, err := tree.Unread(); !errors.Is(err, fs.ErrPermission) {
				t.Errorf("what could not be read is %v", err)
			}
			var uncovered []string
			for _, ref := range []identity.Ref{{Tenant: "acme"}, {Tenant: "acme", Project: "shop"}, {Tenant: "acme", Project: "shop", App: "web"}} {
				if _, there := tree.Find(ref); !there && !tree.Covers(ref) {
					uncovered = append(uncovered, ref.Path())
				}
			}
			if got := strings.Join(uncovered, " "); got != tc.uncovered {
				t.Errorf("nothing is known of %q, want %q", got, tc.uncovered)
			}
		})
	}
}

// A store that failed once must not leave a verdict behind.
func TestAFailureOfTheStoreIsNotRemembered(t *testing.T) {
	files, scope := baseFiles(t, "platform"), Scope{Repository: "platform"}
	for _, path := range []string{"kubeop.yaml", "tenants/acme/tenant.yaml", "tenants/acme/projects/shop/apps/web/app.yaml"} {
		broken := shared.Read(&failing{Files: files, path: path}, scope, nil)
		if len(problems(broken)) != 1 {
			t.Errorf("%s: want one problem, got %v", path, problems(broken))
		}
		if got := shared.Read(files, scope, broken); len(problems(got)) > 0 {
			t.Errorf("%s can be read again, got %v", path, problems(got))
		}
	}
}

// What the API server accepted is not held against the rules again, as long as it is the same: an operator whose rules are stricter
// leaves it alone. All else about the file is read as ever.
func TestReadTrustsAcceptedFiles(t *testing.T) {
	const app = "tenants/acme/projects/shop/apps/web/app.yaml"
	files, scope, web := baseFiles(t, "platform"), Scope{Repository: "platform"}, identity.Ref{Tenant: "acme", Project: "shop", App: "web"}
	files[app].Data = append(bytes.Clone(files[app].Data), "  interval: 1ms\n"...)
	first := fresh(files, scope)
	refused, _ := first.Find(web)
	if got := problems(first); len(got) != 1 || refused.Declared() {
		t.Fatalf("an interval of 1ms is wrong, and the problems are %v", got)
	}
	for accepted, want := range map[string]int{refused.self().file: 0, "another": 1, "": 1} {
		got := shared.Read(files, scope, Accepted(scope, map[identity.Ref]string{web: accepted}))
		if n, _ := got.Find(web); len(problems(got)) != want || n.Declared() != (want == 0) {
			t.Errorf("with %q accepted the problems are %v", accepted, problems(got))
		}
	}
	digests := map[identity.Ref]string{web: refused.self().file}
	if got := shared.Read(files, scope, Accepted(Scope{Repository: "another"}, digests)); len(problems(got)) != 1 {
		t.Errorf("what another repository declared counts: %v", problems(got))
	}
	files[app].Data = append(files[app].Data, "  bogus: 1\n"...)
	unknown := fresh(files, scope)
	n, _ := unknown.Find(web)
	if got := shared.Read(files, scope, Accepted(scope, map[identity.Ref]string{web: n.self().file})); len(problems(got)) != 1 {
		t.Errorf("an unknown field is a problem whatever was accepted: %v", problems(got))
	}
}
