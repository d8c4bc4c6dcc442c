package offline

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/kubeop/kubeop/docs"
	"github.com/kubeop/kubeop/gitops/code"
	"github.com/kubeop/kubeop/gitops/identity"
	"github.com/kubeop/kubeop/gitops/tree"
	"github.com/kubeop/kubeop/internal/version"
)

// The parts of SARIF 2.1.0 that a report needs (docs.oasis-open.org/sarif/sarif/v2.1.0).
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool       sarifTool     `json:"tool"`
		ColumnKind string        `json:"columnKind"`
		Results    []sarifResult `json:"results"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name    string      `json:"name"`
		Version string      `json:"version"`
		Rules   []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID               code.Code `json:"id"`
		ShortDescription sarifText `json:"shortDescription"`
		Help             sarifHelp `json:"help"`
	}
	sarifHelp struct {
		Text     string `json:"text"`
		Markdown string `json:"markdown"`
	}
	sarifResult struct {
		RuleID    code.Code       `json:"ruleId"`
		Level     string          `json:"level"`
		Message   sarifText       `json:"message"`
		Locations []sarifLocation `json:"locations"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifLocation struct {
		PhysicalLocation sarifPlace `json:"physicalLocation"`
	}
	sarifPlace struct {
		ArtifactLocation sarifFile    `json:"artifactLocation"`
		Region           *sarifRegion `json:"region,omitempty"`
	}
	sarifFile struct {
		URI string `json:"uri"`
	}
	sarifRegion struct {
		StartLine int `json:"startLine"`
		// StartColumn counts characters, see columnKind of the run.
		StartColumn int `json:"startColumn,omitempty"`
	}
)

// writeSARIF writes problems as SARIF, the format of static analysis that Git hosts show.
func writeSARIF(w io.Writer, problems []tree.Problem) error {
	results, rules := []sarifResult{}, []sarifRule{}
	explained, known := explanations(docs.Errors), map[code.Code]bool{}
	for _, p := range problems {
		place := sarifPlace{ArtifactLocation: sarifFile{URI: p.File}}
		if p.Line > 0 {
			place.Region = &sarifRegion{StartLine: p.Line, StartColumn: p.Column}
		}
		if !known[p.Code] {
			known[p.Code] = true
			short, _, _ := strings.Cut(explained[string(p.Code)], "\n\n")
			rules = append(rules, sarifRule{ID: p.Code, ShortDescription: sarifText{short}, Help: sarifHelp{Text: short, Markdown: explained[string(p.Code)]}})
		}
		results = append(results, sarifResult{RuleID: p.Code, Level: "error", Message: sarifText{p.Why}, Locations: []sarifLocation{{place}}})
	}
	driver := sarifDriver{Name: "kubeop", Version: version.Version, Rules: rules}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(sarifLog{
		Schema: "https://json.schemastore.org/sarif-2.1.0.json", Version: "2.1.0",
		Runs: []sarifRun{{Tool: sarifTool{driver}, ColumnKind: "unicodeCodePoints", Results: results}},
	})
	if err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}

// The parts of JUnit's XML that CI servers read.
type (
	junitSuite struct {
		XMLName  xml.Name    `xml:"testsuite"`
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Name     string         `xml:"name,attr"`
		Class    string         `xml:"classname,attr"`
		Failures []junitFailure `xml:"failure"`
	}
	junitFailure struct {
		Message string    `xml:"message,attr"`
		Type    code.Code `xml:"type,attr"`
		Text    string    `xml:",chardata"`
	}
)

// writeJUnit writes one test case for each object that the tree declares or that has a problem, and one for all other files.
func writeJUnit(w io.Writer, t *tree.Tree, problems []tree.Problem) error {
	failures := map[identity.Ref][]junitFailure{}
	for _, p := range problems {
		failures[p.Of] = append(failures[p.Of], junitFailure{Message: p.Why, Type: p.Code, Text: p.String()})
	}
	suite := junitSuite{Name: "kubeop validate", Failures: len(problems)}
	add := func(name, class string, of identity.Ref) {
		suite.Cases = append(suite.Cases, junitCase{Name: name, Class: class, Failures: failures[of]})
		delete(failures, of)
	}
	add("repository", "Repository", identity.Ref{})
	t.Walk(func(n tree.Node) bool {
		add(n.Ref().Path(), n.Ref().Kind(), n.Ref())
		return true
	})
	others := slices.SortedFunc(maps.Keys(failures), func(a, b identity.Ref) int { return strings.Compare(a.Path(), b.Path()) })
	for _, of := range others {
		add(of.Path(), of.Kind(), of)
	}
	suite.Tests = len(suite.Cases)
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	encoder := xml.NewEncoder(w)
	encoder.Indent("", "  ")
	if err := encoder.Encode(suite); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}
