package yamlcheck

import (
	"bytes"
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// The YAML library reports what is wrong, and where, only in the text of its errors.
var (
	parserMessage = regexp.MustCompile(`yaml: (?:line (\d+): )?([^\n]*)`)
	unknownAnchor = regexp.MustCompile(`^unknown anchor '(.*)' referenced$`)
)

// countedFromZero are the messages of the library's grammar, which counts lines from 0; its scanner counts from 1.
// TestBrokenYAMLNamesTheLine of gitops/document verifies this for the version in go.mod.
var countedFromZero = map[string]bool{
	"did not find expected <document start>": true,
	"did not find expected node content":     true,
	"did not find expected '-' indicator":    true,
	"did not find expected key":              true,
	"did not find expected ',' or ']'":       true,
	"did not find expected ',' or '}'":       true,
}

// Position is where something is in a text.
type Position struct {
	// Line from 1; 0 if it is not known, or if the text as a whole is meant.
	Line int
	// Column from 1, in characters; 0 if it is not known.
	Column int
}

// In returns the position in a file as "file:line:column", without the parts that are not known.
func (p Position) In(file string) string {
	switch {
	case p.Line == 0:
		return file
	case p.Column == 0:
		return fmt.Sprintf("%s:%d", file, p.Line)
	}
	return fmt.Sprintf("%s:%d:%d", file, p.Line, p.Column)
}

// PositionOf returns the position of a parsed node.
func PositionOf(n *yaml.Node) Position { return Position{Line: n.Line, Column: n.Column} }

// Locate returns where in a text a parser's error is, and what is wrong there. ok is false for any other error. For wrong indentation it is
// the line that has it, and the text names the line to which it does not fit. The parser names no column, so it is known only for what
// is found again in the text: indentation, tabs, aliases without an anchor, and characters that YAML does not allow.
func Locate(data []byte, err error) (at Position, why string, ok bool) {
	m := parserMessage.FindStringSubmatch(err.Error())
	if m == nil {
		return Position{}, "", false
	}
	why = m[2]
	line, err := strconv.Atoi(m[1])
	switch {
	case err != nil:
		at = search(why, data)
	case countedFromZero[why]:
		at.Line = line + 1
	default:
		at.Line = line
	}
	if strings.Contains(why, "tab character") && len(data) <= maxSearched {
		at.Line = cmp.Or(firstRefused(data, why), at.Line) // The parser names the line in which the value begins.
	}
	if tab := tabIn(data, at.Line); strings.Contains(why, "tab character") || why == "found character that cannot start any token" && tab > 0 {
		why += ": indent by spaces instead of tabs"
		at.Column = tab
	}
	if wrong, explained, is := indentation(data, at.Line, why); is {
		return wrong, why + ": " + explained, true
	}
	// The parser finds something missing at the end of the file after the last line.
	if last := positionAt(data, len(bytes.TrimSuffix(data, []byte("\n")))).Line; at.Line > last {
		at = Position{Line: last}
	}
	return at, why, true
}

// search finds an error without a line. The library leaves it out for the first line, for an alias without an anchor, and for characters
// that YAML does not allow.
func search(message string, data []byte) Position {
	if m := unknownAnchor.FindStringSubmatch(message); m != nil {
		return positionAt(data, bytes.Index(data, []byte("*"+m[1])))
	}
	if strings.Contains(message, "UTF-8") || strings.Contains(message, "control character") {
		return positionAt(data, unreadable(data))
	}
	return Position{Line: 1}
}

// unreadable returns the offset of the first byte that is not text, or -1.
func unreadable(data []byte) int {
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		if (r == utf8.RuneError && size == 1) || (unicode.IsControl(r) && r != '\n' && r != '\r' && r != '\t') {
			return i
		}
		i += size
	}
	return -1
}

// textOf returns a line, from 1.
func textOf(data []byte, line int) []byte {
	lines := bytes.Split(data, []byte("\n"))
	return lines[min(max(line-1, 0), len(lines)-1)]
}

// tabIn returns the column of the first tab in a line, from 1; 0 if there is none.
func tabIn(data []byte, line int) int {
	text := textOf(data, line)
	return utf8.RuneCount(text[:1+bytes.IndexByte(text, '\t')])
}

// positionAt returns the position of the byte at an offset, and the first line for a negative offset.
func positionAt(data []byte, offset int) Position {
	if offset < 0 {
		return Position{Line: 1}
	}
	before := data[:offset]
	begin := bytes.LastIndexByte(before, '\n') + 1
	return Position{Line: 1 + bytes.Count(before, []byte("\n")), Column: 1 + utf8.RuneCount(before[begin:])}
}
