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
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"
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
	return (&Reader{kinds: shared.kinds, seen: map[string]memory{}}).Read(files, scope)
}

// Each file of testdata is a repository and what is read from it; see loadCase for the format.
func TestReadCases(t *testing.T) {
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

// describe lists the problems with what they hold, then the objects.
func describe(t *Tree) string {
	var b strings.Builder
	for _, p := range t.Problems {
		held := strings.Trim(p.Tenant+"/"+p.Project, "/")
		if held == "" {
			held = "everything"
		}
		fmt.Fprintf(&b, "%s [holds %s]\n", p, held)
	}
	for _, o := range objects(t) {
		fmt.Fprintf(&b, "%s %s\n", o.GetObjectKind().GroupVersionKind().Kind, client.ObjectKeyFromObject(o))
	}
	return b.String()
}

func objects(t *Tree) []client.Object {
	var all []client.Object
	for _, o := range t.Tenants {
		all = append(all, o)
	}
	for _, o := range t.Projects {
		all = append(all, o)
	}
	for _, o := range t.Apps {
		all = append(all, o)
	}
	return all
}

func TestStamps(t *testing.T) {
	tests := map[string]struct {
		scope Scope
		base  string
	}{
		"platform":                   {scope: Scope{Repository: "platform", Revision: "main@sha1:c0ffee"}, base: "platform"},
		"tenant":                     {scope: Scope{Repository: "acme", Tenant: "acme", Revision: "main@sha1:c0ffee"}, base: "tenant"},
		"tenant in a folder of many": {scope: Scope{Repository: "acme", Tenant: "acme", Path: "teams/acme", Revision: "r"}, base: "tenant"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tree := fresh(baseFiles(t, tc.base), tc.scope)
			if len(tree.Problems) > 0 {
				t.Fatalf("problems: %v", tree.Problems)
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
		data, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		d := document{file: o.GetName()}
		d.parse(data)
		d.validate(shared.kinds[o.GetObjectKind().GroupVersionKind().Kind], o.GetName())
		for _, f := range d.findings {
			t.Errorf("%s: %s", f.file, f.why)
		}
	}
}

// Only what changed is judged again, and a verdict that is remembered is the same verdict.
func TestReadJudgesOnlyWhatChanged(t *testing.T) {
	files := baseFiles(t, "platform")
	counted := &counting{Files: files, opened: map[string]int{}}
	r := &Reader{kinds: shared.kinds, seen: map[string]memory{}}
	scope := Scope{Repository: "platform", Revision: "main@sha1:1"}
	first := r.Read(counted, scope)

	counted.opened = map[string]int{}
	second := r.Read(counted, scope)
	if diff := cmp.Diff(describe(first), describe(second)); diff != "" {
		t.Errorf("second reading differs:\n%s", diff)
	}
	if len(counted.opened) > 0 {
		t.Errorf("an unchanged commit was parsed again: %v", counted.opened)
	}

	const app = "tenants/acme/projects/shop/apps/web/app.yaml"
	files[app].Data = append(bytes.Clone(files[app].Data), "  bogus: 1\n"...)
	third := r.Read(counted, scope)
	if diff := cmp.Diff(map[string]int{app: 1}, counted.opened); diff != "" {
		t.Errorf("parsed files (-want +got):\n%s", diff)
	}
	if len(third.Problems) != 1 || len(third.Projects) != 1 {
		t.Errorf("the changed file was not judged: %v", third.Problems)
	}

	r.Forget("platform")
	counted.opened = map[string]int{}
	r.Read(counted, scope)
	if len(counted.opened) < 3 {
		t.Errorf("a forgotten repository must be read afresh, opened %v", counted.opened)
	}
}

// Stamping must not reach into what is remembered.
func TestReadDoesNotShareObjects(t *testing.T) {
	r := &Reader{kinds: shared.kinds, seen: map[string]memory{}}
	files, scope := baseFiles(t, "tenant"), Scope{Repository: "acme", Tenant: "acme", Revision: "1"}
	first := r.Read(files, scope)
	first.Apps[0].Spec.Image.Reference = "spoiled"
	first.Apps[0].Labels["spoiled"] = "yes"
	second := r.Read(files, scope)
	if got := second.Apps[0]; got.Spec.Image.Reference == "spoiled" || got.Labels["spoiled"] != "" {
		t.Errorf("a change of one reading shows in the next: %v", got)
	}
}

// A store that fails holds back what could not be read, whatever is read.
func TestReadWithFailingStore(t *testing.T) {
	tests := map[string]struct{ fails, holds string }{
		"root":          {fails: ".", holds: "/"},
		"layout":        {fails: "kubeop.yaml", holds: "/"},
		"tenants":       {fails: "tenants", holds: "/"},
		"tenant folder": {fails: "tenants/acme", holds: "acme/"},
		"tenant file":   {fails: "tenants/acme/tenant.yaml", holds: "acme/"},
		"projects":      {fails: "tenants/acme/projects", holds: "acme/"},
		"project":       {fails: "tenants/acme/projects/shop", holds: "acme/shop"},
		"apps":          {fails: "tenants/acme/projects/shop/apps", holds: "acme/shop"},
		"app folder":    {fails: "tenants/acme/projects/shop/apps/web", holds: "acme/shop"},
		"app file":      {fails: "tenants/acme/projects/shop/apps/web/app.yaml", holds: "acme/shop"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tree := fresh(&failing{Files: baseFiles(t, "platform"), path: tc.fails}, Scope{Repository: "platform"})
			if len(tree.Problems) != 1 {
				t.Fatalf("want one problem, got %v", tree.Problems)
			}
			p := tree.Problems[0]
			if got := p.Tenant + "/" + p.Project; got != tc.holds || !errors.Is(p.Err, fs.ErrPermission) {
				t.Errorf("got %s holding %s, want %s held for the store's error", p, got, tc.holds)
			}
		})
	}
}

// A store that failed once must not leave a verdict behind.
func TestReadAfterStoreFailed(t *testing.T) {
	files, scope := baseFiles(t, "platform"), Scope{Repository: "platform"}
	for _, path := range []string{"kubeop.yaml", "tenants/acme/tenant.yaml", "tenants/acme/projects/shop/apps/web/app.yaml"} {
		r := &Reader{kinds: shared.kinds, seen: map[string]memory{}}
		if got := r.Read(&failing{Files: files, path: path}, scope); len(got.Problems) != 1 {
			t.Errorf("%s: want one problem, got %v", path, got.Problems)
		}
		if got := r.Read(files, scope); len(got.Problems) > 0 {
			t.Errorf("%s can be read again, got %v", path, got.Problems)
		}
	}
}
