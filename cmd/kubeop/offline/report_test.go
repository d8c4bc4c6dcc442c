package offline

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/cmd/kubeop/call"
	"github.com/kubeop/kubeop/cmd/kubeop/exit"
	"github.com/kubeop/kubeop/cmd/kubeop/output"
	"github.com/kubeop/kubeop/delivery/fetch/draft"
	"github.com/kubeop/kubeop/delivery/yamlcheck"
	"github.com/kubeop/kubeop/gitops/code"
	"github.com/kubeop/kubeop/gitops/document"
	"github.com/kubeop/kubeop/gitops/identity"
	"github.com/kubeop/kubeop/gitops/tree"
	"github.com/kubeop/kubeop/internal/testenv/terminal"
	"github.com/kubeop/kubeop/internal/version"
)

func problems() []tree.Problem {
	web := identity.Ref{Tenant: "acme", Project: "shop", App: "web"}
	return []tree.Problem{
		{Finding: document.Finding{File: "a/app.yaml", Position: yamlcheck.Position{Line: 5, Column: 3}, Code: code.UnknownField, Why: "unknown field <x>"}, Of: web},
		{Finding: document.Finding{File: "a/app.yaml", Position: yamlcheck.Position{Line: 6}, Code: code.UnknownField, Why: "unknown field y"}, Of: web},
		{Finding: document.Finding{File: "kubeop.yaml", Code: code.NoLayout, Why: "is missing"}},
	}
}

// TestAWholeReportInSARIF: each rule once, in the order of the problems, and no region where no line is known.
func TestAWholeReportInSARIF(t *testing.T) {
	var out bytes.Buffer
	if err := writeSARIF(&out, problems()); err != nil {
		t.Fatal(err)
	}
	var log sarifLog
	if err := json.Unmarshal(out.Bytes(), &log); err != nil {
		t.Fatal(err)
	}
	for i, wants := range []string{"The kind has no such field.", "The repository has no `kubeop.yaml` at its root"} {
		rule := &log.Runs[0].Tool.Driver.Rules[i]
		if !strings.HasPrefix(rule.ShortDescription.Text, wants) || strings.Contains(rule.ShortDescription.Text, "\n\n") || rule.Help.Text != rule.ShortDescription.Text || !strings.HasPrefix(rule.Help.Markdown, rule.Help.Text+"\n\n") {
			t.Errorf("rule %s is described as %+v", rule.ID, rule)
		}
		rule.ShortDescription, rule.Help = sarifText{}, sarifHelp{}
	}
	at := func(file string, region *sarifRegion) []sarifLocation {
		return []sarifLocation{{sarifPlace{ArtifactLocation: sarifFile{file}, Region: region}}}
	}
	want := sarifLog{Schema: "https://json.schemastore.org/sarif-2.1.0.json", Version: "2.1.0", Runs: []sarifRun{{
		Tool:       sarifTool{sarifDriver{Name: "kubeop", Version: version.Version, Rules: []sarifRule{{ID: code.UnknownField}, {ID: code.NoLayout}}}},
		ColumnKind: "unicodeCodePoints",
		Results: []sarifResult{
			{RuleID: code.UnknownField, Level: "error", Message: sarifText{"unknown field <x>"}, Locations: at("a/app.yaml", &sarifRegion{StartLine: 5, StartColumn: 3})},
			{RuleID: code.UnknownField, Level: "error", Message: sarifText{"unknown field y"}, Locations: at("a/app.yaml", &sarifRegion{StartLine: 6})},
			{RuleID: code.NoLayout, Level: "error", Message: sarifText{"is missing"}, Locations: at("kubeop.yaml", nil)},
		},
	}}}
	if diff := cmp.Diff(want, log); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestAWholeReportInJUnit(t *testing.T) {
	var out bytes.Buffer
	if err := writeJUnit(&out, &tree.Tree{}, problems()); err != nil {
		t.Fatal(err)
	}
	const want = `<?xml version="1.0" encoding="UTF-8"?>
<testsuite name="kubeop validate" tests="2" failures="3">
  <testcase name="repository" classname="Repository">
    <failure message="is missing" type="no-layout">kubeop.yaml: is missing [no-layout]</failure>
  </testcase>
  <testcase name="acme/shop/web" classname="App">
    <failure message="unknown field &lt;x&gt;" type="unknown-field">a/app.yaml:5:3: unknown field &lt;x&gt; [unknown-field]</failure>
    <failure message="unknown field y" type="unknown-field">a/app.yaml:6: unknown field y [unknown-field]</failure>
  </testcase>
</testsuite>
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestProblemsArePrintedForPeopleAndForPrograms(t *testing.T) {
	var out bytes.Buffer
	v := &validate{Call: &call.Call{Out: &out, Paint: output.PaintFor(terminal.Open(t))}}
	if err := v.lines(problems()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"bold a/app.yaml:5:3", "bold a/app.yaml:6", "bold kubeop.yaml"}, terminal.Coloured(out.String())); diff != "" {
		t.Errorf("places (-want +got):\n%s", diff)
	}
	if lines := strings.Split(out.String(), "\n"); len(lines) != 4 || !strings.HasSuffix(lines[2], ": is missing [no-layout]") {
		t.Errorf("got %q", lines)
	}
	want := []finding{
		{File: "a/app.yaml", Line: 5, Column: 3, Object: "acme/shop/web", Code: code.UnknownField, Why: "unknown field <x>"},
		{File: "a/app.yaml", Line: 6, Object: "acme/shop/web", Code: code.UnknownField, Why: "unknown field y"},
		{File: "kubeop.yaml", Code: code.NoLayout, Why: "is missing"},
	}
	if diff := cmp.Diff(want, plain(problems())); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
}

func TestDeclaredObjectsAreCounted(t *testing.T) {
	for want, counts := range map[string]tree.Counts{
		"0 projects, 0 apps":                                    {},
		"1 project, 2 apps":                                     {Projects: 1, Apps: 2},
		"1 tenant, 2 projects, 1 app":                           {Tenants: 1, Projects: 2, Apps: 1},
		"1 registry, 0 projects, 0 apps":                        {Registries: 1},
		"2 policies, 1 registry, 3 tenants, 0 projects, 0 apps": {Policies: 2, Registries: 1, Tenants: 3},
		"1 price list, 0 projects, 0 apps":                      {PriceLists: 1},
		"1 policy, 2 registries, 0 projects, 0 apps":            {Policies: 1, Registries: 2},
	} {
		if got := countsText(counts); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestAChangedFileKeepsItsMode, and a new one gets folders.
func TestAChangedFileKeepsItsMode(t *testing.T) {
	root := t.TempDir()
	file := func(name string) string { return filepath.Join(root, filepath.FromSlash(name)) }
	if err := os.WriteFile(file("old"), []byte("1"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		change           draft.Change
		done, text, says string
		mode             os.FileMode
	}{
		{draft.Change{Path: "old", Content: []byte("2")}, "Changed", "2", "", 0o600},
		{draft.Change{Path: "a/b/new", Content: []byte("3")}, "Wrote", "3", "", 0o644},
		{draft.Change{Path: "old"}, "Deleted", "", "", 0},
		{draft.Change{Path: "a"}, "Deleted", "", "", 0},
		{draft.Change{Path: "x", Tree: "c0ffee"}, "", "", "x is restored by a commit only", 0},
	} {
		done, err := writeChange(root, step.change)
		if done != step.done || (err == nil) != (step.says == "") || err != nil && err.Error() != step.says {
			t.Errorf("%s: %q, %v", step.change.Path, done, err)
		}
		text, err := os.ReadFile(file(step.change.Path))
		if gone := errors.Is(err, os.ErrNotExist); gone != (step.text == "") || string(text) != step.text {
			t.Errorf("%s has %q, %v", step.change.Path, text, err)
		}
		if info, err := os.Lstat(file(step.change.Path)); err == nil && info.Mode().Perm()&0o700 != step.mode&0o700 {
			t.Errorf("%s has the mode %s", step.change.Path, info.Mode())
		}
	}
}

// TestProblemsThatCannotBeWrittenAreAFailure of the command: a tool that reads the report must not take half of it for all problems.
func TestProblemsThatCannotBeWrittenAreAFailure(t *testing.T) {
	for _, format := range []output.Format{output.Table, sarifFormat, junitFormat, output.JSON, output.YAML} {
		report := func(w io.Writer) error {
			v := &validate{Call: &call.Call{Out: w, Data: w, Err: io.Discard}, format: format}
			return v.report(".", &checked{Tree: &tree.Tree{}, problems: problems()})
		}
		if err := report(io.Discard); exit.Code(err) != exit.Differences {
			t.Errorf("%s: the problems are shown: %v", format, err)
		}
		from, full := io.Pipe()
		if err := from.CloseWithError(syscall.ENOSPC); err != nil {
			t.Fatal(err)
		}
		if err := report(full); !errors.Is(err, syscall.ENOSPC) || exit.Code(err) == exit.Differences {
			t.Errorf("%s: there is no space for the report: %v", format, err)
		}
	}
}
