package yamlcheck

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	sigsyaml "sigs.k8s.io/yaml"
)

// Text is one YAML document of a stream, before it is parsed.
type Text struct {
	// Line is the number of the first line with content, from 1.
	Line int
	// Data is the text from that line on.
	Data []byte
}

// Split splits a stream at its document markers. A marker counts only in the first column, where neither a quoted nor a block scalar can
// contain it, so no parser is needed. "..." ends a document too: a parser that stops there would silently lose the rest.
func Split(stream []byte) []Text {
	stream = bytes.TrimPrefix(stream, []byte("\ufeff"))
	var texts []Text
	var open Text
	flush := func() {
		if open.Line > 0 {
			texts = append(texts, open)
		}
		open = Text{}
	}
	for number, rest := 1, stream; len(rest) > 0; number++ {
		line := rest[:lineEnd(rest)]
		start := rest
		rest = rest[len(line):]
		content := line
		switch {
		case isMarker(line, "---"):
			flush()
			content = line[3:]
		case isMarker(line, "..."):
			flush()
			continue
		}
		open.add(number, content, start[:len(line)])
	}
	flush()
	return texts
}

// add adds a line. Leading lines without content are left out. Each later line directly follows the one before it in memory, so the data
// grows in place.
func (d *Text) add(number int, content, line []byte) {
	if d.Line > 0 {
		d.Data = d.Data[:len(d.Data)+len(line)]
		return
	}
	text := strings.TrimSpace(string(content))
	if text == "" || text[0] == '#' || content[0] == '%' {
		return
	}
	d.Line, d.Data = number, line
}

func lineEnd(rest []byte) int {
	if i := bytes.IndexByte(rest, '\n'); i >= 0 {
		return i + 1
	}
	return len(rest)
}

func isMarker(line []byte, marker string) bool {
	rest, ok := bytes.CutPrefix(line, []byte(marker))
	return ok && (len(rest) == 0 || strings.IndexByte(" \t\r\n", rest[0]) >= 0)
}

// Broken is the error of a text that is not YAML: what is wrong, and where.
type Broken struct {
	Position
	Why string
}

func (e *Broken) Error() string { return fmt.Sprintf("line %d: broken YAML: %s", e.Line, e.Why) }

// explain parses a refused document again with the lines before it, so that the error names the line of the stream.
func (d Text) explain(err error) error {
	text := append(bytes.Repeat([]byte("\n"), d.Line-1), d.Data...)
	for _, err := range Documents(text) {
		if err == nil {
			continue
		}
		if at, why, ok := Locate(text, err); ok {
			return &Broken{Position: at, Why: why}
		}
	}
	if _, again := sigsyaml.YAMLToJSONStrict(text); again != nil {
		return again
	}
	return err
}

// Decode decodes a document the way kubectl does (YAML 1.1: yes and on are true), into maps, lists, strings, booleans, int64, float64 and
// nil. A duplicate key is an error. Aliases that expand to too much are an ErrTooLarge, and text that is not YAML is a Broken. Lines in
// errors are those of the stream.
func (d Text) Decode() (any, error) {
	switch err := Aliases(d.Data); {
	case errors.Is(err, ErrTooLarge):
		return nil, err
	case err != nil: // Its aliases are not counted, so the other parser must not build it.
		return nil, d.explain(err)
	}
	data, err := sigsyaml.YAMLToJSONStrict(d.Data)
	if err != nil {
		return nil, d.explain(err)
	}
	var value any
	if err := utiljson.Unmarshal(data, &value); err != nil {
		return nil, err
	}
	return value, nil
}
