package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTheTableOfAttacksHasTheAttacksOfTheTest: make attack writes the table only with a flag, and takes hours.
func TestTheTableOfAttacksHasTheAttacksOfTheTest(t *testing.T) {
	text, err := os.ReadFile("attacks.md")
	if err != nil {
		t.Fatal(err)
	}
	var table []string
	for _, row := range regexp.MustCompile(`(?m)^\| \d+ (\| [^|]+ \| [^|]+) \|`).FindAllStringSubmatch(string(text), -1) {
		table = append(table, row[1])
	}
	files, err := filepath.Glob("../e2e/attack/availability/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var attacks []string
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(node ast.Node) bool {
			attacks = append(attacks, attacksOf(node)...)
			return true
		})
	}
	slices.Sort(table)
	slices.Sort(attacks)
	if diff := cmp.Diff(attacks, table); diff != "" || len(attacks) < 70 {
		t.Errorf("%d attacks (-test +table):\n%s", len(attacks), diff)
	}
}

// attacksOf returns what is attacked and with what, as the table has it, of a literal such as box{"charts", []attack{{name: "a template"}}}.
func attacksOf(node ast.Node) (all []string) {
	box, is := node.(*ast.CompositeLit)
	if !is || len(box.Elts) != 2 {
		return nil
	}
	if of, is := box.Type.(*ast.Ident); !is || of.Name != "box" {
		return nil
	}
	attacks, _ := box.Elts[1].(*ast.CompositeLit)
	for _, attack := range attacks.Elts {
		for _, field := range attack.(*ast.CompositeLit).Elts {
			if f := field.(*ast.KeyValueExpr); f.Key.(*ast.Ident).Name == "name" {
				all = append(all, "| "+textOf(box.Elts[0])+" | "+textOf(f.Value))
			}
		}
	}
	return all
}
