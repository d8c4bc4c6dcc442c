package edit

import (
	"strings"
	"testing"
)

// TestAnEditChangesItsFieldAloneInAnyLayout. Each of these files was refused once, or would have lost a comment.
func TestAnEditChangesItsFieldAloneInAnyLayout(t *testing.T) {
	for name, c := range map[string]struct {
		before string
		field  Path
		value  any
		want   string
	}{
		"a text of several lines":                {"a: one\n  two\nb: 1\n", Path{"a"}, "x", "a: x\nb: 1\n"},
		"with lines between its own":             {"a: one  two \n \n\n  three # c\nb: 1\n", Path{"a"}, "x", "a: x # c\nb: 1\n"},
		"with CRLF":                              {"a: one\r\n  two\r\nb: 1\r\n", Path{"a"}, "x", "a: x\r\nb: 1\r\n"},
		"a field behind a text of several lines": {"a:\n  b: one\n    two\nc: 1\n", Path{"a", "d"}, 2, "a:\n  b: one\n    two\n  d: 2\nc: 1\n"},
		"a block without lines":                  {"a:\n  b: |\n  c: 1\n", Path{"a", "b"}, "x", "a:\n  b: x\n  c: 1\n"},
		"a block that begins deeper":             {"a: |2\n    one\n  two\nb: 1\n", Path{"a"}, "x", "a: x\nb: 1\n"},
		"a block that keeps blank lines":         {"a: |+\n  one\n\nb: 1\n", Path{"a"}, "x", "a: x\nb: 1\n"},
		"a field behind such a block":            {"a:\n  b: >+ # c\n    one\n\nc: 1\n", Path{"a", "d"}, 2, "a:\n  b: >+ # c\n    one\n\n  d: 2\nc: 1\n"},
		"a block of a line with a plus":          {"a: | # +\n  one\n\nb: 1\n", Path{"a"}, "x", "a: x # +\n\nb: 1\n"},
		"text of lines at the end of the file":   {"a: 1", Path{"b"}, "one\ntwo\n", "a: 1\nb: |\n  one\n  two\n"},
		"text of lines that ends the last field": {"a: {}", Path{"a"}, map[string]any{"b": "one\n"}, "a:\n  b: |\n    one\n"},
		"text that ends with blank lines":        {"a: 1\n\nc: 1\n", Path{"b"}, "one\n\n", "a: 1\n\nc: 1\nb: \"one\\n\\n\"\n"},
		"text that begins with blank lines":      {"a: 1\n", Path{"b"}, []any{"\n x"}, "a: 1\nb:\n  - \"\\n x\"\n"},
		"a control character":                    {"a: 'b'\n", Path{"a"}, "\x7f\u0085", "a: \"\\u007f\\u0085\"\n"},
		"a line break of other systems":          {"a: b\n", Path{"b"}, "x\u2028", "a: b\nb: \"x\\L\"\n"},
		"a byte order mark in brackets":          {"a: [b]\n", Path{"a", 0}, map[string]any{"c": "\ufeff"}, "a: [{\"c\":\"\\ufeff\"}]\n"},
		"a field behind an alias":                {"a: &x 1\nb:\n  c: *x\nd: 1\n", Path{"b", "e"}, 2, "a: &x 1\nb:\n  c: *x\n  e: 2\nd: 1\n"},
		"a field behind an anchor and a tag":     {"a:\n  b: !!str  &x 'y # z'\nd: 1\n", Path{"a", "e"}, 2, "a:\n  b: !!str  &x 'y # z'\n  e: 2\nd: 1\n"},
		"a field behind a tag of nothing":        {"a: !!str", Path{"b"}, 2, "a: !!str\nb: 2"},
		"a field behind a tag without a name":    {"a: !", Path{"b"}, 2, "a: !\nb: 2"},
		"a field behind comments of another one": {"a:\n  b: 1\n\n  # c: 2\n\n# d\nd: 1\n", Path{"e"}, 2, "a:\n  b: 1\n\n  # c: 2\n\n# d\nd: 1\ne: 2\n"},
		"before the comments at its own indent":  {"a:\n  b:\n    c: 1\n    # d: 2\n  # e: 3\n", Path{"a", "f"}, 2, "a:\n  b:\n    c: 1\n    # d: 2\n  f: 2\n  # e: 3\n"},
		"behind a comment that ends the file":    {"a:\n  b: 1\n  # c: 2", Path{"e"}, 2, "a:\n  b: 1\n  # c: 2\ne: 2"},
		"with CRLF behind such comments":         {"a:\r\n  b: 1\r\n  # c: 2\r\n", Path{"e"}, 2, "a:\r\n  b: 1\r\n  # c: 2\r\ne: 2\r\n"},
		"text of lines above a comment":          {"a: x\n    # why\nb: 1\n", Path{"a"}, map[string]any{"c": "one\ntwo"}, "a:\n  c: \"one\\ntwo\"\n    # why\nb: 1\n"},
		"an item behind an alias in brackets":    {"a: &x 1\nb: [*x]\n", Path{"b", 1}, 2, "a: &x 1\nb: [*x, 2]\n"},
	} {
		got, err := Set([]byte(c.before), c.field, c.value)
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %q becomes %q, %v; want %q", name, c.before, got, err, c.want)
		}
	}
}

func TestADeletionTakesItsFieldAloneInAnyLayout(t *testing.T) {
	for name, c := range map[string]struct {
		before string
		field  Path
		want   string
	}{
		"a comment within it":                 {"a:\n  b: 1\n\n  # more\n\n  # and\nc: 1\n", Path{"a"}, "c: 1\n"},
		"a comment within it, behind a text":  {"t: |\n  x\na:\n  b: 1\n  # more\nc: 1\n", Path{"a"}, "t: |\n  x\nc: 1\n"},
		"a comment about the next field":      {"a:\n  b: 1\n\n# next\nc: 1\n", Path{"a"}, "\n# next\nc: 1\n"},
		"a comment at the dashes of its list": {"a:\n- b\n# next\nc: 1\n", Path{"a"}, "# next\nc: 1\n"},
		"a comment below a text":              {"a: b\n  # next\nc: 1\n", Path{"a"}, "  # next\nc: 1\n"},
		"a comment below brackets":            {"a: [b]\n  # next\nc: 1\n", Path{"a"}, "  # next\nc: 1\n"},
		"a comment below an item":             {"a:\n- b: 1\n  # c: 2\n- d: 1\n", Path{"a", 0}, "a:\n- d: 1\n"},
		"the last comment":                    {"c: 1\na:\n  b: 1\n  # more", Path{"a"}, "c: 1"},
		"an anchor":                           {"a: &x 1\nb: 2\n", Path{"a"}, "b: 2\n"},
		"a text of several lines":             {"a: one\n  two\nb: 1\n", Path{"a"}, "b: 1\n"},
		"behind a text that ends the file":    {"a: |\n  one\nb: 1", Path{"b"}, "a: |\n  one\n"},
		"behind such a text with CRLF":        {"a: |\r\n  one\r\nb: 1", Path{"b"}, "a: |\r\n  one\r\n"},
		"a block that keeps blank lines":      {"a: |+\n  one\n\nb: 1\n", Path{"a"}, "b: 1\n"},
	} {
		got, err := Delete([]byte(c.before), c.field)
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %q becomes %q, %v; want %q", name, c.before, got, err, c.want)
		}
	}
	if got, err := Delete([]byte("a: &x 1\nb: *x\n"), Path{"a"}); err == nil {
		t.Errorf("an anchor that is in use is deleted: %q", got)
	}
}

// TestAFileThatWouldBeTooLargeIsNotWritten, and the error says so.
func TestAFileThatWouldBeTooLargeIsNotWritten(t *testing.T) {
	half := strings.Repeat("x", 1<<19)
	_, err := Set([]byte("a: "+half+"\n"), Path{"b"}, half)
	if want := "setting b: the file would be larger than 1024 KiB"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
