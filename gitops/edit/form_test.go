package edit

import (
	"fmt"
	"slices"
	"strings"
)

// forms writes a YAML file in the forms that the choices pick, and notes where each of its fields is. So a test knows without a parser which bytes an edit may change.
type forms struct {
	choices  []byte
	text     strings.Builder
	eol      string
	fields   []*form
	names    int
	comments int
	keeps    bool // The last value holds the blank lines that follow it.
}

// form is a field as it is written.
type form struct {
	path  Path
	value any
	// colon is the offset behind the colon or dash; start and end are those of the value, and first and next of the lines of the field.
	colon, start, end, first, next int
	// own: the field begins on a line of its own. only: there is no other beside it. flow: it is between brackets. lines: it is an object or list of several lines.
	// kept: the text before it holds all blank lines that follow it.
	own, only, flow, lines, kept bool
	// isObject, isList: what it holds, which is between brackets if it has braces. text: it is a text of lines behind | or >.
	isObject, isList, braces, text bool
	// strange: it has an anchor or a tag.
	strange bool
}

// newForms returns the text of a file and its fields. The first one is the object of the file.
func newForms(choices []byte) (text string, fields []*form) {
	f := &forms{choices: choices, eol: "\n"}
	if f.pick(4) == 1 {
		f.eol = "\r\n"
	}
	f.write([]string{"", "# The shop.\n", "---\n", "# 1\n--- # 2\n", "\n\n"}[f.pick(5)])
	root := &form{lines: true, isObject: true, start: f.text.Len()}
	f.fields = append(f.fields, root)
	f.object(root, []string{"", "", "", " "}[f.pick(4)], false, 3)
	last := f.fields[len(f.fields)-1]
	root.end = f.last(root).end
	f.write([]string{"", "", "# End.\n", "---\n", "...\n"}[f.pick(5)])
	text = f.text.String()
	if f.pick(4) == 1 && !f.keeps {
		text = strings.TrimSuffix(text, f.eol)
		if last.text {
			last.value = unknown{} // Its last line has no line break now.
		}
	}
	for _, field := range f.fields {
		field.next = min(field.next, len(text))
	}
	return text, f.fields
}

func (f *forms) pick(n int) int {
	if len(f.choices) == 0 {
		return 0
	}
	c := int(f.choices[0])
	f.choices = f.choices[1:]
	return c % n
}

func (f *forms) write(text string) { f.text.WriteString(strings.ReplaceAll(text, "\n", f.eol)) }

func (f *forms) comment() string {
	f.comments++
	return fmt.Sprintf("# c%d.", f.comments)
}

// last is the last field of an object or list.
func (f *forms) last(of *form) (last *form) {
	for _, field := range f.fields {
		if len(field.path) == len(of.path)+1 && slices.Equal(field.path[:len(of.path)], of.path) {
			last = field
		}
	}
	return last
}

// field begins one that is below another.
func (f *forms) field(of *form, step any, only bool) *form {
	field := &form{path: append(slices.Clone(of.path), step), only: only, flow: of.braces}
	f.fields = append(f.fields, field)
	return field
}

// line begins a field on a line of its own, or behind a dash.
func (f *forms) line(field *form, indent string, own bool) {
	if field.own = own; own {
		blank := "\n"
		if f.keeps {
			blank = ""
		}
		f.write([]string{"", "", "", blank, indent + f.comment() + "\n", blank + f.comment() + "\n"}[f.pick(6)])
	}
	field.kept, f.keeps, field.first = f.keeps, false, f.text.Len()
	if own {
		f.write(indent)
	}
}

// name returns a key that is not there yet, and how it is written.
func (f *forms) name() (name, written string) {
	f.names++
	name = fmt.Sprintf("%s%d", []string{"a", "requests.cpu/x", "größe ✓", "a b", "7"}[f.pick(5)], f.names)
	return name, []string{name, name, `"` + name + `"`, "'" + name + "'", name + " "}[f.pick(5)]
}

func (f *forms) object(of *form, indent string, inline bool, depth int) {
	many := 1 + f.pick(3)
	for i := range many {
		name, written := f.name()
		field := f.field(of, name, many == 1)
		f.line(field, indent, !inline || i > 0)
		f.write(written + ":")
		f.value(field, indent, depth, false)
	}
	if f.pick(5) == 1 {
		f.write(indent + f.comment() + "\n")
	}
}

func (f *forms) list(of *form, indent string, inline bool, depth int) {
	many := 1 + f.pick(3)
	for i := range many {
		field := f.field(of, i, many == 1)
		f.line(field, indent, !inline || i > 0)
		f.write("-")
		f.value(field, indent, depth, true)
	}
}

// value writes what follows a colon or dash, to the end of its last line.
func (f *forms) value(field *form, indent string, depth int, item bool) {
	field.colon = f.text.Len()
	kinds := 13
	if depth == 0 {
		kinds = 10
	}
	after := []string{"", "", " " + f.comment(), "  "}[f.pick(4)] + "\n"
	switch f.pick(kinds) {
	case 0, 1, 2:
		f.write([]string{" ", "  ", map[bool]string{true: " ", false: "\t"}[item]}[f.pick(3)]) // No tab may follow a dash.
		f.scalar(field, scalars[f.pick(len(scalars))])
	case 3:
		field.start, field.end = field.colon, field.colon
	case 4:
		f.severalLines(field, indent)
	case 5, 6:
		f.blockText(field, indent)
		after = ""
	case 7:
		f.write(" ")
		f.brackets(field, indent, 2)
	case 8:
		f.write([]string{"", " " + f.comment()}[f.pick(2)] + "\n" + indent + "  ")
		f.scalar(field, scalars[f.pick(len(scalars))])
	case 9:
		f.write(" ")
		f.scalar(field, []scalar{{fmt.Sprintf("&x%d 1", len(f.fields)), int64(1)}, {"!!str 1", "1"}, {fmt.Sprintf("&x%d !!str", len(f.fields)), ""}, {fmt.Sprintf("!!seq &x%d []", len(f.fields)), []any{}}}[f.pick(4)])
		field.strange = true
	default:
		f.collection(field, indent, depth, item)
		after = ""
	}
	f.write(after)
	field.next = f.text.Len()
}

// collection writes an object or list of lines.
func (f *forms) collection(field *form, indent string, depth int, item bool) {
	below, sameLine := indent+[]string{"  ", " ", "    "}[f.pick(3)], item && f.pick(4) > 0
	field.isList = f.pick(2) == 1
	field.isObject, field.lines, field.value = !field.isList, true, unknown{}
	if sameLine {
		f.write(" ")
		below = indent + "  "
	} else {
		f.write([]string{"", " " + f.comment(), " "}[f.pick(3)] + "\n")
		if field.isList && !item && f.pick(2) == 1 {
			below = indent
		}
	}
	field.start = f.text.Len()
	if field.isList {
		f.list(field, below, sameLine, depth-1)
	} else {
		f.object(field, below, sameLine, depth-1)
	}
	field.end = f.last(field).end
}

// scalar is how a value of one line is written, and what it is.
type scalar struct {
	written string
	value   any
}

// unknown stands for a value that the test does not know without a parser.
type unknown struct{}

var scalars = []scalar{
	{"text", "text"}, {"two words", "two words"}, {"a#b", "a#b"}, {"größe ✓ 🎉", "größe ✓ 🎉"}, {"-1", int64(-1)}, {"0x10", int64(16)}, {"1.5", 1.5}, {"true", true}, {"null", nil}, {"~", nil},
	{"'it''s'", "it's"}, {`"q\"x\u00e9"`, `q"xé`}, {"''", ""}, {`""`, ""}, {`"ü # no comment"`, "ü # no comment"}, {"'a: b'", "a: b"}, {"http://x/?y=1&z", "http://x/?y=1&z"}, {"[]", []any{}},
	{"{}", map[string]any{}}, {"{ }", map[string]any{}}, {"\"tab\there\"", "tab\there"}, {"a-b:c", "a-b:c"}, {`"\\"`, `\`}, {"2026-03-01", "2026-03-01"},
}

func (f *forms) scalar(field *form, of scalar) {
	field.start, field.value = f.text.Len(), of.value
	f.write(of.written)
	field.end, field.isObject, field.isList = f.text.Len(), of.written[0] == '{', of.written[0] == '['
	field.braces = field.isObject || field.isList
}

// severalLines writes a text that YAML folds.
func (f *forms) severalLines(field *form, indent string) {
	below := "\n" + indent + "   "
	f.write(" ")
	f.scalar(field, []scalar{
		{`"one` + below + `two"`, "one two"}, {"'one\n" + below + "two # no comment'", "one\ntwo # no comment"}, {"one" + below + "two", "one two"}, {`"one \` + below + `two"`, "one two"},
		{"one" + below + "\t\n" + below + "  two", "one\n\ntwo"},
	}[f.pick(5)])
}

// blockText writes a text behind | or >.
func (f *forms) blockText(field *form, indent string) {
	sign, chomp, below := []string{"|", ">"}[f.pick(2)], []string{"", "-", "+"}[f.pick(3)], []string{"  ", " ", "    "}[f.pick(3)]
	lines := [][]string{{}, {"one"}, {"one", "", "# two"}, {"one", "  two: x", "three"}, {"", "one"}, {"  one", "two"}}[f.pick(6)]
	if len(lines) == 2 || f.pick(4) == 1 {
		sign += fmt.Sprint(len(below))
	}
	f.write(" ")
	field.start, field.text, f.keeps = f.text.Len(), true, chomp == "+"
	f.write(sign + chomp + []string{"", " " + f.comment()}[f.pick(2)])
	for _, line := range lines {
		if line != "" {
			line = indent + below + line
		}
		f.write("\n" + line)
	}
	value := strings.Join(lines, "\n")
	if chomp != "-" && len(lines) > 0 {
		value += "\n"
	}
	if f.keeps && f.pick(2) == 1 {
		f.write("\n")
		value += "\n"
	}
	field.end = f.text.Len()
	if field.value = value; sign[0] == '>' {
		field.value = unknown{}
	}
	f.write("\n")
}

// brackets writes an object or list between brackets.
func (f *forms) brackets(of *form, indent string, depth int) {
	of.isList, of.braces, of.start, of.value = f.pick(2) == 0, true, f.text.Len(), unknown{}
	of.isObject = !of.isList
	open, closing, many := "{", "}", 1+f.pick(3)
	if of.isList {
		open, closing = "[", "]"
	}
	f.write(open + []string{"", " ", "\n" + indent + "   "}[f.pick(3)])
	for i := range many {
		field := f.field(of, i, many == 1)
		if of.isObject {
			name, written := f.name()
			field.path[len(of.path)] = name
			f.write(strings.TrimRight(written, " ") + ":")
			field.colon = f.text.Len()
			f.write(" ")
		}
		if depth > 0 && f.pick(4) == 1 {
			f.brackets(field, indent, depth-1)
		} else {
			f.scalar(field, []scalar{{"x", "x"}, {"'y, z'", "y, z"}, {`"]"`, "]"}, {"ü", "ü"}, {"8", int64(8)}, {"{}", map[string]any{}}}[f.pick(6)])
		}
		if i < many-1 || f.pick(4) == 1 {
			f.write(",")
		}
		f.write([]string{" ", " ", "\n" + indent + "   ", " " + f.comment() + "\n" + indent + "   "}[f.pick(4)])
	}
	f.write(closing)
	of.end = f.text.Len()
	of.lines = strings.Contains(f.text.String()[of.start:], "\n")
}
