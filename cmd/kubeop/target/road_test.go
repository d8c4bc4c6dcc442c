package target

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// declared returns the conditions of the API by the names of their constants.
func declared(t *testing.T) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../../../api/v1alpha1/conditions.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, is := n.(*ast.ValueSpec)
		if !is || len(spec.Values) != 1 || !strings.HasSuffix(spec.Names[0].Name, "Condition") {
			return true
		}
		if value, is := spec.Values[0].(*ast.BasicLit); is {
			if found[spec.Names[0].Name], err = strconv.Unquote(value.Value); err != nil {
				t.Fatal(err)
			}
		}
		return true
	})
	return found
}

// TestEachConditionIsAStepOrDeservesALook, so that describe shows it where it belongs, in its colour.
func TestEachConditionIsAStepOrDeservesALook(t *testing.T) {
	found := declared(t)
	if len(found) < 40 {
		t.Errorf("only %d conditions were found", len(found))
	}
	for name, condition := range found {
		places := 0
		for _, kind := range []Kind{Repository, Tenant, Project, App, Registry} {
			if slices.Contains(Steps(kind), condition) {
				places = 1
			}
		}
		if slices.Contains(Abnormal, condition) || condition == v1alpha1.ReadyCondition {
			places++
		}
		if places != 1 {
			t.Errorf("%s is in %d places, want 1: the steps of a kind, or the conditions that deserve a look", name, places)
		}
	}
}

// TestStepsAreInTheOrderOfTheirController.
func TestStepsAreInTheOrderOfTheirController(t *testing.T) {
	names := declared(t)
	taken := regexp.MustCompile(`step\.Of\(v1alpha1\.(\w+),`)
	for folder, kind := range map[string]Kind{"repository": Repository, "tenant": Tenant, "project": Project, "registry": Registry} {
		source, err := os.ReadFile("../../../controllers/" + folder + "/controller.go")
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for run := range strings.SplitSeq(string(source), ".Steps.") {
			last := -1
			steps := taken.FindAllStringSubmatch(run, -1)
			for i, match := range steps {
				// A condition of several steps has the place of the last, after which it can be true.
				if slices.ContainsFunc(steps[i+1:], func(later []string) bool { return later[1] == match[1] }) {
					continue
				}
				at := slices.Index(Steps(kind), names[match[1]])
				if found++; at < last || at < 0 {
					t.Errorf("the step %s of a %s is at %d, after %d", match[1], folder, at, last)
				}
				last = at
			}
		}
		if found == 0 {
			t.Errorf("no step of a %s was found", folder)
		}
	}
}
