package yamlcheck

import (
	"errors"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

func TestMaxEntriesCountsEachStyle(t *testing.T) {
	for name, text := range map[string]string{
		"block mapping":        "a: 1\nb: 2\nc: 3\n",
		"nested block list":    "- - - a\n",
		"tabs after a dash":    "-\t-\ta",
		"explicit keys":        "? a\n: b\n? c\n: d\n",
		"JSON":                 `{"a":1,"b":[1,2,{"c":3}]}`,
		"carriage returns":     "a: 1\rb: 2\rc: 3\r",
		"next lines":           "a: 1\u0085b: 2\u0085c: 3",
		"line separators":      "a: 1\u2028b: 2\u2028c: 3",
		"paragraph separators": "a: 1\u2029b: 2\u2029c: 3",
	} {
		t.Run(name, func(t *testing.T) {
			if want, got := entriesOf(t, text), MaxEntries([]byte(text)); got < want {
				t.Errorf("counted %d entries, the parser finds %d", got, want)
			}
		})
	}
	if got := MaxEntries([]byte("a: 1\r\nb: 2\r\n")); got != 3 {
		t.Errorf("two lines that end as on Windows count %d, want 3", got)
	}
}

func TestEntriesRefusesMoreThanTheLimit(t *testing.T) {
	if err := Entries([]byte(strings.Repeat("a: 1\n", maxEntries-1))); err != nil {
		t.Errorf("at the limit: %v", err)
	}
	if err := Entries([]byte(strings.Repeat("a: 1\n", maxEntries))); !errors.Is(err, ErrTooLarge) {
		t.Errorf("over the limit: %v", err)
	}
}

func FuzzMaxEntries(f *testing.F) {
	for _, seed := range []string{"a: 1\rb: 2", "- - a\n- b", "[a: b, c: d]", "? a\n: - b\n", "{a,b}", "- ? a\n  : b: c\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		// An item such as [a: b] counts once and is two entries.
		if want, got := entriesOf(t, text), MaxEntries([]byte(text)); 2*got < want {
			t.Errorf("counted %d entries, the parser finds %d: %q", got, want, text)
		}
	})
}

// entriesOf is how many entries the parser finds, up to the first error.
func entriesOf(t *testing.T, text string) (sum int) {
	t.Helper()
	for document, err := range Documents([]byte(text)) {
		if err != nil {
			return sum
		}
		sum += entries(document)
	}
	return sum
}

func entries(node *yaml.Node) int {
	sum := 0
	switch node.Kind {
	case yaml.MappingNode:
		sum = len(node.Content) / 2
	case yaml.SequenceNode:
		sum = len(node.Content)
	}
	for _, inner := range node.Content {
		sum += entries(inner)
	}
	return sum
}
