package edit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// place is where a value stands: in its object or list, or, if the file does not have it, where it would.
type place struct {
	parent *yaml.Node
	index  int // Of the value in the parent's content; -1 if it is not there.
	rest   Path
}

// find follows the path as far as the file has it.
func find(n *yaml.Node, field Path) (place, error) {
	for i, step := range field {
		at := place{parent: n, index: -1, rest: field[i:]}
		if n.Kind == yaml.AliasNode || n.Anchor != "" {
			return at, fmt.Errorf("line %d: an anchor or alias holds the field; edit the file by hand", n.Line)
		}
		at.index = indexOf(n, step)
		if at.index < 0 || i == len(field)-1 {
			return at, nil
		}
		next := n.Content[at.index]
		if len(next.Content) == 0 && next.Kind != yaml.AliasNode { // Null, {} or []: what follows replaces it as a whole.
			return at, nil
		}
		n = next
	}
	return place{}, errors.New("the path is empty")
}

// indexOf returns where the value of a key or index is in the content of a node, or -1.
func indexOf(n *yaml.Node, step any) int {
	switch step := step.(type) {
	case string:
		for i := 0; n.Kind == yaml.MappingNode && i < len(n.Content); i += 2 {
			if n.Content[i].Value == step {
				return i + 1
			}
		}
	case int:
		if n.Kind == yaml.SequenceNode && step < len(n.Content) {
			return step
		}
	}
	return -1
}

// build wraps a value in the objects and lists of a path.
func build(field Path, value any) any {
	for i := len(field) - 1; i >= 0; i-- {
		if key, ok := field[i].(string); ok {
			value = map[string]any{key: value}
		} else {
			value = []any{value}
		}
	}
	return value
}

func set(root *yaml.Node, t text, field Path, value any) (splice, error) {
	at, err := find(root, field)
	if err != nil {
		return splice{}, err
	}
	value = build(at.rest[1:], value)
	if at.index >= 0 {
		return replace(t, at, value)
	}
	return insert(t, at, value)
}

// replace overwrites a value in the text with another one.
func replace(t text, at place, value any) (splice, error) {
	old := at.parent.Content[at.index]
	flow := at.parent.Style&yaml.FlowStyle != 0
	start, end, err := replaceable(t, at)
	if err != nil {
		return splice{}, err
	}
	written, err := inline(value, old.Style, flow)
	if err != nil {
		return splice{}, err
	}
	if start == end || t.data[start-1] == ':' || t.data[start-1] == '-' && at.parent.Kind == yaml.SequenceNode {
		written = " " + written
	}
	if old.Kind != yaml.ScalarNode && (old.Style&yaml.FlowStyle == 0 || t.lineEnd(start) < end) {
		return splice{}, fmt.Errorf("line %d: an object or list of several lines cannot be replaced; set or delete its fields", old.Line)
	}
	comment := headerComment(t, old, start)
	if composite(value) && !flow && at.parent.Kind == yaml.MappingNode {
		s, err := replaceByBlock(t, start, end, value, column(at.parent)+2)
		s.text = comment + s.text
		return s, err
	}
	return splice{start, end, written + comment}, nil
}

// headerComment returns the comment behind | or >, with a space before it; "" if there is none. It is part of what is replaced.
func headerComment(t text, old *yaml.Node, start int) string {
	if old.Style&(yaml.LiteralStyle|yaml.FoldedStyle) == 0 {
		return ""
	}
	_, comment, found := bytes.Cut(t.data[start:t.lineEnd(start)], []byte("#"))
	if !found {
		return ""
	}
	return " #" + strings.TrimRight(string(comment), " \t\r")
}

// rewrite overwrites a value with another one, also an object or list.
func rewrite(t text, at place, value any) (splice, error) {
	old := at.parent.Content[at.index]
	start, end, err := replaceable(t, at)
	if err != nil {
		return splice{}, err
	}
	inObject, written := at.parent.Kind == yaml.MappingNode, ""
	if composite(value) && old.Style&yaml.FlowStyle == 0 {
		indent := column(old)
		if inObject {
			indent = column(at.parent) + 2
		}
		written, err = t.block(value, indent, end)
		if inObject {
			return splice{t.lineStart(start), t.lineEnd(end), written}, err
		}
		return splice{start, t.lineEnd(end), strings.TrimLeft(written, " ")}, err
	}
	if written, err = inline(value, 0, at.parent.Style&yaml.FlowStyle != 0); err != nil || old.Style&yaml.FlowStyle != 0 {
		return splice{start, end, written}, err
	}
	if !inObject {
		return splice{start, t.lineEnd(end), written}, nil
	}
	key, err := t.end(at.parent.Content[at.index-1])
	if err == nil {
		key, err = t.colon(key)
	}
	if err != nil {
		return splice{}, err
	}
	return splice{key, t.lineEnd(end), " " + written + string(t.data[key:t.lineEnd(key)])}, nil
}

// replaceByBlock writes an object or list in lines of its own below the key, behind the comment on the line of the key.
func replaceByBlock(t text, start, end int, value any, indent int) (splice, error) {
	line := t.lineEnd(end)
	block, err := t.block(value, indent, line)
	for line == end && start > 0 && t.data[start-1] == ' ' { // No space stays behind the colon.
		start--
	}
	return splice{start, line, strings.TrimRight(string(t.data[end:line]), " ") + t.eol + block}, err
}

// replaceable is valueRange for a value that another one may replace.
func replaceable(t text, at place) (start, end int, err error) {
	if old := at.parent.Content[at.index]; properties(old) || old.Kind == yaml.AliasNode {
		return 0, 0, fmt.Errorf("line %d: anchors, aliases and tags cannot be edited; edit the file by hand", old.Line)
	}
	return valueRange(t, at)
}

// valueRange returns where a value is written. It is empty, behind the colon or dash, for a value that is not written.
func valueRange(t text, at place) (start, end int, err error) {
	old := at.parent.Content[at.index]
	if !empty(old) {
		if start, err = t.start(old); err == nil {
			end, err = t.end(old)
		}
		return start, end, err
	}
	if at.parent.Kind == yaml.MappingNode {
		if end, err = t.end(at.parent.Content[at.index-1]); err == nil {
			end, err = t.colon(end)
		}
		return end, end, err
	}
	end, err = t.dash(at.parent, old)
	return end + 1, end + 1, err
}

// insert adds a field behind the last one of an object, or an item behind the last one of a list.
func insert(t text, at place, value any) (splice, error) {
	isObject := at.parent.Kind == yaml.MappingNode
	if isObject {
		value = map[string]any{at.rest[0].(string): value}
	} else {
		value = []any{value}
	}
	end, err := t.end(at.parent)
	if err != nil {
		return splice{}, err
	}
	if at.parent.Style&yaml.FlowStyle == 0 {
		line, indent := t.lineEnd(end), column(at.parent)
		if next := t.nextLine(end); t.commentsWithin(next, indent+1) > next { // They are about the last field.
			line = t.lineEnd(t.lineStart(t.commentsWithin(next, indent+1) - 1))
		}
		block, err := t.block(value, indent, line)
		return splice{line, line, t.eol + block}, err
	}
	written, err := inline(value, 0, true)
	if err != nil {
		return splice{}, err
	}
	written = written[1 : len(written)-1]
	if len(at.parent.Content) == 0 {
		return splice{end - 1, end - 1, written}, nil
	}
	if end, err = t.end(at.parent.Content[len(at.parent.Content)-1]); err != nil {
		return splice{}, err
	}
	return splice{end, end, ", " + written}, nil
}

// remove deletes the lines of a field or item.
func remove(root *yaml.Node, t text, field Path) (splice, error) {
	at, err := find(root, field)
	if err != nil {
		return splice{}, err
	}
	fields, first := len(at.parent.Content), at.index
	if at.parent.Kind == yaml.MappingNode {
		fields, first = fields/2, first-1
	}
	if at.parent.Style&yaml.FlowStyle != 0 {
		return splice{}, fmt.Errorf("line %d: fields between brackets cannot be deleted; edit the file by hand", at.parent.Line)
	}
	if fields == 1 {
		return splice{}, fmt.Errorf("line %d: it is the only one there; delete the field around it", at.parent.Line)
	}
	_, end, err := valueRange(t, at)
	if err != nil {
		return splice{}, err
	}
	start, err := t.start(at.parent.Content[first])
	if at.parent.Kind == yaml.SequenceNode {
		start, err = t.dash(at.parent, at.parent.Content[first])
	}
	if err != nil {
		return splice{}, err
	}
	line := t.lineStart(start)
	if before := t.data[line:start]; len(bytes.TrimLeft(before, " ")) > 0 {
		return splice{}, fmt.Errorf("line %d: it is on the line of the item that holds it; edit the file by hand", at.parent.Line)
	}
	next := t.nextLine(end)
	if value := at.parent.Content[at.index]; len(value.Content) > 0 && value.Style&yaml.FlowStyle == 0 {
		next = t.commentsWithin(next, max(column(value), start-line+1))
	}
	if next == len(t.data) && t.data[next-1] != '\n' { // The file ends without a line break: so does the result.
		if line = max(0, line-1); line > 0 && t.data[line-1] == '\r' {
			line--
		}
	}
	return splice{line, next, ""}, nil
}

// commentsWithin returns the offset behind the comments from an offset that are indented like the fields of an object: they are about what it holds.
func (t text) commentsWithin(from, indent int) int {
	end := from
	for at := from; at < len(t.data); at = t.nextLine(at) {
		line := t.data[at:t.lineEnd(at)]
		words := bytes.TrimLeft(line, " \t")
		switch {
		case len(words) == 0: // Blank lines belong to what follows.
		case words[0] == '#' && len(line)-len(words) >= indent:
			end = t.nextLine(at)
		default:
			return end
		}
	}
	return end
}

// column returns how far the fields or dashes of a collection are indented.
func column(n *yaml.Node) int {
	if n.Kind == yaml.MappingNode && len(n.Content) > 0 {
		return n.Content[0].Column - 1
	}
	return n.Column - 1
}

// block writes an object or list as lines that are indented, without the last line break. The line of an offset will be before what follows.
func (t text) block(value any, indent, at int) (string, error) {
	next := t.nextLine(at)
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(quoted(value, t.commentsWithin(next, indent+1) > next)); err != nil {
		return "", fmt.Errorf("writing the value: %w", err)
	}
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	for i, line := range lines {
		if line != "" {
			lines[i] = strings.Repeat(" ", indent) + line
		}
	}
	return strings.Join(lines, t.eol), nil
}

// quoted returns a value for the encoder in which some texts are marked to be quoted: those that the encoder would otherwise write in a form that depends
// on the text behind them, that cannot be read again, or that has bytes which a file must not have. With lines, texts of several lines are quoted, too.
func quoted(value any, lines bool) any {
	switch value := value.(type) {
	case string:
		if strings.Contains(value, "\n") && (lines || strings.HasSuffix(value, "\n\n") || strings.ContainsAny(value[:1], "\n \t")) || strings.ContainsFunc(value, unprintable) {
			return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value, Style: yaml.DoubleQuotedStyle}
		}
	case []any:
		list := make([]any, 0, len(value))
		for _, item := range value {
			list = append(list, quoted(item, lines))
		}
		return list
	case map[string]any:
		object := make(map[string]any, len(value))
		for key, field := range value {
			object[key] = quoted(field, lines)
		}
		return object
	}
	return value
}

// unprintable reports whether YAML does not have a character, or has it as a line break or byte order mark.
func unprintable(r rune) bool {
	return r >= 0x7f && r <= 0x9f || r == '\u2028' || r == '\u2029' || r == '\ufeff' || r == '\ufffe' || r == '\uffff'
}

// inline writes a value on one line. A text keeps the quotes of the one before it.
func inline(value any, style yaml.Style, flow bool) (string, error) {
	words, isText := value.(string)
	printable := isText && !strings.ContainsFunc(words, func(r rune) bool { return r < ' ' || unprintable(r) })
	if printable && style&yaml.SingleQuotedStyle != 0 {
		return "'" + strings.ReplaceAll(words, "'", "''") + "'", nil
	}
	if isText && (!printable || flow || style&yaml.DoubleQuotedStyle != 0) || composite(value) {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		if err := e.Encode(value); err != nil {
			return "", fmt.Errorf("writing the value: %w", err)
		}
		return escaped(strings.TrimSuffix(b.String(), "\n")), nil
	}
	data, err := yaml.Marshal(value)
	if err != nil {
		return "", fmt.Errorf("writing the value: %w", err)
	}
	return strings.TrimSuffix(string(data), "\n"), nil
}

// escaped returns JSON in which the characters are escaped that YAML does not have.
func escaped(text string) string {
	if !strings.ContainsFunc(text, unprintable) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if unprintable(r) {
			fmt.Fprintf(&b, "\\u%04x", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// composite reports whether a value is an object or list with content.
func composite(value any) bool {
	object, isObject := value.(map[string]any)
	list, isList := value.([]any)
	return isObject && len(object) > 0 || isList && len(list) > 0
}
