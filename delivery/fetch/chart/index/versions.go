package index

import (
	"bufio"
	"bytes"
	"fmt"
	"io"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/limit"
)

// readVersions parses the lines of one chart, a list, version by version and only the needed keys: an entry repeats a whole Chart.yaml, and
// a YAML parser needs many times the memory of its text.
func readVersions(part io.Reader, doc int64) ([]Version, error) {
	lines := bufio.NewScanner(part)
	lines.Buffer(make([]byte, 16*limit.KiB), maxIndexLine+limit.KiB)
	l := &list{max: doc}
	for lines.Scan() {
		if err := l.line(bytes.TrimSuffix(lines.Bytes(), []byte("\r"))); err != nil {
			return nil, err
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("reading the kept index.yaml: %w", err)
	}
	if err := l.flush(); err != nil {
		return nil, err
	}
	return l.versions, nil
}

// list is the state of reading the lines of one chart.
type list struct {
	max      int64
	versions []Version
	// begun is set inside an item. depth is the depth of its dash; keys is the depth of its keys, or unknownDepth before the first.
	begun       bool
	depth, keys int
	// wanted is set in the lines of a needed key; text has all such lines of the item.
	wanted bool
	text   bytes.Buffer
}

const unknownDepth = -1

func (l *list) line(line []byte) error {
	body := bytes.TrimLeft(line, " ")
	depth := len(line) - len(body)
	switch {
	case len(body) == 0, body[0] == '#':
		return nil
	case !l.begun && !isDash(body):
		return unreadable()
	case isDash(body) && (!l.begun || depth == l.depth):
		return l.item(body, depth)
	case depth <= l.depth:
		return unreadable()
	case l.keys == unknownDepth:
		l.keys = depth
	}
	if depth < l.keys {
		return unreadable()
	}
	if depth == l.keys && body[0] != '-' {
		l.wanted = wantedKey(body)
	}
	return l.keep(line)
}

// isDash reports whether a line begins an item of a list.
func isDash(body []byte) bool {
	return body[0] == '-' && (len(body) == 1 || body[1] == ' ')
}

// item begins a version. Its first key may follow the dash.
func (l *list) item(body []byte, depth int) error {
	if err := l.flush(); err != nil {
		return err
	}
	l.begun, l.depth, l.keys, l.wanted = true, depth, unknownDepth, false
	rest := bytes.TrimLeft(body[1:], " ")
	if len(rest) == 0 || rest[0] == '#' {
		return nil
	}
	l.keys = depth + len(body) - len(rest)
	l.wanted = wantedKey(rest)
	return l.keep(append(bytes.Repeat([]byte(" "), l.keys), rest...))
}

// wantedKey reports whether a line begins with a key of an indexEntry. An entry in braces is read as a whole.
func wantedKey(body []byte) bool {
	key, _, ok := cutKey(string(body[:min(len(body), 16)]))
	return body[0] == '{' || (ok && (key == "version" || key == "urls" || key == "digest"))
}

func (l *list) keep(line []byte) error {
	if !l.wanted {
		return nil
	}
	if int64(l.text.Len()+len(line)) > l.max {
		return failure.TooLarge("a version in the repository's index.yaml", l.max)
	}
	l.text.Write(line[min(l.keys, len(line)):])
	l.text.WriteByte('\n')
	return nil
}

// flush parses the item.
func (l *list) flush() error {
	var entry indexEntry
	if err := readIndexed(l.text.Bytes(), &entry); err != nil {
		return err
	}
	l.text.Reset()
	if entry.Version == "" {
		return nil
	}
	if len(l.versions) == maxIndexVersions {
		return failure.TooMany("the number of versions of this chart", maxIndexVersions)
	}
	l.versions = append(l.versions, Version{Name: entry.Version, URLs: first(entry.URLs), Digest: entry.Digest})
	return nil
}
