package index

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/limit"
)

// writeLines extracts the lines of each chart:
//
//	entries:
//	  other: …
//	  chart:
//	  - version: 1.2.3
//
// YAML indents everything that belongs to a key deeper than the key, except the dashes of a list. So the chart's lines end where another
// line begins at the chart's depth.
func writeLines(index io.Reader, on *writer) error {
	lines := bufio.NewScanner(index)
	lines.Buffer(make([]byte, 64*limit.KiB), maxIndexLine)
	c := cutter{on: on}
	for lines.Scan() {
		if err := c.line(lines.Bytes()); err != nil {
			return err
		}
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return failure.TooLarge("a line of the repository's index.yaml", maxIndexLine)
	case err != nil:
		return err
	case c.stage == beforeEntries:
		return errOtherLayout
	}
	return nil
}

// cutter is the state of the extraction.
type cutter struct {
	on    *writer
	stage int
	// depth of the charts' names, 0 before the first one.
	depth int
}

const (
	beforeEntries = iota
	inEntries
	afterEntries
)

func (c *cutter) line(line []byte) error {
	if c.stage != inEntries {
		return c.outside(line)
	}
	body := bytes.TrimLeft(line, " ")
	depth := len(line) - len(body)
	switch {
	case len(bytes.TrimSpace(body)) == 0, body[0] == '#':
		return c.on.line(line)
	case depth == 0:
		c.stage = afterEntries
		return nil
	case c.depth == 0:
		c.depth = depth
	}
	switch {
	case depth < c.depth:
		return errOtherLayout
	case depth == c.depth && body[0] != '-':
		return c.chart(string(bytes.TrimSpace(body)))
	}
	return c.on.line(line)
}

// outside skips lines up to "entries:".
func (c *cutter) outside(line []byte) error {
	rest, ok := bytes.CutPrefix(bytes.TrimPrefix(line, byteOrderMark), []byte("entries:"))
	if !ok || c.stage == afterEntries {
		return nil
	}
	if rest = bytes.TrimSpace(rest); len(rest) > 0 && rest[0] != '#' {
		return errOtherLayout
	}
	c.stage = inEntries
	return nil
}

// chart starts the lines of a chart; its versions have to begin on the next line.
func (c *cutter) chart(line string) error {
	name, rest, ok := cutKey(line)
	if !ok {
		return errOtherLayout
	}
	if rest != "" && rest != "[]" && rest != "null" && !strings.HasPrefix(rest, "#") && !strings.HasPrefix(rest, "&") {
		return errOtherLayout
	}
	return c.on.begin(name)
}
