package document

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/delivery/yamlcheck"
	"github.com/kubeop/kubeop/gitops/code"
)

func TestBrokenYAMLNamesTheLine(t *testing.T) {
	tests := map[string]struct {
		text string
		line int
	}{
		"indent":            {text: "a: 1\nb:\n  c: 1\n d: 2\n", line: 4},
		"list not closed":   {text: "a: 1\nb: [\nfoo\n", line: 2},
		"map not closed":    {text: "a: 1\nb: {c: d\ne: f\n", line: 2},
		"text not closed":   {text: "a: 1\nb: \"open\n", line: 2},
		"two colons":        {text: "a: 1\nb: x: y\n", line: 2},
		"reserved":          {text: "a: 1\nb: @x\n", line: 2},
		"tab":               {text: "a: 1\n\tb: x\n", line: 2},
		"list in map":       {text: "a: 1\n- b\n", line: 2},
		"map in list":       {text: "- b\na: 1\n", line: 2},
		"nothing expected":  {text: "a: 1\nb: 'x' y\n", line: 2},
		"content missing":   {text: "a: 1\nb: [,]\n", line: 2},
		"document start":    {text: "a: 1\n...\nb: 1\n", line: 3},
		"first line":        {text: "a: &\n", line: 1},
		"first line, open":  {text: "{a: 1", line: 1},
		"anchor":            {text: "a: 1\nb: *x\n", line: 2},
		"control character": {text: "a: 1\nb: \x01\n", line: 2},
		"no UTF-8":          {text: "a: 1\nb: \xff\n", line: 2},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			d := Parse("x.yaml", []byte(tc.text))
			if len(d.Findings) != 1 || d.Findings[0].Line != tc.line {
				t.Errorf("want one finding in line %d, got %+v", tc.line, d.Findings)
			}
		})
	}
}

func TestAnIndentationThatDoesNotFitNamesBothLines(t *testing.T) {
	const key, item, colon = "broken YAML: did not find expected key: ", "broken YAML: did not find expected '-' indicator: ", "broken YAML: mapping values are not allowed in this context: "
	for name, tc := range map[string]struct {
		text, why string
		line      int
	}{
		"less than its sibling": {"a: 1\nspec:\n  type: Image\n  image:\n     reference: x\n    host: y\n  z: 1\n", key + "the line is indented by 4 spaces; indent it by 5, like line 5, or by 2, like line 4", 6},
		"less than its block":   {"a: 1\nspec:\n    type: Image\n    image:\n        reference: x\n   host: y\n", key + "the line is indented by 3 spaces; indent it by 4, like line 4, or by 0, like line 2", 6},
		"more than its sibling": {"a: 1\nspec:\n  image:\n    reference: x\n      host: y\n", colon + "the line is indented by 6 spaces, so it continues line 4, which is indented by 4; indent it alike, or end line 4 with \":\"", 5},
		"after a comment":       {"a: 1\nspec:\n  image:\n    reference: x\n\n    # why\n      host: y\n", key + "the line is indented by 6 spaces, so it continues line 4, which is indented by 4; indent it alike, or end line 4 with \":\"", 7},
		"an item of a list":     {"a: 1\nspec:\n  hooks:\n  - a: 1\n    b: 2\n   - c: 3\n", key + "the line is indented by 3 spaces; indent it by 4, like line 5, or by 2, like line 4", 6},
		"a field of an item":    {"a: 1\nspec:\n  hooks:\n  - a: 1\n   b: 2\n", key + "the line is indented by 3 spaces; indent it by 4, like line 4, or by 2, like line 4", 5},
		"a text of lines":       {"a: 1\nspec:\n  text: |\n    abc\n   def\n  x: 1\n", key + "the line is indented by 3 spaces; indent it by 4, like line 4, or by 2, like line 3", 5},
		"one space":             {"a:\n  b: 1\n c: 1\n", key + "the line is indented by 1 space; indent it by 2, like line 2, or by 0, like line 1", 3},
		"a field in a list":     {"a: 1\nspec:\n  - b\n  c: 1\n", item + "the line is a field, but line 3, which is indented alike, is an item of a list", 4},
		"an item among fields":  {"a: 1\nspec:\n  b: 1\n  - c\n", key + "the line is an item of a list, but line 3, which is indented alike, is a field", 4},
		"no colon":              {"a: 1\nspec:\n  type Image\n  image: x\n", colon + "line 3 above it has no \":\" after its key", 4},
		"two colons":            {"a: 1\nb: x: y\n", strings.TrimSuffix(colon, ": "), 2},
		"in a second document":  {"---\na:\n  b: 1\n c: 1\n", key + "the line is indented by 1 space; indent it by 2, like line 3, or by 0, like line 2", 4},
		"too large to search":   {"a: 1\nspec:\n  c:\n     d: 1\n    e: 2\n" + strings.Repeat("# more\n", 10000), strings.TrimSuffix(key, ": "), 3},
	} {
		t.Run(name, func(t *testing.T) {
			want := []Finding{{File: "x.yaml", Position: yamlcheck.Position{Line: tc.line}, Code: code.BrokenYAML, Why: tc.why}}
			if strings.Contains(tc.why, "the line is") || strings.Contains(tc.why, "above it") { // The column is that of its first character.
				text := strings.Split(tc.text, "\n")[tc.line-1]
				want[0].Column = 1 + len(text) - len(strings.TrimLeft(text, " "))
			}
			if diff := cmp.Diff(want, Parse("x.yaml", []byte(tc.text)).Findings); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// lineBreak is what YAML takes for the end of a line.
var lineBreak = regexp.MustCompile("[\n\r\u0085\u2028\u2029]")

// FuzzThePositionOfBrokenYAMLIsInTheText has any text explained.
func FuzzThePositionOfBrokenYAMLIsInTheText(f *testing.F) {
	for _, seed := range []string{"a:\n  b: 1\n c: 1\n", "- a\n b: c", "-\n - a: b\n c:\n", "  -  - x: y\n   z: 1\n", "a: b: c", ":\n\t-"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		lines := 1 + len(lineBreak.FindAllString(text, -1))
		for _, finding := range Parse("x.yaml", []byte(text)).Findings {
			if finding.Line < 0 || finding.Line > lines || finding.Column < 0 || finding.Column > len(text)+1 || finding.Line == 0 && finding.Column > 0 {
				t.Errorf("%+v of %q", finding.Position, text)
			}
		}
	})
}
