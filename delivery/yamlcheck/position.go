package yamlcheck

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
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

// Position returns the line of a parser's error in a text, from 1, and what is wrong there. ok is false for any other error. For wrong
// indentation it is the line that has it, and the text names the line to which it does not fit.
func Position(data []byte, err error) (line int, why string, ok bool) {
	m := parserMessage.FindStringSubmatch(err.Error())
	if m == nil {
		return 0, "", false
	}
	why = m[2]
	line, err = strconv.Atoi(m[1])
	switch {
	case err != nil:
		line = search(why, data)
	case countedFromZero[why]:
		line++
	}
	if strings.Contains(why, "tab character") || why == "found character that cannot start any token" && bytes.Contains(textOf(data, line), []byte("\t")) {
		why += ": indent by spaces instead of tabs"
	}
	if at, explained, is := indentation(data, line, why); is {
		return at, why + ": " + explained, true
	}
	// The parser finds something missing at the end of the file after the last line.
	return min(line, lineAt(data, len(bytes.TrimSuffix(data, []byte("\n"))))), why, true
}

// search finds the line of an error without one. The library leaves it out for the first line, for an alias without an anchor, and for
// characters that YAML does not allow.
func search(message string, data []byte) int {
	if m := unknownAnchor.FindStringSubmatch(message); m != nil {
		return lineAt(data, bytes.Index(data, []byte("*"+m[1])))
	}
	if strings.Contains(message, "UTF-8") || strings.Contains(message, "control character") {
		return lineAt(data, unreadable(data))
	}
	return 1
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

func lineAt(data []byte, offset int) int {
	return 1 + bytes.Count(data[:max(offset, 0)], []byte("\n"))
}
