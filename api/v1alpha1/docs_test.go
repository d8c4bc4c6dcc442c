package v1alpha1_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

var (
	// quotedPattern finds a name in code quotes.
	quotedPattern = regexp.MustCompile("`(\\w+)`")
	// usePattern finds the reasons and conditions that code uses.
	usePattern = regexp.MustCompile(`\bv1alpha1\.(\w+)(Condition|Reason)\b`)
)

// TestEveryConditionIsDocumented compares conditions.go with the pages of docs/spec. A constant is explained on a page of a kind
// that its group names; if the group names none, on the page of every kind.
func TestEveryConditionIsDocumented(t *testing.T) {
	pages := readPages(t)
	groups := conditionGroups(t)
	if len(groups) < 5 {
		t.Fatalf("found %d groups of constants in conditions.go; it has more", len(groups))
	}
	kinds := reconciledKinds(t)
	// kindPattern finds the kinds a group of constants is for, as in "Steps of a Tenant and a Project".
	kindPattern := regexp.MustCompile(`\b(` + strings.Join(kinds, "|") + `)\b`)
	for doc, names := range groups {
		of := kindPattern.FindAllString(doc, -1)
		for _, name := range names {
			if len(of) > 0 && !documented(pages, of, name) {
				t.Errorf("%q is explained in none of docs/spec/{%s}.md", name, strings.ToLower(strings.Join(of, ",")))
			}
			for _, kind := range kinds {
				if len(of) == 0 && !documented(pages, []string{kind}, name) {
					t.Errorf("%q of every kind is not explained in docs/spec/%s.md", name, strings.ToLower(kind))
				}
			}
		}
	}
}

// TestReasonsOfAKindAreDocumented compares the code of each kind's controller with the kind's page: a condition or reason that the
// code uses is explained there.
func TestReasonsOfAKindAreDocumented(t *testing.T) {
	pages := readPages(t)
	packages := map[string][]string{
		"Repository": {"repository", "pushes"},
		"Registry":   {"registry"},
		"Tenant":     {"tenant", "home", "volumes"},
		"Project":    {"project", "delivered", "home", "volumes", "refusal"},
		"App":        {"app", "refusal"},
	}
	for _, kind := range reconciledKinds(t) {
		if len(packages[kind]) == 0 {
			t.Errorf("the packages of the controller of a %s are not listed here", kind)
		}
		used := map[string]bool{}
		for _, folder := range append(packages[kind], "step") {
			addUses(t, used, filepath.Join("..", "..", "controllers", folder))
		}
		// The runner names this condition of Apps: it may be False while Ready is True.
		if kind != "App" {
			delete(used, "SourceReady")
		}
		if len(used) < 10 {
			t.Fatalf("found %d conditions and reasons in the code of a %s; it uses more", len(used), kind)
		}
		for name := range used {
			if !documented(pages, []string{kind}, name) {
				t.Errorf("%q, which the controller of a %s uses, is not explained in docs/spec/%s.md", name, kind, strings.ToLower(kind))
			}
		}
	}
}

// addUses adds the conditions and reasons that the code below a folder uses, without its tests.
func addUses(t *testing.T, used map[string]bool, folder string) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		code, err := os.ReadFile(path)
		for _, match := range usePattern.FindAllStringSubmatch(string(code), -1) {
			used[match[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestTheReasonsOnTheErrorsPageLeadToTheirKinds: the row of a reason in docs/errors.md links each page of a kind whose conditions have it, and
// no other.
func TestTheReasonsOnTheErrorsPageLeadToTheirKinds(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "errors.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("(?m)^\\| `([A-Z]\\w+)` \\|.*$").FindAllStringSubmatch(string(page), -1)
	if len(rows) < 80 {
		t.Fatalf("found %d reasons; there are more", len(rows))
	}
	for kind, text := range readPages(t) {
		has := reasonsOf(text)
		for _, row := range rows {
			link := "](spec/" + strings.ToLower(kind) + ".md#conditions)"
			if linked := strings.Contains(row[0], link); linked != has[row[1]] {
				t.Errorf("%s links docs/spec/%s.md: %t, and its conditions have it: %t", row[1], strings.ToLower(kind), linked, has[row[1]])
			}
		}
	}
}

// reasonsOf returns what the tables below the heading "Conditions" of a page have in code quotes. The first column of a table of conditions has
// their types.
func reasonsOf(page string) map[string]bool {
	_, section, _ := strings.Cut(page, "\n## Conditions\n")
	section, _, _ = strings.Cut(section, "\n## ")
	has, types := map[string]bool{}, false
	for line := range strings.Lines(section) {
		cells := strings.Split(line, "|")
		if len(cells) < 3 {
			continue
		}
		if head := strings.TrimSpace(cells[1]); head == "condition" || head == "reason" {
			types = head == "condition"
		}
		if types {
			cells = cells[2:]
		}
		for _, match := range quotedPattern.FindAllStringSubmatch(strings.Join(cells, "|"), -1) {
			has[match[1]] = true
		}
	}
	return has
}

// documented reports whether a page of one of the kinds has the name in code quotes at the head of a row of a table.
func documented(pages map[string]string, of []string, name string) bool {
	for _, kind := range of {
		if strings.Contains(pages[kind], "\n| `"+name+"`") {
			return true
		}
	}
	return false
}

// TestEveryFieldOfASpecHasARow: the page of each kind, also of those without conditions, has each field of its spec in the first cell of a row of a
// table.
func TestEveryFieldOfASpecHasARow(t *testing.T) {
	pages := readPages(t)
	for kind, of := range kindsOfTheAPI(t) {
		spec, _ := of.FieldByName("Spec")
		for name := range fieldsOf(spec.Type) {
			if !regexp.MustCompile(`(?m)^\|[^|\n]*` + "`" + name + "[`.]").MatchString(pages[kind]) {
				t.Errorf("docs/spec/%s.md has no row of the field %s of spec", strings.ToLower(kind), name)
			}
		}
	}
}

// kindsOfTheAPI returns the types of the kinds of the API by their names: what the API registers and has a spec.
func kindsOfTheAPI(t *testing.T) map[string]reflect.Type {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	kinds := map[string]reflect.Type{}
	for kind, of := range scheme.KnownTypes(v1alpha1.GroupVersion) {
		if _, has := of.FieldByName("Spec"); has { // The others are lists, and the options of requests.
			kinds[kind] = of
		}
	}
	if len(kinds) < 8 {
		t.Fatalf("found %d kinds; there are more", len(kinds))
	}
	return kinds
}

// reconciledKinds returns the kinds with conditions, sorted. A Policy, Guardrails and a HostnameClaim have none.
func reconciledKinds(t *testing.T) (kinds []string) {
	t.Helper()
	for kind, of := range kindsOfTheAPI(t) {
		status, has := of.FieldByName("Status")
		if !has {
			continue
		}
		if _, has := status.Type.FieldByName("Conditions"); has {
			kinds = append(kinds, kind)
		}
	}
	slices.Sort(kinds)
	if len(kinds) < 5 {
		t.Fatalf("found %d kinds with conditions; there are more", len(kinds))
	}
	return kinds
}

// readPages returns the page of each kind in docs/spec.
func readPages(t *testing.T) map[string]string {
	t.Helper()
	pages := map[string]string{}
	for kind := range kindsOfTheAPI(t) {
		page, err := os.ReadFile(filepath.Join("..", "..", "docs", "spec", strings.ToLower(kind)+".md"))
		if err != nil {
			t.Fatal(err)
		}
		pages[kind] = string(page)
	}
	return pages
}

// conditionGroups returns the names of the conditions and reasons by the comment above their group. The name of a
// constant without its suffix is its value.
func conditionGroups(t *testing.T) map[string][]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "conditions.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	groups := map[string][]string{}
	for _, declaration := range file.Decls {
		group, ok := declaration.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST {
			continue
		}
		for _, spec := range group.Specs {
			name := spec.(*ast.ValueSpec).Names[0].Name
			value := strings.TrimSuffix(strings.TrimSuffix(name, "Condition"), "Reason")
			if value == name {
				t.Errorf("%s ends neither in Condition nor in Reason", name)
			}
			groups[group.Doc.Text()] = append(groups[group.Doc.Text()], value)
		}
	}
	return groups
}
