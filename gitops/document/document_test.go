package document

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/delivery/yamlcheck"
	"github.com/kubeop/kubeop/gitops/code"
)

func whys(d *Document) []string {
	var all []string
	for _, f := range d.Findings {
		all = append(all, fmt.Sprintf("%d: %s", f.Line, f.Why))
	}
	return all
}

func TestADocumentIsOneObject(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"an object":                    {"a: b\n", nil},
		"nothing":                      {"", []string{"0: the file is empty"}},
		"a comment alone":              {"# a\n", []string{"0: the file is empty"}},
		"markers alone":                {"---\n---\n", []string{"0: the file is empty"}},
		"a marker before and after":    {"---\na: b\n---\n", nil},
		"two":                          {"a: b\n---\nc: d\n", []string{"3: a second document begins here; each file holds exactly one"}},
		"null that is written as such": {"null\n", []string{`1: the file is not an object; it must hold fields such as "kind: …"`}},
		"a list":                       {"\n- a\n", []string{`2: the file is not an object; it must hold fields such as "kind: …"`}},
		"text":                         {"a\n", []string{`1: the file is not an object; it must hold fields such as "kind: …"`}},
	} {
		t.Run(name, func(t *testing.T) {
			d := Parse("x.yaml", []byte(c.text))
			if diff := cmp.Diff(c.want, whys(d)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if d.Size != len(c.text) || d.File != "x.yaml" {
				t.Errorf("file %s of %d bytes", d.File, d.Size)
			}
		})
	}
}

func TestValuesAreThoseOfJSON(t *testing.T) {
	for text, want := range map[string]any{
		"x": "x", "'1'": "1", "1": int64(1), "-1": int64(-1), "0x10": int64(16), "1.5": 1.5, "1e3": float64(1000), "true": true, "yes": "yes", "null": nil, "~": nil,
		"2026-03-01": "2026-03-01", "9223372036854775807": int64(9223372036854775807), "9223372036854775808": float64(9223372036854775808), "[1, a]": []any{int64(1), "a"},
		"{1: a, true: b, 1.5: c}": map[string]any{"1": "a", "true": "b", "1.5": "c"}, "[]": []any{}, "{}": map[string]any{},
	} {
		d := Parse("x.yaml", []byte("a: "+text+"\n"))
		if diff := cmp.Diff(map[string]any{"a": want}, d.Value); diff != "" || len(d.Findings) != 0 {
			t.Errorf("%s: findings %v (-want +got):\n%s", text, whys(d), diff)
		}
	}
}

func TestYAMLWithoutAJSONEquivalentIsAFinding(t *testing.T) {
	for text, want := range map[string]string{
		"a: .nan\n":                    `1: ".nan" is not a number that Kubernetes has`,
		"a: .inf\n":                    `1: ".inf" is not a number that Kubernetes has`,
		"a: !!binary aGk=\n":           `1: "aGk=" is not a value that Kubernetes has`,
		"a: !x {b: c}\n":               "1: the tag !x is not supported",
		"a: !!set {b, c}\n":            "1: the tag !!set is not supported",
		"a: !x [b]\n":                  "1: the tag !x is not supported",
		"null: b\n'': c\n":             "1: a key must be text, not !!null",
		"a: 1\nb: 2\na: 3\n":           `3: "a" is written a second time; the first is in line 1: keep one`,
		"1: a\n'1': b\n":               `2: "1" is written a second time; the first is in line 1: keep one`,
		"[a]: b\n":                     "1: a key must be text",
		"null: b\n":                    "1: a key must be text, not !!null",
		"x: &x {a: b}\ny:\n  <<: *x\n": "3: merge keys (<<) are not supported; write the fields out",
		"a: &a\n  b: *a\n":             "2: the document is nested deeper than 64 levels",
	} {
		d := Parse("x.yaml", []byte(text))
		if got := whys(d); len(got) != 1 || got[0] != want {
			t.Errorf("%q: got %v, want %s", text, got, want)
		}
	}
}

func TestADocumentIsExpandedWithinBounds(t *testing.T) {
	nested := func(n int) string { return "a: " + strings.Repeat("[", n) + strings.Repeat("]", n) }
	list := func(n int) string { return "a: [" + strings.TrimSuffix(strings.Repeat("1,", n), ",") + "]" }
	aliases := func(lists int) string {
		text := "x: &x " + list(1999)[3:] + "\n"
		for i := range lists {
			text += fmt.Sprintf("y%d: *x\n", i)
		}
		return text
	}
	texts := func(n int) string {
		return "x: &x " + strings.Repeat("t", 1000) + "\ny: [" + strings.Repeat("*x,", n) + "]\n"
	}
	for name, c := range map[string]struct {
		text string
		want string
	}{
		"64 levels":       {nested(64), ""},
		"65 levels":       {nested(65), "1: the document is nested deeper than 64 levels"},
		"2000 items":      {list(2000), ""},
		"2001 items":      {list(2001), "1: the list holds more than 2000 items"},
		"98,001 values":   {aliases(48), ""},
		"102,001 values":  {aliases(50), "1: the document holds more than 100000 values, aliases followed"},
		"a MiB of text":   {texts(1047), ""},
		"more than a MiB": {texts(1048), "2: the document holds more than 1024 KiB of text, aliases followed"},
	} {
		t.Run(name, func(t *testing.T) {
			got := strings.Join(whys(Parse("x.yaml", []byte(c.text))), "\n")
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestAFileHasTwentyFindingsAndAWordOfMore(t *testing.T) {
	for n, want := range map[int]int{0: 0, 20: 20, 21: 21, 22: 21, 50: 21} {
		d := &Document{File: "x.yaml"}
		for i := range n {
			d.Add(code.BrokenYAML, yamlcheck.Position{Line: i}, "wrong")
		}
		if len(d.Findings) != want || d.Full() != (n > 20) {
			t.Errorf("of %d findings %d are kept, full: %t", n, len(d.Findings), d.Full())
		}
		if last := len(d.Findings) - 1; n > 20 && (d.Findings[last].Why != "there is more wrong with this file" || d.Findings[last].Line != 0 || d.Findings[last].File != "x.yaml") {
			t.Errorf("the last finding is %+v", d.Findings[last])
		}
	}
}

func TestAFieldIsFoundByItsPath(t *testing.T) {
	d := Parse("x.yaml", []byte(`spec:
  ports:
    - name: a
      port: 1
    - name: b
  quota:
    requests.cpu: 1
    requests: {cpu: 2}
  shared: &s
    key: v
  other: *s
  port: 1
  ümlaut: {ü: 1, in: 2}
`))
	for field, want := range map[string]string{
		"spec": "1:1", "spec.ports": "2:3", "spec.ports[0]": "3:7", "spec.ports[0].name": "3:7", "spec.ports[0].port": "4:7", "spec.ports[1].name": "5:7", "spec.ports[1].none": "5:7",
		"spec.ports[2]": "2:3", "spec.ports[-1]": "2:3", "spec.ports[x]": "2:3", "spec.ports.name": "2:3", "spec.ports[0": "2:3", "spec.ports.0]": "2:3", "spec.quota.requests.cpu": "7:5", "spec.quota[requests.cpu]": "7:5", "spec.quota.requests": "8:5", "spec.quota.requests.memory": "8:5",
		"spec.other.key": "10:5", "spec.port": "12:3", "spec.none": "1:1", "none": "1:1", "": "1:1", "spec.port.x": "12:3", "spec.ümlaut.in": "13:18",
	} {
		if got := d.Position(field).In("x"); got != "x:"+want {
			t.Errorf("%s is at %s, want %s", field, got, want)
		}
	}
	if got := (&Document{}).Position("spec").In("x"); got != "x" {
		t.Errorf("a file without a document has a field at %s", got)
	}
}

func TestTextsOfFilesAreBoundedAndOnOneLine(t *testing.T) {
	if got, want := Quote(strings.Repeat("ä", 60)), `"`+strings.Repeat("ä", 60)+`"`; got != want {
		t.Errorf("60 characters: %s, want %s", got, want)
	}
	if got, want := Quote(strings.Repeat("ä", 61)), `"`+strings.Repeat("ä", 59)+`…"`; got != want {
		t.Errorf("61 characters: %s, want %s", got, want)
	}
	for want, value := range map[string]any{`"a\nb"`: "a\nb", `{"a":[1]}`: map[string]any{"a": []any{int64(1)}}, "null": nil, "true": true} {
		if got := Show(value); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if got := Show([]string{strings.Repeat("ä", 500)}); len([]rune(got)) != 400 || !strings.HasSuffix(got, "…") {
		t.Errorf("a long value has %d characters", len([]rune(got)))
	}
	if got := Show(make(chan int)); !strings.HasPrefix(got, "0x") {
		t.Errorf("what is no JSON is %s", got)
	}
	d := &Document{}
	d.Add(code.BrokenYAML, yamlcheck.Position{Line: 1}, "%s", "a\tb\nc\x00\xff"+strings.Repeat("x", 400))
	if why := d.Findings[0].Why; !strings.HasPrefix(why, "a\uFFFDb\uFFFDc\uFFFD\uFFFDx") || len([]rune(why)) != 400 {
		t.Errorf("got %q", why)
	}
}
