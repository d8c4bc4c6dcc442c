package offline

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kubeop/kubeop/cmd/kubeop/call"
	"github.com/kubeop/kubeop/controllers/plan/render"
	"github.com/kubeop/kubeop/docs"
	"github.com/kubeop/kubeop/gitops/code"
	"github.com/kubeop/kubeop/gitops/tree"
)

// constants returns the text of each string constant in a file of Go whose name has a suffix or whose type is Code.
func constants(t *testing.T, file, suffix string) (all []string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		spec, is := n.(*ast.ValueSpec)
		if !is || !strings.HasSuffix(spec.Names[0].Name, suffix) {
			return true
		}
		switch value := spec.Values[0].(type) {
		case *ast.BasicLit:
			text, err := strconv.Unquote(value.Value)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, text)
		case *ast.SelectorExpr: // A reason of Flux has the name of its constant.
			all = append(all, strings.TrimSuffix(value.Sel.Name, suffix))
		}
		return true
	})
	slices.Sort(all)
	return all
}

// TestEveryCodeAndReasonIsExplained compares docs/errors.md with the constants: nothing is missing there, and nothing there is gone.
func TestEveryCodeAndReasonIsExplained(t *testing.T) {
	codes, reasons := constants(t, "../../../gitops/code/code.go", ""), constants(t, "../../../api/v1alpha1/conditions.go", "Reason")
	if len(codes) < 35 || len(reasons) < 60 {
		t.Fatalf("found %d codes and %d reasons; there are more", len(codes), len(reasons))
	}
	var explained, named []string
	for name, text := range explanations(docs.Errors) {
		if len(text) < 40 {
			t.Errorf("%s is explained by %q", name, text)
		}
		if strings.ToLower(name) != name {
			named = append(named, name)
			continue
		}
		explained = append(explained, name)
		for _, part := range []string{"```", "**Fix:** "} {
			if !strings.Contains(text, part) {
				t.Errorf("the section of %s lacks %q", name, part)
			}
		}
	}
	slices.Sort(explained)
	slices.Sort(named)
	if diff := cmp.Diff(codes, explained); diff != "" {
		t.Errorf("codes, and the sections of docs/errors.md (-code +section):\n%s", diff)
	}
	if diff := cmp.Diff(reasons, named); diff != "" {
		t.Errorf("reasons, and the rows of docs/errors.md (-reason +row):\n%s", diff)
	}
}

// block is a block of a section: a file, or commands.
var block = regexp.MustCompile("(?ms)^```(yaml|sh) ?(\\S*)\n(.*?)^```$")

// TestTheExampleOfACodeHasThisCode changes a valid repository as the section of each code shows, and reads it.
func TestTheExampleOfACodeHasThisCode(t *testing.T) {
	// The store or the cluster has to fail for these.
	notOfFiles := []code.Code{code.Unreadable, code.WriteRefused}
	for _, name := range constants(t, "../../../gitops/code/code.go", "") {
		t.Run(name, func(t *testing.T) {
			blocks := block.FindAllStringSubmatch(explanations(docs.Errors)[name], -1)
			if slices.Contains(notOfFiles, code.Code(name)) != (len(blocks) == 0) {
				t.Fatalf("%d blocks of files or commands", len(blocks))
			}
			if len(blocks) == 0 {
				return
			}
			want := []string{name}
			if name == string(code.MoreProblems) {
				want = []string{string(code.MoreProblems), string(code.UnknownField)}
			}
			if got := codesOf(t, changed(t, blocks)); !slices.Equal(got, want) {
				t.Errorf("the example has the codes %v", got)
			}
		})
	}
}

// changed returns the folder of a valid repository with the changes of an example: of the platform, if it writes into tenants/.
func changed(t *testing.T, blocks [][]string) string {
	t.Helper()
	files := repository(nil)
	if strings.HasPrefix(blocks[0][2], "tenants/") {
		files = map[string]string{"kubeop.yaml": "layout: v1\n"}
		for file, text := range repository(nil) {
			if file != "kubeop.yaml" {
				files["tenants/acme/"+file] = text
			}
		}
	}
	for _, b := range blocks {
		if b[1] == "yaml" {
			files[b[2]] = b[3]
		}
	}
	root := write(t, files)
	for _, b := range blocks {
		if b[1] != "sh" {
			continue
		}
		command := exec.Command("sh", "-ec", b[3])
		command.Dir = root
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	return root
}

// shared is the reader of all examples, because it takes a second to make one.
var shared = sync.OnceValues(tree.NewReader)

// codesOf returns the codes of all problems in a folder.
func codesOf(t *testing.T, root string) (codes []string) {
	t.Helper()
	reader, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	v := &validate{Call: call.New(genericiooptions.NewTestIOStreamsDiscard(), clocktesting.NewFakeClock(time.Now())), reader: reader, renders: true, renderer: render.New}
	found, err := v.check(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range found.problems {
		codes = append(codes, string(p.Code))
	}
	slices.Sort(codes)
	return slices.Compact(codes)
}

// TestTheExamplesChangeAValidRepository proves that the problems come from the examples.
func TestTheExamplesChangeAValidRepository(t *testing.T) {
	if got := codesOf(t, write(t, repository(nil))); got != nil {
		t.Errorf("it has the problems %v", got)
	}
}

func TestExplainPrintsTheSection(t *testing.T) {
	explain := func(word string) (string, error) {
		streams, _, stdout, _ := genericiooptions.NewTestIOStreams()
		command := Explain(call.New(streams, clocktesting.NewFakeClock(time.Now())))
		command.SilenceErrors, command.SilenceUsage = true, true
		command.SetArgs([]string{word})
		command.SetOut(io.Discard)
		err := command.ExecuteContext(t.Context())
		return stdout.String(), err
	}
	for word, want := range map[string][]string{
		"unknown-field": {"The kind has no such field.", "  replicas: 2\n", "**Fix:** Correct the name"}, "[unknown-field]": {"The kind has no such field."},
		"write-refused": {"a webhook", "**Fix:**"}, "Held": {"forceAt", "docs/spec/app.md#conditions"},
	} {
		out, err := explain(word)
		for _, text := range want {
			if err != nil || !strings.Contains(out, text) {
				t.Errorf("%s: %v, no %q in\n%s", word, err, text, out)
			}
		}
		if strings.Contains(out, "###") || strings.Contains(out, "\n## ") {
			t.Errorf("%s: more than one section:\n%s", word, out)
		}
	}
	if _, err := explain("nothing"); err == nil || !strings.Contains(err.Error(), `"nothing"`) {
		t.Errorf("an unknown code: %v", err)
	}
}

// TestThePagesOfReasonsAreThere holds the folder to which the explanation of a reason points.
func TestThePagesOfReasonsAreThere(t *testing.T) {
	for _, link := range regexp.MustCompile(`\]\((docs/[^)#]*)`).FindAllStringSubmatch(explanations(docs.Errors)["Succeeded"], -1) {
		if _, err := os.Stat(filepath.Join("../../..", link[1])); err != nil {
			t.Error(err)
		}
	}
}
