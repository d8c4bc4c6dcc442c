package yamlcheck

import (
	"bytes"
	"regexp"
)

// MaxValues returns an upper bound of the number of mappings, lists and scalars in YAML or JSON text, without following aliases. Check it
// before a parser builds them, because each takes some hundred bytes. It counts the characters that can begin one. It leaves out block
// scalars, in which manifests contain files and programs, if a parser certainly reads them as such. So it is up to about three times too
// high, and never too low.
func MaxValues(text []byte) int64 {
	if all := weight(text) + perDocument; all < cheap {
		return all
	}
	return byLines(text)
}

// byLines counts as exactly as possible.
func byLines(text []byte) int64 {
	c := valueCount{sum: perDocument}
	for len(text) > 0 {
		line := text
		if i := bytes.IndexByte(text, '\n'); i >= 0 {
			line = text[:i+1]
		}
		text = text[len(line):]
		c.line(bytes.TrimRight(line, "\r\n"))
	}
	return c.sum
}

const (
	// cheap is a number of values below which an exact count is not needed.
	cheap = 10_000
	// perDocument counts the document and its content, if that is a scalar.
	perDocument = 3
)

// weight is how many values the characters of a text can begin.
func weight(text []byte) (sum int64) {
	for i, b := range text {
		switch b {
		case ':', '?', '{': // a mapping, a key and a value
			sum += 3
		case '[', ',':
			sum += 2
		case '-':
			if i+1 == len(text) || bytes.IndexByte([]byte(" \t\r\n"), text[i+1]) >= 0 || text[i+1] >= 0x80 {
				sum += 2
			}
		}
	}
	return sum
}

// valueCount counts line by line.
type valueCount struct {
	sum int64
	// unsure: a quoted text, or a list or mapping in brackets, may continue in the next line. Then everything counts until the next
	// document.
	unsure bool
	// within a block scalar, whose parent begins in the column parent.
	within bool
	parent int
}

func (c *valueCount) line(line []byte) {
	if rest, ok := documentMarker(line); ok {
		c.sum += perDocument + weight(rest)
		c.within, c.unsure = false, len(bytes.TrimSpace(rest)) > 0
		return
	}
	indent := len(line) - len(bytes.TrimLeft(line, " "))
	odd := otherBreak.Match(line)
	if c.within && !odd && (indent == len(line) || indent > c.parent) {
		return
	}
	c.within = false
	c.sum += weight(line)
	c.unsure = c.unsure || odd
	if !c.unsure {
		c.look(line[indent:], indent)
	}
}

// otherBreak are line breaks that do not end a line here, but do for a parser.
var otherBreak = regexp.MustCompile("\r|\u0085|\u2028|\u2029|\xc2\x85")

// documentMarker reports whether a document begins or ends with the line, and returns what else is on it.
func documentMarker(line []byte) (rest []byte, ok bool) {
	for _, marker := range []string{"---", "..."} {
		if after, found := bytes.CutPrefix(line, []byte(marker)); found && (len(after) == 0 || after[0] == ' ' || after[0] == '\t') {
			return after, true
		}
	}
	return nil, false
}

const (
	item = `(?:"[^"\\]*"|'[^']*'|[A-Za-z0-9_./=][^,:\[\]{}"'#]*)`
	pair = `[A-Za-z0-9_./]+: +` + item
)

var (
	mappingKey  = regexp.MustCompile(`^[A-Za-z0-9_./][A-Za-z0-9_./-]*:(?: +|$)`)
	blockScalar = regexp.MustCompile(`^[|>][+-]?(?: +#.*| *)$`)
	// wholeValue matches nothing, or a value in quotes or brackets that ends in its line.
	wholeValue = regexp.MustCompile(`^(?:#.*|(?:|"[^"\\]*"|'[^']*'|\[ *(?:` + item + `(?:, *` + item + `)*)? *\]|\{ *(?:` + pair + `(?:, *` + pair + `)*)? *\})(?: +#.*| *))$`)
	// plainValue matches a plain value, in which quotes and brackets are ordinary characters.
	plainValue = regexp.MustCompile(`^(?:[A-Za-z0-9_./\\(<=+~$;^]|-[^ \t])`)
	noPlain    = regexp.MustCompile(`:(?:[ \t]|$)`)
)

// look finds which scalar a line inside a block leaves open.
func (c *valueCount) look(rest []byte, column int) {
	begins := false
	for len(rest) > 1 && rest[0] == '-' && rest[1] == ' ' {
		begins, c.parent = true, column
		after := bytes.TrimLeft(rest[1:], " ")
		column += len(rest) - len(after)
		rest = after
	}
	if key := mappingKey.Find(rest); key != nil {
		begins, c.parent = true, column
		rest = rest[len(key):]
	}
	switch {
	case begins && blockScalar.Match(rest):
		c.within = true
	case string(rest) == "-", wholeValue.Match(rest), plainValue.Match(rest) && !noPlain.Match(rest):
	default:
		c.unsure = true
	}
}
