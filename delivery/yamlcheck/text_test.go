package yamlcheck

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

func TestSplitFindsTheDocumentsAndTheirLines(t *testing.T) {
	for name, tc := range map[string]struct {
		stream string
		want   []Text
	}{
		"one":                      {"a: 1\n", []Text{{1, []byte("a: 1\n")}}},
		"two":                      {"a: 1\n---\nb: 2", []Text{{1, []byte("a: 1\n")}, {3, []byte("b: 2")}}},
		"comments before":          {"# a\n\n%YAML 1.2\n---\n\n# b\nb: 2\n# c\n", []Text{{7, []byte("b: 2\n# c\n")}}},
		"content behind a marker":  {"---  a: 1\n b\n--- # c\n--- !tag\n", []Text{{1, []byte("---  a: 1\n b\n")}, {4, []byte("--- !tag\n")}}},
		"an end":                   {"a: 1\n...\nb: 2\n", []Text{{1, []byte("a: 1\n")}, {3, []byte("b: 2\n")}}},
		"markers that are none":    {"a: |\n  ---\n ---\n----\n---x\n....\n", []Text{{1, []byte("a: |\n  ---\n ---\n----\n---x\n....\n")}}},
		"a marker at the end":      {"a: 1\n---", []Text{{1, []byte("a: 1\n")}}},
		"carriage returns":         {"a: 1\r\n---\r\nb: 2\r\n", []Text{{1, []byte("a: 1\r\n")}, {3, []byte("b: 2\r\n")}}},
		"a marker and a tab":       {"a\n---\tb\n", []Text{{1, []byte("a\n")}, {2, []byte("---\tb\n")}}},
		"a byte order mark":        {"\ufeff---\na: 1\n", []Text{{2, []byte("a: 1\n")}}},
		"nothing":                  {"", nil},
		"nothing but what is none": {"# a\n---\n---\n\n...\n", nil},
		"a percent sign within":    {"a: 1\n%b\n", []Text{{1, []byte("a: 1\n%b\n")}}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Split([]byte(tc.stream))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDecodeReadsAsKubectlDoes(t *testing.T) {
	got, err := Text{Line: 1, Data: []byte("a: yes\nb: on\nc: 1\nd: 1.5\ne: null\nf: [x]\ng: \"1\"\n")}.Decode()
	want := map[string]any{"a": true, "b": true, "c": int64(1), "d": 1.5, "e": nil, "f": []any{"x"}, "g": "1"}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
}

func TestDecodeReportsTheLineInTheStream(t *testing.T) {
	for name, tc := range map[string]struct{ text, says string }{
		"a key twice":           {"a: 1\na: 2\n", `line 8: key "a" already set in map`},
		"no YAML":               {"a: 1\nb: [\n", "line 8"},
		"no YAML, with aliases": {"a: &a 1\nb: *a\nc: [\n", "line 9: broken YAML: did not find expected node content"},
		"a bad alias":           {"a: 1\nb: *x\n", "unknown anchor 'x' referenced"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Text{Line: 7, Data: []byte(tc.text)}.Decode()
			if err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v, want %q", err, tc.says)
			}
		})
	}
	many := "a: &a " + strings.Repeat("x", 2000) + "\nb: [" + strings.Repeat("*a, ", 1000) + "]\n"
	if _, err := (Text{Line: 1, Data: []byte(many)}).Decode(); !errors.Is(err, ErrTooLarge) {
		t.Errorf("aliases that stand for too much: %v", err)
	}
}

func TestThePositionOfAValueIsItsOwn(t *testing.T) {
	var document yaml.Node
	if err := yaml.Unmarshal([]byte("a: 1\nbc:  d\n"), &document); err != nil {
		t.Fatal(err)
	}
	if got, want := PositionOf(document.Content[0].Content[3]), (Position{Line: 2, Column: 6}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestAnErrorOfTheParserHasItsPosition(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		at   Position
		why  string
	}{
		"a tab":                      {"a: 1\n\tb: 2\n", Position{Line: 2, Column: 1}, "found a tab character that violates indentation"},
		"a tab after a value":        {"a: 1\nb: c\n\td: 2\n", Position{Line: 3, Column: 1}, "found a tab character that violates indentation"},
		"a tab lines after a value":  {"a: 1\nb: c\n \te\n\n\td\nf: 1\n", Position{Line: 5, Column: 1}, "found a tab character that violates indentation"},
		"a tab in a block of text":   {"a: 1\nb: |\n\tc\n", Position{Line: 3, Column: 1}, "found a tab character where an indentation space is expected"},
		"a tab in a large text":      {"a: 1\nb: c\n\td: 2\n" + strings.Repeat("# x\n", maxSearched/4), Position{Line: 2}, "found a tab character that violates indentation"},
		"a tab in a text that fits":  {"a: 1\nb: c\n\td\n" + strings.Repeat("#", maxSearched-13), Position{Line: 3, Column: 1}, "found a tab character that violates indentation"},
		"a list that is not closed":  {"a: 1\nb: [c\n", Position{Line: 2}, "did not find expected ',' or ']'"},
		"a map that is not closed":   {"a: 1\nb: {c\n\n\n", Position{Line: 2}, "did not find expected ',' or '}'"},
		"a value in a value":         {"a: 1\nb: c: d\n", Position{Line: 2}, "mapping values are not allowed in this context"},
		"in the first line":          {"a: b: c\n", Position{Line: 1}, "mapping values are not allowed in this context"},
		"an alias without an anchor": {"a: 1\nb: 2\nc: *x\n", Position{Line: 3, Column: 4}, "unknown anchor 'x' referenced"},
		"a control character":        {"a: 1\nb: \x01\n", Position{Line: 2, Column: 4}, "control characters are not allowed"},
		"no UTF-8":                   {"a: 1\nb: \xff\n", Position{Line: 2, Column: 4}, "invalid leading UTF-8 octet"},
		"a tab after other letters":  {"ä: \t@\n", Position{Line: 1, Column: 4}, "found character that cannot start any token: indent by spaces"},
		"a quote that is not closed": {"a: 1\nb: \"c\n", Position{Line: 2}, "found unexpected end of stream"},
	} {
		t.Run(name, func(t *testing.T) {
			var node yaml.Node
			err := yaml.Unmarshal([]byte(tc.text), &node)
			if err == nil {
				t.Fatal("the parser takes it")
			}
			at, why, ok := Locate([]byte(tc.text), err)
			if at != tc.at || !strings.Contains(why, tc.why) || !ok {
				t.Errorf("got %+v, %q, %v of %v", at, why, ok, err)
			}
		})
	}
	if _, _, ok := Locate(nil, errors.New("connection reset")); ok {
		t.Error("another error has a position")
	}
}

func TestTheValuesOfJSONAreCounted(t *testing.T) {
	for text, want := range map[string]int{
		`1`: 1, `{}`: 2, `{"a":1}`: 3, `[1,2]`: 3, `{"a":[1,{"b":2}]}`: 7, `"a,b:{["`: 1, `"a\",b"`: 1, `["\\",1]`: 3, ``: 1,
	} {
		if got := JSONNodes([]byte(text)); got != want {
			t.Errorf("%s: got %d, want %d", text, got, want)
		}
	}
}

func TestTheNodesOfYAMLAreCountedWithAliases(t *testing.T) {
	for text, want := range map[string]int{
		"a": 2, "a: 1": 4, "[1, 2]": 4, "a: &x [1]\nb: *x": 7,
	} {
		var node yaml.Node
		if err := yaml.Unmarshal([]byte(text), &node); err != nil {
			t.Fatal(err)
		}
		if got := CountNodes(&node); got != want {
			t.Errorf("%s: got %d, want %d", text, got, want)
		}
	}
}

// TestAliasesUpToTheLimitAreAccepted, and a byte more is refused.
func TestAliasesUpToTheLimitAreAccepted(t *testing.T) {
	of := func(size int) []byte { return []byte("a: &a " + strings.Repeat("x", size-1) + "\nb: *a\n") }
	if err := Aliases(of(maxAliasBytes)); err != nil {
		t.Errorf("at the limit: %v", err)
	}
	if err := Aliases(of(maxAliasBytes + 1)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("over the limit: %v", err)
	}
	if err := Aliases([]byte("a: &a 1\nb: *a\nc: [")); err == nil || errors.Is(err, ErrTooLarge) {
		t.Errorf("what is no YAML: %v", err)
	}
	if got := AliasBytes([]byte("a: &a xx\nb: *a\n---\nc: [")); got != 3 {
		t.Errorf("up to an error %d bytes, want 3", got)
	}
}
