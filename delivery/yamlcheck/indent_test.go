package yamlcheck

import (
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestWrongIndentationIsExplainedByTheLinesAbove has the line that is wrong, and the lines that it could be indented like.
func TestWrongIndentationIsExplainedByTheLinesAbove(t *testing.T) {
	const key, item, colon = expectedKey + ": ", expectedItem + ": ", secondColon + ": "
	for name, c := range map[string]struct {
		text string
		line int
		why  string
	}{
		"less than the line above":  {"a:\n   b: 1\n  c: 1\n", 3, key + `the line is indented by 2 spaces; indent it by 3, like line 2, or by 0, like line 1`},
		"less, by one space":        {"a:\n  b: 1\n c: 1\n", 3, key + `the line is indented by 1 space; indent it by 2, like line 2, or by 0, like line 1`},
		"between two blocks":        {"a:\n    b:\n        c:\n            d: 1\n      e: 1\n", 5, key + `the line is indented by 6 spaces; indent it by 8, like line 3, or by 4, like line 2`},
		"after an inner block":      {"a:\n   b:\n     c: 1\n  d: 1\n", 4, key + `the line is indented by 2 spaces; indent it by 3, like line 2, or by 0, like line 1`},
		"more than the line above":  {"a: 1\n  b: 1\n", 2, colon + `the line is indented by 2 spaces, so it continues line 1, which is indented by 0; indent it alike, or end line 1 with ":"`},
		"a field after items":       {"a:\n- b\n- c\nd: 1\n- e\n", 5, key + `the line is an item of a list, but line 4, which is indented alike, is a field`},
		"an indented item":          {"x:\n  a: 1\n  - e\n", 3, key + `the line is an item of a list, but line 2, which is indented alike, is a field`},
		"a field among items":       {"a:\n  - b: 1\n  c: 1\n", 3, item + `the line is a field, but line 2, which is indented alike, is an item of a list`},
		"the field of an item":      {"a:\n  - b: 1\n   c: 1\n", 3, item + `the line is indented by 3 spaces; indent it by 4, like line 2, or by 2, like line 2`},
		"less than an item":         {"x:\n   - a: 1\n  b: 2\n", 3, key + `the line is indented by 2 spaces; indent it by 3, like line 2, or by 0, like line 1`},
		"no colon above":            {"a: 1\nb:\n  c D\n  e: x\n", 4, colon + `line 3 above it has no ":" after its key`},
		"comments and empty lines":  {"a:\n  b: 1\n\n  # more\n c: 1\n", 5, key + `the line is indented by 1 space; indent it by 2, like line 2, or by 0, like line 1`},
		"another document above it": {"a: 1\n---\nb:\n  c: 1\n d: 1\n", 5, key + `the line is indented by 1 space; indent it by 2, like line 4, or by 0, like line 3`},
		"too long to be searched":   {"a:\n  b: 1\n c: 1\n# " + strings.Repeat("x", maxSearched), 3, expectedKey},
		"the first line":            {"a: b: c\n", 1, secondColon},
		"two values in a line":      {"a: 1\nb: c: d\n", 2, secondColon},
		"a tab in the place of one": {"a:\n\tb: 1\n", 2, "found character that cannot start any token: indent by spaces instead of tabs"},
	} {
		t.Run(name, func(t *testing.T) {
			decoder := yaml.NewDecoder(strings.NewReader(c.text))
			var err error
			for err == nil {
				err = decoder.Decode(new(yaml.Node))
			}
			at, why, ok := Locate([]byte(c.text), err)
			if at.Line != c.line || why != c.why || !ok {
				t.Errorf("got  line %d: %s (%t)\nwant line %d: %s\nfor %v", at.Line, why, ok, c.line, c.why, err)
			}
		})
	}
}
