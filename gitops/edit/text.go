package edit

import (
	"bytes"
	"errors"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// text finds where the nodes of a file begin and end in its bytes. yaml.v3 knows only where they begin.
type text struct {
	data  []byte
	lines []int // The offset of the begin of each line.
	eol   string
}

// errLayout: the bytes are not what the node promises.
var errLayout = errors.New("the field is written in a way that cannot be edited; edit the file by hand")

func newText(data []byte) (text, error) {
	t := text{data: data, lines: []int{0}, eol: "\n"}
	if bytes.HasPrefix(data, []byte("\ufeff")) || bytes.ContainsAny(data, "\u0085\u2028\u2029") || bytes.Count(data, []byte("\r")) != bytes.Count(data, []byte("\r\n")) {
		return t, errors.New("the file has a byte order mark, or line breaks other than LF and CRLF; remove them")
	}
	for i, c := range data {
		if c == '\n' {
			t.lines = append(t.lines, i+1)
		}
	}
	if first := bytes.IndexByte(data, '\n'); first > 0 && data[first-1] == '\r' {
		t.eol = "\r\n"
	}
	return t, nil
}

// start returns the offset of a node.
func (t text) start(n *yaml.Node) (int, error) {
	if n.Line < 1 || n.Line > len(t.lines) {
		return 0, errLayout
	}
	at := t.lines[n.Line-1]
	for range n.Column - 1 {
		_, size := utf8.DecodeRune(t.data[at:])
		at += size
	}
	return at, nil
}

// end returns the offset behind the last byte of a node. An object or list ends where its last value ends.
func (t text) end(n *yaml.Node) (int, error) {
	at, err := t.start(n)
	if err != nil {
		return 0, err
	}
	for properties(n) && at < len(t.data) && (t.data[at] == '&' || t.data[at] == '!') {
		at += len(t.data[at:]) - len(bytes.TrimLeft(t.data[t.wordEnd(at):], " \t"))
	}
	switch {
	case n.Kind == yaml.AliasNode:
		return at + len("*") + len(n.Value), nil
	case n.Kind == yaml.ScalarNode:
		return t.scalarEnd(n, at)
	case len(n.Content) > 0:
		if at, err = t.lastEnd(n); err != nil || n.Style&yaml.FlowStyle == 0 {
			return at, err
		}
	default:
		at++ // Behind the bracket that opens.
	}
	return t.bracket(at)
}

// lastEnd returns the offset behind the last value of an object or list. An empty value ends at the colon or dash before it.
func (t text) lastEnd(n *yaml.Node) (int, error) {
	last, flow := n.Content[len(n.Content)-1], n.Style&yaml.FlowStyle != 0
	switch {
	case !empty(last):
		return t.end(last)
	case n.Kind == yaml.MappingNode:
		at, err := t.end(n.Content[len(n.Content)-2])
		if err != nil || flow {
			return at, err
		}
		return t.colon(at)
	case flow:
		return t.end(last)
	}
	at, err := t.dash(n, last)
	return at + 1, err
}

// bracket returns the offset behind the bracket that closes a flow collection, whose last value ends at an offset.
func (t text) bracket(at int) (int, error) {
	for ; at < len(t.data); at++ {
		switch c := t.data[at]; {
		case c == '}' || c == ']':
			return at + 1, nil
		case c == '#':
			at = t.lineEnd(at)
		case !strings.ContainsRune(" \t\r\n,:", rune(c)):
			return 0, errLayout
		}
	}
	return 0, errLayout
}

func (t text) scalarEnd(n *yaml.Node, at int) (int, error) {
	switch {
	case n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		return t.blockEnd(n, at), nil
	case n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0:
		return t.quoted(at)
	}
	return t.plainEnd(n.Value, at)
}

// plainEnd returns the offset behind a text without quotes. Between its lines, a line break stands for a space, and every further one for itself.
func (t text) plainEnd(value string, at int) (int, error) {
	for value != "" {
		words := value
		if end := strings.IndexAny(value, " \t\n"); end >= 0 {
			words = value[:end]
		}
		if !bytes.HasPrefix(t.data[at:], []byte(words)) {
			return 0, errLayout
		}
		value, at = value[len(words):], at+len(words)
		if value == "" {
			break
		}
		space := len(t.data[at:]) - len(bytes.TrimLeft(t.data[at:], " \t\r\n"))
		want := string(t.data[at : at+space])
		switch breaks := strings.Count(want, "\n"); breaks {
		case 0:
		case 1:
			want = " "
		default:
			want = strings.Repeat("\n", breaks-1)
		}
		if want == "" || !strings.HasPrefix(value, want) {
			return 0, errLayout
		}
		value, at = value[len(want):], at+space
	}
	return at, nil
}

// blockEnd returns the end of the last line of a text after | or >: all lines that are indented like its first, and blank ones between them. After |+ and >+, the
// blank lines behind it are part of the text.
func (t text) blockEnd(n *yaml.Node, at int) int {
	end, indent, more := t.lineEnd(at), -1, indented(n.Value)
	header, _, _ := bytes.Cut(t.data[at:end], []byte(" "))
	keeps := bytes.ContainsRune(header, '+')
	for next := t.nextLine(at); next < len(t.data); next = t.nextLine(next) {
		line := t.data[next:t.lineEnd(next)]
		spaces := len(line) - len(bytes.TrimLeft(line, " "))
		if spaces == len(line) {
			if keeps {
				end = t.lineEnd(next)
			}
			continue
		}
		if indent < 0 {
			indent = spaces - more
		}
		if more < 0 || spaces < indent {
			return end
		}
		end = t.lineEnd(next)
	}
	return end
}

// indented returns how many spaces the first line of a text begins with that holds more than spaces; -1 if there is none.
func indented(text string) int {
	for line := range strings.SplitSeq(text, "\n") {
		if words := strings.TrimLeft(line, " "); words != "" {
			return len(line) - len(words)
		}
	}
	return -1
}

// quoted returns the offset behind the quote that closes a text.
func (t text) quoted(at int) (int, error) {
	if at >= len(t.data) {
		return 0, errLayout
	}
	quote := t.data[at]
	for i := at + 1; i < len(t.data); i++ {
		switch {
		case quote == '"' && t.data[i] == '\\':
			i++
		case t.data[i] == quote && quote == '\'' && i+1 < len(t.data) && t.data[i+1] == quote:
			i++
		case t.data[i] == quote:
			return i + 1, nil
		}
	}
	return 0, errLayout
}

// colon returns the offset behind the colon that follows a key.
func (t text) colon(at int) (int, error) {
	for at < len(t.data) && (t.data[at] == ' ' || t.data[at] == '\t') {
		at++
	}
	if at >= len(t.data) || t.data[at] != ':' {
		return 0, errLayout
	}
	return at + 1, nil
}

// dash returns the offset of the dash of an item of a block list.
func (t text) dash(list, item *yaml.Node) (int, error) {
	for line := min(item.Line, len(t.lines)); line >= list.Line; line-- {
		at, err := t.start(&yaml.Node{Line: line, Column: list.Column})
		if err == nil && at < t.lineEnd(t.lines[line-1])+1 && at < len(t.data) && t.data[at] == '-' {
			return at, nil
		}
	}
	return 0, errLayout
}

// wordEnd returns the offset of the space or line break behind an offset.
func (t text) wordEnd(at int) int {
	if end := bytes.IndexAny(t.data[at:], " \t\r\n"); end >= 0 {
		return at + end
	}
	return len(t.data)
}

// properties reports whether an anchor or a tag stands before a value.
func properties(n *yaml.Node) bool { return n.Anchor != "" || n.Style&yaml.TaggedStyle != 0 }

// lineEnd returns the offset of the line break of the line of an offset, or of the end of the file.
func (t text) lineEnd(at int) int {
	end := bytes.IndexByte(t.data[at:], '\n')
	if end < 0 {
		return len(t.data)
	}
	if end += at; end > at && t.data[end-1] == '\r' {
		end--
	}
	return end
}

// lineStart returns the offset of the begin of the line of an offset.
func (t text) lineStart(at int) int { return bytes.LastIndexByte(t.data[:at], '\n') + 1 }

// nextLine returns the offset of the line behind the line of an offset.
func (t text) nextLine(at int) int {
	end := bytes.IndexByte(t.data[at:], '\n')
	if end < 0 {
		return len(t.data)
	}
	return at + end + 1
}

// empty reports whether a value is not written, as in "key:".
func empty(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.Value == "" && n.Style == 0 && n.Anchor == ""
}
