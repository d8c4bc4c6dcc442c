package v1alpha1_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// kindPattern finds the kinds a group of constants is for, as in "Steps of a Tenant and a Project".
var kindPattern = regexp.MustCompile(`\b(Repository|Tenant|Project|App)\b`)

// TestEveryConditionIsDocumented holds conditions.go and the pages of docs/spec together: a condition or reason is
// explained on a page of a kind that uses it.
func TestEveryConditionIsDocumented(t *testing.T) {
	pages := readPages(t)
	groups := conditionGroups(t)
	if len(groups) < 5 {
		t.Fatalf("found %d groups of constants in conditions.go; it has more", len(groups))
	}
	for doc, names := range groups {
		kinds := kindPattern.FindAllString(doc, -1)
		if len(kinds) == 0 {
			kinds = []string{"Repository", "Tenant", "Project", "App"}
		}
		for _, name := range names {
			if !documented(pages, kinds, name) {
				t.Errorf("%q is explained in none of docs/spec/{%s}.md", name, strings.ToLower(strings.Join(kinds, ",")))
			}
		}
	}
}

// documented reports whether a page of one of the kinds has the name in code quotes at the head of a row of a table.
func documented(pages map[string]string, kinds []string, name string) bool {
	for _, kind := range kinds {
		if strings.Contains(pages[kind], "\n| `"+name+"`") {
			return true
		}
	}
	return false
}

func readPages(t *testing.T) map[string]string {
	t.Helper()
	pages := map[string]string{}
	for _, kind := range []string{"Repository", "Tenant", "Project", "App"} {
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
