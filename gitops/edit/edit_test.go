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

func TestADeletionTakesTheLinesOfTheField(t *testing.T) {
	for name, c := range map[string]struct{ text, field, want string }{
		"field":           {app, "spec.type", strings.Replace(app, "  type: Image\n", "", 1)},
		"object":          {app, "spec.list[0]", strings.Replace(app, "  - name: a\n    x: 1\n", "", 1)},
		"not written":     {app, "spec.none", strings.Replace(app, "  none:\n", "", 1)},
		"text":            {app, "spec.text", strings.Replace(app, "  text: |\n    one\n\n    two\n", "", 1)},
		"no break at end": {"a: 1\nb: 2", "b", "a: 1"},
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
		"alias":               {"a: &x\n  c: 1\nb: *x\n", "b.c", false, "setting b.c: line 3: an anchor or alias holds the field"},
		"anchor":              {"a: &x\n  c: 1\nb: *x\n", "a.c", false, "setting a.c: line 1: an anchor or alias holds the field"},
		"anchored text":       {"a: &x 1\nb: *x\n", "a", false, "anchors, aliases and tags cannot be edited"},
		"tag":                 {"a: !!str 1\n", "a", false, "anchors, aliases and tags cannot be edited"},
		"two documents":       {"a: 1\n---\nb: 1\n", "a", false, "a second document begins here"},
		"broken":              {"a: 1\n b: 2\n", "a", false, "line 2: broken YAML"},
		"empty":               {"", "a", false, "the file is empty"},
		"text of lines":       {"a: b\n  c\n", "a", false, "texts of several lines cannot be edited"},
		"object of lines":     {"a:\n  b: 1\n", "a", false, "an object or list of several lines cannot be replaced"},
		"a list's field":      {"a: [1]\n", "a.b", false, "is a field of an object"},
		"an object's item":    {"a: {b: 1}\n", "a[0]", false, "is an item of a list"},
		"beyond the list":     {"a: [1]\n", "a[2]", false, "the list has 1 items"},
		"an item's field":     {"a: [x]\n", "a[0].b", false, "is a field of an object"},
		"text has no fields":  {"a: b\n", "a.c", false, "is a field of an object"},
		"byte order mark":     {"\ufeffa: 1\n", "a", false, "a byte order mark"},
		"empty document":      {"---\n---\na: 1\n", "a", false, "begins with an empty document"},
		"too large":           {"a: " + strings.Repeat("x", 1<<20), "a", false, "larger than 1024 KiB"},
		"delete the only one": {"a:\n  b: 1\n", "a.b", true, "line 2: it is the only one there"},
		"delete in a flow":    {"a: {b: 1, c: 2}\n", "a.b", true, "fields between brackets cannot be deleted"},
		"delete of an item":   {"a:\n- b: 1\n  c: 2\n", "a[0].b", true, "it is on the line of the item that holds it"},
		"delete nothing":      {"a: 1\n", "b", true, ErrNoField.Error()},
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
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %q, error %v, want %s", got, err, c.want)
			}
		})
	}
}

func TestPathsAreReadAndWritten(t *testing.T) {
	for text, want := range map[string]Path{
		"a": {"a"}, "a.b[0].c": {"a", "b", 0, "c"}, "a[b.c]": {"a", "b.c"}, "a[b.c][1]": {"a", "b.c", 1},
		"": nil, "a.": nil, ".a": nil, "a..b": nil, "a[": nil, "a[]": nil, "a[0]b": nil, "a[0]bc": nil,
	} {
		got, err := ParsePath(text)
		if (err == nil) != (want != nil) || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: got %v, %v", text, got, err)
		}
		if want != nil && got.String() != text {
			t.Errorf("%q is written %s", text, got)
		}
	}
	for name, change := range map[string]func() ([]byte, error){
		"set": func() ([]byte, error) { return Set([]byte("a: 1\n"), nil, 1) }, "delete": func() ([]byte, error) { return Delete([]byte("a: 1\n"), nil) },
	} {
		if got, err := change(); err == nil {
			t.Errorf("%s without a path: %s", name, got)
		}
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
	f.Add([]byte("spec:\n  text: \n"), "spec.text", "08", false) // YAML reads the value as a float, and its text as an integer.
	f.Add([]byte("spec:\n  text: ># why\n    one\n"), "spec.text", "two", false)
	f.Fuzz(func(t *testing.T, data []byte, field, value string, del bool) {
		path, err := ParsePath(field)
		before, broken := parse(data)
		if err != nil || broken != nil {
			return
		}
		var v any = value
		if object, err := parse([]byte("v: " + value + "\n")); err == nil {
			v = object.(map[string]any)["v"]
		}
		if v, err = normal(v); err != nil { // A float without a fraction is written as an integer.
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
			var now yaml.Node
			if err := yaml.Unmarshal(got, &now); err != nil {
				t.Fatal(err)
			}
			var then yaml.Node
			if err := yaml.Unmarshal(data, &then); err != nil {
				t.Fatal(err)
			}
			kept := strings.Join(comments(&now), "\n")
			for _, comment := range comments(&then) {
				if !strings.Contains(kept, comment) {
					t.Fatalf("%q\nto %q\nloses %q", data, got, comment)
				}
			}
		}
	})
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
