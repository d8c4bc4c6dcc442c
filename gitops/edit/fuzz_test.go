package edit

import (
	"maps"
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// values are what the fuzz tests set.
var values = []any{
	"new", "a: b", `it's "q"`, "größe ✓ 🎉", "", " lead", "trail ", "two\nlines\n", "no end\nx", "\n\n", "\n x", "tab\there", "a\r\nb", "\x7f", "\u0085", "\u2028", "\ufeff", "null", "1e3", "~", "- a", "#x", "[", "*a",
	"08", "2026-03-01", strings.Repeat("long ", 50), 42, -1, 1.5, 1e21, true, nil, map[string]any{}, []any{}, map[string]any{"a": "b", "y": "x", "1": 2, "": 3}, []any{"x", map[string]any{"y": []any{1, 2}}, []any{}},
	map[string]any{"a": "two\nlines\n"}, map[string]any{"a": "end\n\n"}, []any{" lead\n more\n"}, map[string]any{strings.Repeat("key", 60): 1}, map[string]any{"a\x7f": []any{"\u0085\u2028\ufeff"}},
}

// trial is one edit of a file whose forms are known.
type trial struct {
	*testing.T
	text  string
	field *form
	value any
}

// FuzzAnEditKeepsAllBytesAroundItsField edits files of all forms of YAML. The test knows where each field is, because it wrote the file:
// only those bytes may change, the value is the one that was set, no comment gets lost, and only edits that the package says it does not
// make are refused.
func FuzzAnEditKeepsAllBytesAroundItsField(f *testing.F) {
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 500 {
		choices := make([]byte, random.IntN(60))
		for i := range choices {
			choices[i] = byte(random.Uint32())
		}
		f.Add(choices, random.Uint32()<<8|uint32(i%4), "some text")
	}
	f.Fuzz(editsForms)
}

// editsForms edits the file that the choices make. Of the bytes of how, the first says what is done, the second with which field, and the third, or
// words, to what value.
func editsForms(t *testing.T, choices []byte, how uint32, words string) {
	act, at, which := how&0xff, how>>8&0xff, how>>16&0xff
	text, fields := newForms(choices)
	var value any = words
	if int(which)%(len(values)+1) > 0 {
		value = values[int(which)%(len(values)+1)-1]
	}
	value, err := Normal(value)
	if err != nil {
		if utf8.ValidString(words) && len(words) < 1000 {
			t.Fatalf("%q cannot be written: %v", words, err)
		}
		return
	}
	if int(which)%(len(values)+1) == 0 && utf8.ValidString(words) && value != words {
		t.Fatalf("%q would be written as %q", words, value)
	}
	try := trial{t, text, fields[int(at)%len(fields)], value}
	try.reads(fields)
	switch {
	case act%4 == 3 && len(try.field.path) > 0:
		try.deletes()
	case act%4 == 2 && (try.field.isObject || try.field.isList):
		try.adds(fields)
	case len(try.field.path) > 0:
		try.sets(act%4 == 1)
	}
}

// reads checks that the file holds what was written.
func (t trial) reads(fields []*form) {
	for _, field := range fields {
		if got, has, err := Get([]byte(t.text), field.path); err != nil || !has || field.value != any(unknown{}) && len(field.path) > 0 && !reflect.DeepEqual(got, field.value) {
			t.Fatalf("%s of\n%s\nis %#v, %t, %v; want %#v", field.path, t.text, got, has, err, field.value)
		}
	}
}

// sets sets or replaces the field.
func (t trial) sets(anew bool) {
	of, set := t.field, Set
	if anew {
		set = Replace
	}
	got, err := set([]byte(t.text), of.path, t.value)
	before, _, _ := Get([]byte(t.text), of.path)
	switch {
	case reflect.DeepEqual(before, t.value):
		if err != nil || string(got) != t.text {
			t.Fatalf("the same value of %s of\n%s\nmakes\n%s\n%v", of.path, t.text, got, err)
		}
		return
	case err != nil && (of.strange || of.lines && !anew):
		return
	}
	from, to := of.start, of.end
	if of.lines && !of.braces { // Within the lines of the field: the comment on the line of its key moves, or is cut.
		from, to = of.colon, len(strings.TrimSuffix(strings.TrimSuffix(t.text[:of.next], "\n"), "\r"))
	} else if composite(t.value) && !of.flow && !of.lines || of.text || of.start == of.colon {
		from, to = of.colon, of.end+len(firstLine(t.text[of.end:]))
	}
	t.check(got, err, of.path, span{from, to, !of.lines})
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return strings.TrimSuffix(line, "\r")
}

// adds adds a field to an object, or an item to a list.
func (t trial) adds(fields []*form) {
	of, last := t.field, t.field
	many := 0
	for _, field := range fields {
		if len(field.path) == len(of.path)+1 && reflect.DeepEqual(field.path[:len(of.path)], append(Path{}, of.path...)) {
			many++
			last = field
		}
	}
	path := append(slices.Clone(of.path), any("new key"))
	if of.isList {
		path[len(of.path)] = many
	}
	got, err := Set([]byte(t.text), path, t.value)
	behind := last.next                // Behind the comments within the last one, too.
	for last.isObject || last.isList { // The innermost one is where the new one is added.
		inner := last
		for _, field := range fields {
			if len(field.path) == len(last.path)+1 && reflect.DeepEqual(field.path[:len(last.path)], append(Path{}, last.path...)) {
				inner = field
			}
		}
		if inner == last {
			break
		}
		last = inner
	}
	var from, to int
	switch {
	case many == 0:
		from, to = of.colon, of.end+len(firstLine(t.text[of.end:]))
	case of.braces:
		from, to = of.start, of.end
	default:
		from = of.end + len(firstLine(t.text[of.end:]))
		to = len(strings.TrimSuffix(strings.TrimSuffix(t.text[:behind], "\n"), "\r"))
		if last.text && from == len(t.text) {
			return // The text would get the line break that it lacks.
		}
	}
	t.check(got, err, path, span{from, to, true})
}

// span is where an edit may change bytes, and whether it has to keep the comments there.
type span struct {
	from, to int
	comments bool
}

// check checks the result of an edit.
func (t trial) check(got []byte, err error, path Path, may span) {
	t.Helper()
	from, to := may.from, may.to
	if err != nil {
		t.Fatalf("%s of\n%q\nto %#v: %v", path, t.text, t.value, err)
	}
	result, after := string(got), t.text[to:]
	if !strings.HasPrefix(result, t.text[:from]) || !strings.HasSuffix(result, after) || len(result) < from+len(after) {
		t.Fatalf("%s of\n%q\nto %#v changes other bytes than\n%q:\n%q", path, t.text, t.value, t.text[from:to], result)
	}
	before, broken := parse([]byte(t.text))
	now, broken2 := parse(got)
	if want := with(before, path, t.value); broken != nil || broken2 != nil || !reflect.DeepEqual(now, want) {
		t.Fatalf("%s of\n%q\nto %#v makes\n%q:\n%#v, want %#v", path, t.text, t.value, result, now, want)
	}
	lost := slices.DeleteFunc(numbered.FindAllString(t.text, -1), func(comment string) bool { return strings.Contains(result, comment) })
	if may.comments && len(lost) > 0 {
		t.Fatalf("%s of\n%q\nto %#v loses %v:\n%q", path, t.text, t.value, lost, result)
	}
	again, err := Replace(got, path, "again")
	if value, _, _ := Get(again, path); err != nil || value != "again" {
		t.Fatalf("%s of\n%q\ncannot be set once more: %v\n%q", path, result, err, again)
	}
}

var numbered = regexp.MustCompile(`# c\d+\.`)

// with returns a value with a field set.
func with(in any, path Path, value any) any {
	if len(path) == 0 {
		return value
	}
	if i, isIndex := path[0].(int); isIndex {
		list, _ := in.([]any)
		list = append(slices.Clone(list), nil)
		list[i] = with(list[i], path[1:], value)
		return list[:max(len(list)-1, i+1)]
	}
	object, _ := in.(map[string]any)
	all := map[string]any{path[0].(string): with(object[path[0].(string)], path[1:], value)}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		if _, there := all[key]; !there {
			all[key] = object[key]
		}
	}
	return all
}

// deletes deletes the field.
func (t trial) deletes() {
	of := t.field
	got, err := Delete([]byte(t.text), of.path)
	if err != nil && (of.flow || of.only || !of.own || of.kept) {
		return
	}
	want := t.text[:of.first] + t.text[of.next:]
	short := want
	if of.next == len(t.text) && !strings.HasSuffix(t.text, "\n") {
		short = strings.TrimSuffix(strings.TrimSuffix(t.text[:of.first], "\n"), "\r")
	}
	if err != nil || string(got) != short && string(got) != want {
		t.Fatalf("deleting %s of\n%q\nmakes\n%q, %v; want\n%q", of.path, t.text, got, err, want)
	}
	if _, has, err := Get(got, of.path); err != nil || has && !isIndex(of.path) {
		t.Fatalf("%s is still in\n%q, %v", of.path, got, err)
	}
}

func isIndex(path Path) bool { _, is := path[len(path)-1].(int); return is }
