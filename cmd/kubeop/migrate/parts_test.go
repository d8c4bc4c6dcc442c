package migrate

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/cmd/kubeop/migrate/document"
	"github.com/kubeop/kubeop/gitops/slug"
)

// TestAnyNameBecomesOneThatKubeopAccepts, and one that it accepts stays.
func TestAnyNameBecomesOneThatKubeopAccepts(t *testing.T) {
	appName := regexp.MustCompile(`^[a-z]([-a-z0-9]{0,51}[a-z0-9])?$`)
	random, letters := rand.New(rand.NewPCG(1, 1)), []rune("abz09-._AZé ")
	for range 5000 {
		name := make([]rune, 1+random.IntN(70))
		for i := range name {
			name[i] = letters[random.IntN(len(letters))]
		}
		got := slug.Name(string(name), "app", longest)
		if !appName.MatchString(got) || slug.Name(got, "app", longest) != got || appName.MatchString(string(name)) && got != string(name) {
			t.Fatalf("%q becomes %q", string(name), got)
		}
	}
}

// TestEachNamespaceHasAProjectOfItsOwn, unless one is given: objects of two namespaces may have the same name.
func TestEachNamespaceHasAProjectOfItsOwn(t *testing.T) {
	long := strings.Repeat("a", 35)
	for name, c := range map[string]struct {
		tenant, project string
		want            map[string]string
	}{
		"of a tenant":     {"acme", "", map[string]string{"acme-shop": "shop-2", "shop": "shop-3", "kubeop-acme-shop": "shop", "acmeshop": "acmeshop", "1a": "p-1a", "acme-1a": "1a"}},
		"of the longest":  {"acme", "", map[string]string{"acme-" + long: long, long: long[:33] + "-2"}},
		"given":           {"acme", "all", map[string]string{"acme-shop": "all", "shop": "all"}},
		"of the platform": {"platform", "", map[string]string{"platform-shop": "platform-shop", "shop": "shop"}},
	} {
		m := newMigration(c.tenant)
		m.project = c.project
		for _, namespace := range []string{"acme-shop", "shop", "kubeop-acme-shop", "acmeshop", "1a", "acme-1a", "platform-shop", "acme-" + long, long} {
			if _, there := c.want[namespace]; there {
				m.objects = append(m.objects, &object{Unstructured: named(helmGroup, "v2", "HelmRelease", namespace, "web")})
			}
		}
		for range 2 { // The second app of a namespace has the project of the first one.
			for _, o := range m.objects {
				namespace := o.GetNamespace()
				want := c.want[namespace]
				a := m.add(o, "web", namespace)
				if a == nil || a.project != want {
					t.Errorf("%s: the namespace %s has the app %+v, want the project %s: %+v", name, namespace, a, want, m.report.LeftOut)
				}
			}
		}
	}
}

// TestAnAppWaitsForEachOtherOnce, and never for itself.
func TestAnAppWaitsForEachOtherOnce(t *testing.T) {
	a, b, far := &app{project: "shop", name: "a", spec: values{}}, &app{project: "shop", name: "b"}, &app{project: "blog", name: "b"}
	for _, on := range []*app{a, b, far, b, far, a} {
		a.depend(on)
	}
	want := []any{values{"name": "b"}, values{"name": "b", "project": "blog"}}
	if diff := cmp.Diff(want, a.spec["dependsOn"]); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestTheReportAsksToCopyWhatAMovedAppReads(t *testing.T) {
	m := newMigration("acme")
	a := &app{target: "kubeop-acme-shop", from: &object{Unstructured: named(helmGroup, "v2", "HelmRelease", "shop", "web")}}
	m.needs(a, "spec.valuesFrom", "Secret", "keys", "kubeop-acme-shop")
	m.needs(a, "spec.valuesFrom", "Secret", "a\nb", "shop")
	want := []Entry{{Object: "HelmRelease shop/web", Field: "spec.valuesFrom", Do: `the Secret "a\nb" has to be in the namespace kubeop-acme-shop: copy it from shop`}}
	if diff := cmp.Diff(want, m.report.ToDo); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestFieldsAreTakenOnceAndTheRestIsReported.
func TestFieldsAreTakenOnceAndTheRestIsReported(t *testing.T) {
	o := named(helmGroup, "v2", "HelmRelease", "shop", "web")
	o.Object["spec"] = values{"a": "x", "b": values{"c": int64(1), "d": "y", "null": nil}, "list": []any{values{"e": "f"}}, "mixed": []any{values{}, "g"}, "empty": values{}, "gone": values{"deep": values{"er": true}}}
	m := newMigration("acme")
	f := fieldsOf(&object{Unstructured: o}, m.report)
	if got := []any{f.text("a"), f.text("a"), f.text("b.c"), f.text("a.b"), f.has("b.c"), f.has("b.null"), f.has("a")}; !cmp.Equal(got, []any{"x", "", "", "", true, false, false}) {
		t.Errorf("the texts are %q", got)
	}
	if list, mixed := f.maps("list"), f.maps("mixed"); len(list) != 1 || f.has("list") || mixed != nil || !f.has("mixed") {
		t.Errorf("the lists are %v and %v, and left is %v", list, mixed, f.left)
	}
	to := values{"old": "is no object"}
	f.move(to, [2]string{"b.c", "n.m"}, [2]string{"b.null", "null"}, [2]string{"nothing", "nothing"}, [2]string{"b.d", "old.d"})
	if diff := cmp.Diff(values{"n": values{"m": int64(1)}, "old": values{"d": "y"}}, to); diff != "" {
		t.Errorf("moved, -want +got:\n%s", diff)
	}
	f.rest(map[string]string{"gone": "why all of it", "mixed": "why this", "gone.deep.er.x": "no"})
	var left []string
	for _, e := range m.report.LeftOut {
		left = append(left, e.Field+": "+e.Do)
	}
	if diff := cmp.Diff([]string{"spec.gone.deep.er: why all of it", "spec.mixed: why this"}, left); diff != "" {
		t.Errorf("left out, -want +got:\n%s", diff)
	}
	if _, kept := o.Object["spec"].(values)["a"]; !kept {
		t.Error("the object itself is changed")
	}
}

func TestTheShorterOfTwoDurationsIsTaken(t *testing.T) {
	for _, c := range [][3]string{{"1m", "2m", "1m"}, {"2m", "1m", "1m"}, {"60s", "1m", "60s"}, {"", "1m", "1m"}, {"1m", "", "1m"}, {"", "", ""}, {"soon", "1m", "1m"}, {"1m", "soon", "1m"}} {
		if got := shorter(c[0], c[1]); got != c[2] {
			t.Errorf("of %q and %q: %q, want %q", c[0], c[1], got, c[2])
		}
	}
}

// TestAReportIsSortedAndHasEachLineOnce.
func TestAReportIsSortedAndHasEachLineOnce(t *testing.T) {
	e := func(file string, line int, object, field string) Entry {
		return Entry{Object: object, Field: field, File: file, Line: line, Do: "do"}
	}
	r := &Report{LeftOut: []Entry{e("b", 1, "x", ""), e("a", 10, "x", ""), e("a", 9, "y", "q"), e("a", 9, "y", "p"), e("a", 9, "x", "z"), e("a", 9, "y", "p")}}
	r.sort()
	if diff := cmp.Diff([]Entry{e("a", 9, "x", "z"), e("a", 9, "y", "p"), e("a", 9, "y", "q"), e("a", 10, "x", ""), e("b", 1, "x", "")}, r.LeftOut); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if r.ToDo == nil {
		t.Error("without entries, a list is null in JSON")
	}
	if got, want := e("a\nb", 9, "x", "p").place()+e("", 0, "x", "p").place()+e("a", 1, "x", "").String(), `"a\nb":9: x: do`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestAnImportAgainWritesNothing, and keeps what a person made of the files that only say that something exists.
func TestAnImportAgainWritesNothing(t *testing.T) {
	folder, out := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "a.yaml"), []byte(release+charts), 0o600); err != nil {
		t.Fatal(err)
	}
	again := func() (report, files string) {
		report, err := run(t, "flux", folder, "--tenant", "acme", "--project", "shop", "--out", out)
		if err != nil && !strings.Contains(err.Error(), "not everything was imported") {
			t.Fatal(err)
		}
		return report, everything(t, out)
	}
	first, files := again()
	project := filepath.Join(out, "projects", "shop", "project.yaml")
	text, err := os.ReadFile(project)
	if err == nil {
		err = os.WriteFile(project, append(text, "# mine\n"...), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	second, later := again()
	if want := strings.Replace(files, string(text), string(text)+"# mine\n", 1); later != want {
		t.Errorf("the files become\n%s\nwant\n%s", later, want)
	}
	if wrote, kept := strings.Count(first, "Wrote "), strings.Count(second, "Left as it is: "); wrote != 3 || kept != wrote || strings.Contains(second, "Wrote ") || strings.Contains(second, "Next:") {
		t.Errorf("first\n%s\nthen\n%s", first, second)
	}
}

// TestTheLineOfAFieldIsThatOfTheNearestDocument that has it; else of the one that says where the object comes from.
func TestTheLineOfAFieldIsThatOfTheNearestDocument(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{"patch.yaml": "# x\nkind: HelmRelease\nmetadata: {name: web}\nspec:\n  timeout: 1m\n", "base.yaml": "kind: HelmRelease\nmetadata: {name: web}\nspec:\n  timeout: 2m\n  chart: {}\n"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	docs, err := document.Read(os.DirFS(folder))
	if err != nil {
		t.Fatal(err)
	}
	byFile := map[string]*document.Document{}
	for _, d := range docs[document.Key("HelmRelease", "web")] {
		byFile[d.File] = d
	}
	o := &object{Unstructured: named(helmGroup, "v2", "HelmRelease", "shop", "web"), written: []*document.Document{byFile["patch.yaml"], byFile["base.yaml"]}}
	for field, want := range map[string]string{"spec.timeout": "patch.yaml:5", "spec.chart": "base.yaml:5", "spec.none": "base.yaml:1", "": "base.yaml:1"} {
		var path []string
		if field != "" {
			path = strings.Split(field, ".")
		}
		file, line := o.place(path...)
		if got := fmt.Sprintf("%s:%d", file, line); got != want {
			t.Errorf("%q is at %s, want %s", field, got, want)
		}
	}
	if file, line := (&object{}).place("spec"); file != "" || line != 0 {
		t.Errorf("an object of a cluster is at %s:%d", file, line)
	}
}
