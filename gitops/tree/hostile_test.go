package tree

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/kubeop/kubeop/gitops/code"
	"github.com/kubeop/kubeop/gitops/document"
	"github.com/kubeop/kubeop/gitops/identity"
	"github.com/kubeop/kubeop/gitops/layout"
)

// entry is a folder's entry as a hostile tree may have it.
type entry struct {
	fs.DirEntry
	name string
	mode fs.FileMode
}

func (e entry) Name() string      { return e.name }
func (e entry) Type() fs.FileMode { return e.mode }
func (e entry) IsDir() bool       { return e.mode.IsDir() }

// looping adds folders to one folder that lead back to it and out of it, which no Git client writes but a tree can hold.
type looping struct {
	repository
	at string
}

func (l looping) Sub(path string) (Files, error) { return sub{l, path}, nil }

func (l looping) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(l.repository, name)
	if name == l.at {
		entries = append(entries, entry{name: ".", mode: fs.ModeDir}, entry{name: "..", mode: fs.ModeDir})
	}
	return entries, err
}

// A reading that followed such names would not end.
func TestReadFoldersThatLeadBack(t *testing.T) {
	tests := map[string]struct {
		at       string
		reported bool
	}{
		"app's folder": {at: "projects/shop/apps/web", reported: true},
		"project":      {at: "projects/shop", reported: true},
		"root":         {at: "."}, // names with a dot are left out there
		"stray folder": {at: "scripts"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			files := baseFiles(t, "tenant")
			files["scripts/build.sh"] = &fstest.MapFile{}
			tree := fresh(looping{files, tc.at}, Scope{Repository: "acme", Tenant: "acme"})
			if got := len(problems(tree)) == 2; got != tc.reported || len(problems(tree))%2 != 0 {
				t.Errorf("problems: %v", problems(tree))
			}
			for _, p := range problems(tree) {
				if p.Why != "this is not a usable file name" {
					t.Errorf("problem: %s", p)
				}
			}
		})
	}
}

// Names in a commit may be anything Git takes; each is named in one line.
func TestReadReportsUnusableNamesInOneLine(t *testing.T) {
	for _, name := range []string{"..", ".", "", "a/b", "\xff"} {
		if layout.Unusable(entry{name: name, mode: fs.ModeDir}) == "" {
			t.Errorf("%q passes as a name", name)
		}
	}
	files := baseFiles(t, "tenant")
	files["projects/shop/a\nb: forged.yaml"] = &fstest.MapFile{}
	files["projects/blog/project.yaml"].Data = []byte("apiVersion: paas.kubeop.io/v1alpha1\nkind: Project\n" +
		"metadata:\n  name: blog\n\"a\\nb: forged\\e\": 1\n")
	problems := problems(fresh(files, Scope{Repository: "acme", Tenant: "acme"}))
	if len(problems) != 2 {
		t.Fatalf("want two problems, got %v", problems)
	}
	for _, p := range problems {
		if !strings.Contains(p.String(), "forged") || strings.ContainsAny(p.String(), "\n\x1b") {
			t.Errorf("the problem must name the text in one line: %q", p)
		}
	}
}

// TestReadRefusesFilesThatExpandBeyondTheLimits: a few bytes of YAML can expand to gigabytes, so the size is limited before anything is allocated.
func TestReadRefusesFilesThatExpandBeyondTheLimits(t *testing.T) {
	spec := "apiVersion: paas.kubeop.io/v1alpha1\nkind: Project\nmetadata:\n  name: shop\nspec:\n  x: "
	text := strings.Repeat("t", document.MaxSize/2)
	tests := map[string]struct{ data, why string }{
		"a large file":          {data: strings.Repeat("#", document.MaxSize+1), why: "the file is larger than 1024 KiB"},
		"a large text by alias": {data: spec + "[&t " + text + ", *t, *t]\n", why: "the document holds more than 1024 KiB of text, aliases followed"},
		"large keys by alias":   {data: spec + "[&t {? " + text + "\n: 1}, *t, *t]\n", why: "the document holds more than 1024 KiB of text, aliases followed"},
		"a list of many":        {data: spec + "[" + strings.Repeat("1,", 2000+1) + "]\n", why: "the list holds more than 2000 items"},
		"many values, no alias": {data: spec + "[" + strings.Repeat("["+strings.Repeat("1,", 2000)+"],", 60) + "]\n", why: "the file may hold more than 200000 mappings, lists and values: write some of it into files of the app's folder"},
		"many values in blocks": {data: spec + "\n" + strings.Repeat("    - 1\n", 90_000), why: "the list holds more than 2000 items"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			files := baseFiles(t, "tenant")
			files["projects/shop/project.yaml"].Data = []byte(tc.data)
			got := fresh(files, Scope{Repository: "acme", Tenant: "acme"})
			if len(problems(got)) != 1 || problems(got)[0].Why != tc.why || problems(got)[0].Err != nil {
				t.Errorf("got %v, want one problem: %s", problems(got), tc.why)
			}
		})
	}
}

// A chart's values are free in form, and so are inline manifests: nothing but the bounds keeps aliases there from growing.
func TestReadBoundsAliasesInApps(t *testing.T) {
	bomb := "[&a " + strings.Repeat("x", 100_000) + ", " + strings.Repeat("*a, ", 1900) + "]"
	laughs := "{a: &a [x, x, x, x, x, x, x, x, x]"
	for c := 'b'; c <= 'z'; c++ {
		laughs += ", " + string(c) + ": &" + string(c) + " [" + strings.Repeat("*"+string(c-1)+", ", 9) + "]"
	}
	const text, values = "the document holds more than 1024 KiB of text, aliases followed", "the document holds more than 100000 values, aliases followed"
	tests := map[string]struct{ spec, why string }{
		"values":                 {"{helm: {path: chart, values: {x: " + bomb + "}}}", text},
		"values, billion laughs": {"{helm: {path: chart, values: {x: " + laughs + "}}}}", values},
		"manifests":              {"{raw: {manifests: [{x: " + bomb + "}]}}", text},
		"itself":                 {"{helm: {path: chart, values: &v {x: *v}}}", "the document is nested deeper than 64 levels"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			files := baseFiles(t, "tenant")
			files["projects/shop/apps/web/app.yaml"].Data = []byte("apiVersion: paas.kubeop.io/v1alpha1\nkind: App\n" +
				"metadata: {name: web}\nspec: " + tc.spec + "\n")
			got := fresh(files, Scope{Repository: "acme", Tenant: "acme"})
			if len(problems(got)) != 1 || problems(got)[0].Why != tc.why || problems(got)[0].Err != nil {
				t.Errorf("got %v, want one problem: %s", problems(got), tc.why)
			}
		})
	}
}

// A key is text as much as a value is, also one that is written again.
func TestReadBoundsKeysByAlias(t *testing.T) {
	files := baseFiles(t, "tenant")
	files["projects/shop/project.yaml"].Data = []byte("apiVersion: paas.kubeop.io/v1alpha1\nkind: Project\nmetadata:\n  name: shop\nspec:\n  x: {? &k " +
		strings.Repeat("k", document.MaxSize/2) + " : 1, " + strings.Repeat("*k : 1, ", 30_000) + "}\n")
	got := problems(fresh(files, Scope{Repository: "acme", Tenant: "acme"}))
	if len(got) != 1 || !strings.HasPrefix(got[0].Why, `"kkk`) {
		t.Errorf("%d problems, want one: what comes after the bound is not read", len(got))
	}
}

// A repository's name can be given to another tenant's later; what was said to the first is not said to the second.
func TestReadRemembersForOneTenant(t *testing.T) {
	files := baseFiles(t, "tenant")
	const app = "projects/shop/apps/web/app.yaml"
	files[app].Data = []byte(strings.Replace(string(files[app].Data), "team: blue", "paas.kubeop.io/tenant: acme", 1))
	before := shared.Read(files, Scope{Repository: "shared", Tenant: "acme"}, nil)
	got := shared.Read(files, Scope{Repository: "shared", Tenant: "zeta"}, before)
	if len(problems(got)) != 1 || !strings.Contains(problems(got)[0].Why, `names the tenant "acme", but the file belongs to "zeta"`) {
		t.Errorf("got %v", problems(got))
	}
}

// TestAFileOfTheLargestSizeIsRead, and one of a byte more is not.
func TestAFileOfTheLargestSizeIsRead(t *testing.T) {
	for more, want := range map[int]bool{0: true, 1: false} {
		files := mainFiles()
		size := document.MaxSize + more - len(webApp)
		files["projects/shop/apps/web/app.yaml"] = text(webApp + strings.Repeat("#", size-1) + "\n")
		tree := fresh(files, ofTeam)
		node, _ := tree.Find(identity.Ref{Tenant: "team", Project: "shop", App: "web"})
		if node.Declared() != want || !want && (len(problems(tree)) != 1 || problems(tree)[0].Code != code.FileTooLarge) {
			t.Errorf("with %d bytes more it is declared: %t, %v", more, node.Declared(), problems(tree))
		}
	}
}
