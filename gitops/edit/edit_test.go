package edit

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

const app = `# The shop.
kind: App   # of acme
spec:
  type: Image

  # Pinned.
  image:
    reference: "a:1"  # see #12
    'port': 80
    args: [a, 'b', {c: d}]
    env: {}
  none:
  list:
  - name: a
    x: 1

  # Second.
  - name: b
  text: |
    one

    two
`

func TestAnEditChangesOneFieldAndKeepsAllElse(t *testing.T) {
	for name, c := range map[string]struct {
		field    string
		value    any
		old, new string // What changes in the text.
	}{
		"text in double quotes":   {"spec.image.reference", "b:2", `"a:1"`, `"b:2"`},
		"plain text":              {"spec.type", "Raw", "Image", "Raw"},
		"text that needs quotes":  {"spec.type", "1", "Image", `"1"`},
		"text with a comment":     {"kind", "a # b", "App ", "'a # b' "},
		"number":                  {"spec.image.port", 81, "80", "81"},
		"number to text":          {"spec.image.port", "x", "80", "x"},
		"single quotes in a flow": {"spec.image.args[1]", "it's", `'b'`, `'it''s'`},
		"object in a flow":        {"spec.image.args[2].c", "x, y", "d}", `"x, y"}`},
		"first item of a flow":    {"spec.image.args[0]", "z", "[a,", `["z",`},
		"append to a flow":        {"spec.image.args[3]", true, "{c: d}]", "{c: d}, true]"},
		"field of an empty flow":  {"spec.image.env", map[string]any{"A": "b"}, "env: {}", "env:\n      A: b"},
		"field made in {}":        {"spec.image.env.A", "b", "env: {}", "env:\n      A: b"},
		"not written":             {"spec.none", "x", "none:", "none: x"},
		"field in null":           {"spec.none.a.b", "x", "none:", "none:\n    a:\n      b: x"},
		"new field":               {"spec.image.host", "h", "env: {}\n", "env: {}\n    host: h\n"},
		"new field of an item":    {"spec.list[0].z", 2, "    x: 1\n", "    x: 1\n    z: 2\n"},
		"new item":                {"spec.list[2].name", "c", "- name: b\n", "- name: b\n  - name: c\n"},
		"new field at the end":    {"spec.last", nil, "    two\n", "    two\n  last: null\n"},
		"text of lines":           {"spec.text", "t", "|\n    one\n\n    two\n", "t\n"},
	} {
		for eol, lines := range map[string]string{"LF": "\n", "CRLF": "\r\n"} {
			t.Run(name+" "+eol, func(t *testing.T) {
				text := strings.NewReplacer("\n", lines)
				if strings.Count(app, c.old) != 1 {
					t.Fatalf("%q is %d times in the file", c.old, strings.Count(app, c.old))
				}
				path, err := ParsePath(c.field)
				if err != nil {
					t.Fatal(err)
				}
				got, err := Set([]byte(text.Replace(app)), path, c.value)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(text.Replace(strings.Replace(app, c.old, c.new, 1)), string(got)); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
			})
		}
	}
}

// TestAQuotedTextEndsAtItsOwnQuote, and not at one that is escaped.
func TestAQuotedTextEndsAtItsOwnQuote(t *testing.T) {
	for before, want := range map[string]string{
		`{"a": "x\"y", "b": 1}`: `{"a": "new", "b": 1}`, `{"a": "x\\", "b": "\""}`: `{"a": "new", "b": "\""}`,
		"a: \"say \\\"a\\\", b\"\nb: 1\n": "a: \"new\"\nb: 1\n", "a: 'it''s'\nb: ''\n": "a: 'new'\nb: ''\n", "a: ''\n": "a: 'new'\n",
	} {
		got, err := Set([]byte(before), Path{"a"}, "new")
		if err != nil || string(got) != want {
			t.Errorf("%s: got %s, %v; want %s", before, got, err, want)
		}
	}
}

// TestAFlowCollectionThatEndsWithoutAValue is replaced up to its bracket, whatever follows.
func TestAFlowCollectionThatEndsWithoutAValue(t *testing.T) {
	for before, want := range map[string]string{
		"a: {b: 1, c}\nd: 2\n": "a: 5\nd: 2\n", "a: {b: 1, c: }\nd: 2\n": "a: 5\nd: 2\n", "a: {c}\n": "a: 5\n", "a: [{c}, 1] # x\n": "a: 5 # x\n",
	} {
		got, err := Set([]byte(before), Path{"a"}, 5)
		if err != nil || string(got) != want {
			t.Errorf("%q: %q, %v, want %q", before, got, err, want)
		}
	}
}

// TestAValueIsWrittenWhereNoneIs: in an empty file, and behind a colon or a dash that stands apart.
func TestAValueIsWrittenWhereNoneIs(t *testing.T) {
	for before, want := range map[string]string{
		"{}\n": "{\"a\":[\"new\"]}\n", "a :\nb: 1\n": "a :\n  - new\nb: 1\n", "a:\n-\nb: 1\n": "a:\n- new\nb: 1\n", "a:\n  - # first\n  - 2\n": "a:\n  - new # first\n  - 2\n",
	} {
		got, err := Set([]byte(before), Path{"a", 0}, "new")
		if err != nil || string(got) != want {
			t.Errorf("%q: got %q, %v; want %q", before, got, err, want)
		}
	}
}

// TestAValueOfSeveralLinesIsReplaced, with the comments within it, and nothing else.
func TestAValueOfSeveralLinesIsReplaced(t *testing.T) {
	const text = "# top\na: # key\n  # inside\n  b: 1 # last\nlist:\n- x: 1\n  y: 2 # two\n- - z\nflow: [1, # one\n  2] # end\n# foot\n"
	for name, c := range map[string]struct {
		field    string
		value    any
		old, new string
	}{
		"an object by an object": {"a", map[string]any{"c": 2}, "  # inside\n  b: 1 # last\n", "  # inside\n  c: 2\n"},
		"an object by a list":    {"a", []any{1}, "  # inside\n  b: 1 # last\n", "  # inside\n  - 1\n"},
		"an object by a text":    {"a", "x", "a: # key\n  # inside\n  b: 1 # last\n", "a: x # key\n"},
		"an object by nothing":   {"a", map[string]any{}, "a: # key\n  # inside\n  b: 1 # last\n", "a: {} # key\n"},
		"a list by a list":       {"list", []any{map[string]any{"x": 3}}, "- x: 1\n  y: 2 # two\n- - z\n", "  - x: 3\n"},
		"a list by an object":    {"list", map[string]any{"x": 3}, "- x: 1\n  y: 2 # two\n- - z\n", "  x: 3\n"},
		"an item by an object":   {"list[0]", map[string]any{"z": 3, "w": 4}, "x: 1\n  y: 2 # two\n", "w: 4\n  z: 3\n"},
		"an item by a text":      {"list[0]", "x", "x: 1\n  y: 2 # two\n", "x\n"},
		"brackets":               {"flow", []any{3}, "[1, # one\n  2]", "[3]"},
		"what Set replaces":      {"a.b", 2, "b: 1", "b: 2"},
	} {
		for eol, lines := range map[string]string{"LF": "\n", "CRLF": "\r\n"} {
			t.Run(name+" "+eol, func(t *testing.T) {
				if strings.Count(text, c.old) != 1 {
					t.Fatalf("%q is %d times in the file", c.old, strings.Count(text, c.old))
				}
				path, err := ParsePath(c.field)
				if err != nil {
					t.Fatal(err)
				}
				ends := strings.NewReplacer("\n", lines)
				got, err := Replace([]byte(ends.Replace(text)), path, c.value)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(ends.Replace(strings.Replace(text, c.old, c.new, 1)), string(got)); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
			})
		}
	}
	for _, broken := range []string{"a: &x\n  c: 1\nb: *x\n", "a: 1\n b: 2\n"} {
		if got, err := Replace([]byte(broken), Path{"a"}, 1); err == nil {
			t.Errorf("%q becomes %q", broken, got)
		}
	}
}

func TestADeletionTakesTheLinesOfTheField(t *testing.T) {
	for name, c := range map[string]struct{ text, field, want string }{
		"field":           {app, "spec.type", strings.Replace(app, "  type: Image\n", "", 1)},
		"object":          {app, "spec.list[0]", strings.Replace(app, "  - name: a\n    x: 1\n", "", 1)},
		"not written":     {app, "spec.none", strings.Replace(app, "  none:\n", "", 1)},
		"text":            {app, "spec.text", strings.Replace(app, "  text: |\n    one\n\n    two\n", "", 1)},
		"no break at end": {"a: 1\nb: 2", "b", "a: 1"},
		"field of item":   {"a:\n  - {x: 1}\n  - b: 2\n    x: 3\n", "a[1].x", "a:\n  - {x: 1}\n  - b: 2\n"},
		"item of item":    {"a:\n  - - 1\n    - 2\n", "a[0][1]", "a:\n  - - 1\n"},
		"CRLF":            {"a: 1\r\nb: 2\r\nc: 3", "c", "a: 1\r\nb: 2"},
	} {
		t.Run(name, func(t *testing.T) {
			path, err := ParsePath(c.field)
			if err != nil {
				t.Fatal(err)
			}
			got, err := Delete([]byte(c.text), path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, string(got)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestAnEditThatIsNotSafeIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		text, field string
		del         bool
		want        string
	}{
		"alias":         {"a: &x\n  c: 1\nb: *x\n", "b.c", false, "setting b.c: line 3: an anchor or alias holds the field; edit the file by hand"},
		"anchor":        {"a: &x\n  c: 1\nb: *x\n", "a.c", false, "setting a.c: line 1: an anchor or alias holds the field; edit the file by hand"},
		"anchored text": {"a: &x 1\nb: *x\n", "a", false, "setting a: line 1: anchors, aliases and tags cannot be edited; edit the file by hand"},
		"tag":           {"a: !!str 1\n", "a", false, "setting a: line 1: anchors, aliases and tags cannot be edited; edit the file by hand"},
		"two documents": {"a: 1\n---\nb: 1\n", "a", false, "setting a: line 3: a second document begins here; each file holds exactly one"},
		"broken": {"a: 1\n b: 2\n", "a", false, "setting a: line 2: broken YAML: " +
			`mapping values are not allowed in this context: the line is indented by 1 space, so it continues line 1, which is indented by 0; indent it alike, or end line 1 with ":"`},
		"empty":               {"", "a", false, "setting a: the file is empty"},
		"object of lines":     {"a:\n  b: 1\n", "a", false, "setting a: line 2: an object or list of several lines cannot be replaced; set or delete its fields"},
		"a list's field":      {"a: [1]\n", "a.b", false, `setting a.b: "b" is a field of an object, and what is there is none`},
		"an object's item":    {"a: {b: 1}\n", "a[0]", false, "setting a[0]: [0] is an item of a list, and what is there is none"},
		"beyond the list":     {"a: [1]\n", "a[2]", false, "setting a[2]: [2]: the list has 1 items: the file has no such field"},
		"an item's field":     {"a: [x]\n", "a[0].b", false, `setting a[0].b: "b" is a field of an object, and what is there is none`},
		"text has no fields":  {"a: b\n", "a.c", false, `setting a.c: "c" is a field of an object, and what is there is none`},
		"byte order mark":     {"\ufeffa: 1\n", "a", false, "setting a: the file has a byte order mark, or line breaks other than LF and CRLF; remove them"},
		"empty document":      {"---\n---\na: 1\n", "a", false, "setting a: the file begins with an empty document; remove it"},
		"too large":           {"a: " + strings.Repeat("x", 1<<20), "a", false, "setting a: the file is larger than 1024 KiB"},
		"key without a colon": {"? a\n? b\n", "b", false, "setting b: " + errLayout.Error()},
		"braces without one":  {"a: {b, c: d}\n", "a.b", false, "setting a.b: " + errLayout.Error()},
		"delete the only one": {"a:\n  b: 1\n", "a.b", true, "deleting a.b: line 2: it is the only one there; delete the field around it"},
		"delete in a flow":    {"a: {b: 1, c: 2}\n", "a.b", true, "deleting a.b: line 1: fields between brackets cannot be deleted; edit the file by hand"},
		"delete of an item":   {"a:\n- b: 1\n  c: 2\n", "a[0].b", true, "deleting a[0].b: line 2: it is on the line of the item that holds it; edit the file by hand"},
		"delete beyond":       {"a: [1, 2]\n", "a[2]", true, "deleting a[2]: the file has no such field"},
		"delete within":       {"a: [1, 2]\n", "a[1].b", true, "deleting a[1].b: the file has no such field"},
		"delete nothing":      {"a: 1\n", "b", true, "deleting b: the file has no such field"},
	} {
		t.Run(name, func(t *testing.T) {
			path, err := ParsePath(c.field)
			if err != nil {
				t.Fatal(err)
			}
			got, err := Set([]byte(c.text), path, "new")
			if c.del {
				got, err = Delete([]byte(c.text), path)
			}
			if err == nil || err.Error() != c.want {
				t.Errorf("got %q, error %q, want %q", got, err, c.want)
			}
		})
	}
}

// TestAnItemIsAppendedAfterAnEmptyItemOrATrailingComma: below the item, or before the bracket.
func TestAnItemIsAppendedAfterAnEmptyItemOrATrailingComma(t *testing.T) {
	for before, want := range map[string]string{
		"a:\n- b\n-\nc: 1\n": "a:\n- b\n-\n- 5\nc: 1\n", "a:\n- b\n-": "a:\n- b\n-\n- 5", "a:\n- b:\n- c:\n  d:\ne: 1\n": "a:\n- b:\n- c:\n  d:\n- 5\ne: 1\n",
		"a: [b, 1, # x\n]\nc: 2\n": "a: [b, 1, 5, # x\n]\nc: 2\n",
	} {
		if got, err := Set([]byte(before), Path{"a", 2}, 5); err != nil || string(got) != want {
			t.Errorf("%q: got %q, %v; want %q", before, got, err, want)
		}
	}
}

// TestTheSameValueLeavesTheTextAsItIs: the result is a copy of the text, however the file writes the value.
func TestTheSameValueLeavesTheTextAsItIs(t *testing.T) {
	before := []byte("a: 0x10  # sixteen\n")
	got, err := Set(before, Path{"a"}, 16)
	if err != nil || !bytes.Equal(got, before) || &got[0] == &before[0] {
		t.Errorf("got %q, %v", got, err)
	}
}

// TestAValueOrPathThatJSONDoesNotHaveIsRefused before the text is read.
func TestAValueOrPathThatJSONDoesNotHaveIsRefused(t *testing.T) {
	_, large := Set([]byte("a: 1\n"), Path{"a"}, strings.Repeat("x", 1<<20))
	_, set := Set([]byte("a: 1\n"), Path{1.5}, 2)
	_, deleted := Delete([]byte("a: 1\n"), Path{1.5})
	for want, err := range map[string]error{
		"setting a: the value is larger than 1024 KiB":                   large,
		"setting [1.5]: a step of a path is a key or an index, not 1.5":  set,
		"deleting [1.5]: a step of a path is a key or an index, not 1.5": deleted,
	} {
		if err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// TestGetReadsAFieldThroughObjectsAndLists: a field that is not there has no value.
func TestGetReadsAFieldThroughObjectsAndLists(t *testing.T) {
	for field, want := range map[string]any{"a[1].b": "x", "a[0]": int64(1), "a[2]": nil, "a.b": nil, "b": nil, "a[1].c": nil} {
		path, err := ParsePath(field)
		if err != nil {
			t.Fatal(err)
		}
		got, has, err := Get([]byte("a: [1, {b: x}]\n"), path)
		if err != nil || got != want || has != (want != nil) {
			t.Errorf("%s: got %v (%T), %t, %v", field, got, got, has, err)
		}
	}
	if _, _, err := Get([]byte("[]"), Path{"a"}); err == nil || !strings.HasPrefix(err.Error(), "reading a: line 1: ") {
		t.Errorf("got %v", err)
	}
}

func TestPathsAreReadAndWritten(t *testing.T) {
	for text, want := range map[string]Path{
		"a": {"a"}, "a.b[0].c": {"a", "b", 0, "c"}, "a[b.c]": {"a", "b.c"}, "a[b.c][1]": {"a", "b.c", 1},
	} {
		got, err := ParsePath(text)
		if err != nil || !reflect.DeepEqual(got, want) || got.String() != text {
			t.Errorf("%q: got %v, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		"": "the field is empty", "a.": `"a." is not a field: a key is empty`, ".a": `".a" is not a field: a key is empty`, "a..b": `"a..b" is not a field: a key is empty`,
		"a[": `"a[" is not a field: a bracket holds an index or a key, and is closed`, "a[]": `"a[]" is not a field: a bracket holds an index or a key, and is closed`,
		"a[0]b": `"a[0]b" is not a field: a dot must follow each bracket`, "a[0]bc": `"a[0]bc" is not a field: a dot must follow each bracket`,
	} {
		if got, err := ParsePath(text); got != nil || err == nil || err.Error() != want {
			t.Errorf("%q: got %v, %v", text, got, err)
		}
	}
	if got, err := Set([]byte("a: 1\n"), nil, map[string]any{"a": 2}); err == nil || err.Error() != "setting : the path is empty" {
		t.Errorf("set without a path: %q, %v", got, err)
	}
	if got, err := Delete([]byte("a: 1\n"), nil); err == nil || err.Error() != "deleting : the path is empty" {
		t.Errorf("delete without a path: %q, %v", got, err)
	}
	if _, err := Delete([]byte("a: 1\n"), Path{"b"}); !errors.Is(err, ErrNoField) {
		t.Errorf("got %v", err)
	}
}

// FuzzAnEditChangesWhatItSays checks that parse(edit(x)) = change(parse(x)), that the input stays as it is, and that setting loses no comment.
// The other bytes are equal because an edit replaces one range; the tables compare them.
func FuzzAnEditChangesWhatItSays(f *testing.F) {
	for _, field := range []string{"spec.image.reference", "spec.list[0].x", "spec.list[2]", "spec.none.a", "spec.image.args[2].c", "spec.text", "kind", "new[0]"} {
		f.Add([]byte(app), field, "text", false)
		f.Add([]byte(strings.ReplaceAll(app, "\n", "\r\n")), field, "{a: [1, x]}", false)
		f.Add([]byte(app), field, "", true)
	}
	for _, text := range examples(f) {
		value, err := parse([]byte(text))
		if err != nil {
			f.Fatal(err)
		}
		all := leaves(nil, value)
		f.Add([]byte(text), all[len(all)/2].String(), "text", false)
		f.Add([]byte(text), all[len(all)-1].String(), "", true)
	}
	f.Add([]byte("spec:\n  text: \n"), "spec.text", "08", false) // YAML reads the value as a float, and its text as an integer.
	f.Add([]byte("spec:\n  text: ># why\n    one\n"), "spec.text", "two", false)
	f.Fuzz(editsText)
}

// editsText sets or deletes a field of any text.
func editsText(t *testing.T, data []byte, field, value string, del bool) {
	path, err := ParsePath(field)
	before, broken := parse(data)
	if err != nil || broken != nil {
		return
	}
	var v any = value
	if object, err := parse([]byte("v: " + value + "\n")); err == nil {
		v = object.(map[string]any)["v"]
	}
	if v, err = Normal(v); err != nil { // A float without a fraction is written as an integer.
		return
	}
	original := bytes.Clone(data)
	var got []byte
	var want any
	if del {
		got, err = Delete(data, path)
	} else {
		got, err = Set(data, path, v)
	}
	if !bytes.Equal(data, original) {
		t.Fatal("the input is changed")
	}
	if err != nil {
		return
	}
	if want, err = path.remove(before); !del {
		want, err = path.set(before, v)
	}
	if after, broken := parse(got); err != nil || broken != nil || !reflect.DeepEqual(after, want) {
		t.Fatalf("%q\nto %q\nis %v, want %v (%v, %v)", data, got, after, want, err, broken)
	}
	if !del {
		keepsComments(t, data, got)
	}
}

// keepsComments checks that a text has all comments of another one.
func keepsComments(t *testing.T, data, got []byte) {
	t.Helper()
	var then, now yaml.Node
	for text, n := range map[*[]byte]*yaml.Node{&data: &then, &got: &now} {
		if err := yaml.Unmarshal(*text, n); err != nil {
			t.Fatal(err)
		}
	}
	kept := strings.Join(comments(&now), "\n")
	for _, comment := range comments(&then) {
		if !strings.Contains(kept, comment) {
			t.Fatalf("%q\nto %q\nloses %q", data, got, comment)
		}
	}
}

// comments returns the lines of all comments.
func comments(n *yaml.Node) []string {
	var all []string
	for _, c := range []string{n.HeadComment, n.LineComment, n.FootComment} {
		all = append(all, strings.Fields(c)...)
	}
	for _, child := range n.Content {
		all = append(all, comments(child)...)
	}
	return all
}

// TestTheCommentOfATextOfSeveralLinesIsKept: it stands on the line of the key, before what is replaced.
func TestTheCommentOfATextOfSeveralLinesIsKept(t *testing.T) {
	for text, want := range map[string]string{
		"a: > # why\n  one\n  two\nb: 1\n":      "a: 3 # why\nb: 1\n",
		"a: |- # why\r\n  one\r\nb: 1\r\n":      "a: 3 # why\r\nb: 1\r\n",
		"a: >#why\n":                            "a: 3 #why\n",
		"a: >\n  one # of the text\nb: 1 # b\n": "a: 3\nb: 1 # b\n",
	} {
		if got, err := Set([]byte(text), Path{"a"}, 3); err != nil || string(got) != want {
			t.Errorf("%q becomes %q, %v; want %q", text, got, err, want)
		}
	}
	want := "a: # why\n  x: 1\nb: 1\n"
	if got, err := Set([]byte("a: > # why\n  one\nb: 1\n"), Path{"a"}, map[string]any{"x": 1}); err != nil || string(got) != want {
		t.Errorf("it becomes %q, %v; want %q", got, err, want)
	}
}
