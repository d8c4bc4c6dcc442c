package edit

import (
	"bytes"
	"errors"
	"fmt"
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
	switch {
	case n.Anchor != "" || n.Style&yaml.TaggedStyle != 0 || n.Kind == yaml.AliasNode:
		return 0, fmt.Errorf("line %d: anchors, aliases and tags cannot be edited; edit the file by hand", n.Line)
	case n.Kind == yaml.ScalarNode:
		return t.scalarEnd(n, at)
	case len(n.Content) > 0:
		last := n.Content[len(n.Content)-1]
		if empty(last) && n.Kind == yaml.MappingNode {
			last = n.Content[len(n.Content)-2]
			if at, err = t.end(last); err == nil && n.Style&yaml.FlowStyle == 0 {
				at, err = t.colon(at)
			}
		} else if empty(last) && n.Style&yaml.FlowStyle == 0 {
			at, err = t.dash(n, last)
			at++
		} else {
			at, err = t.end(last)
		}
		if err != nil || n.Style&yaml.FlowStyle == 0 {
			return at, err
		}
	default:
		at++ // Behind the bracket that opens.
	}
	return t.bracket(at)
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
		return t.blockEnd(at), nil
	case n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0:
		return t.quoted(at)
	case !bytes.HasPrefix(t.data[at:], []byte(n.Value)):
		return 0, fmt.Errorf("line %d: texts of several lines cannot be edited; edit the file by hand", n.Line)
	}
	return at + len(n.Value), nil
}

// blockEnd returns the end of the last line of a text after | or >: all lines that are indented like its first, blank ones between them.
func (t text) blockEnd(at int) int {
	end, indent := t.lineEnd(at), 0
	for next := t.nextLine(at); next < len(t.data); next = t.nextLine(next) {
		line := t.data[next:t.lineEnd(next)]
		spaces := len(line) - len(bytes.TrimLeft(line, " "))
		switch {
		case spaces == len(line):
			continue
		case indent == 0:
			indent = spaces
		}
		if spaces < indent || spaces == 0 {
			return end
		}
		end = t.lineEnd(next)
	}
	return end
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
