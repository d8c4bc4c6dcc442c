package index

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/limit"
	"github.com/kubeop/kubeop/delivery/yamlcheck"
)

// An index.yaml lists every version of every chart: tens of megabytes, of which one chart is wanted at a time. So it is
// taken apart while it arrives, line by line, and each chart's lines are kept on their own (see writer). Of these only what
// we need is parsed, version by version.

// indexEntry is one version in an index.yaml.
type indexEntry struct {
	Version string   `json:"version"          yaml:"version"`
	URLs    []string `json:"urls"             yaml:"urls"`
	Digest  string   `json:"digest,omitempty" yaml:"digest"`
}

const (
	// maxIndexLine bounds a line of an index.yaml, in bytes; the longest are descriptions and icons as data URLs.
	maxIndexLine = 4 * limit.MiB
	// maxIndexCharts and maxIndexVersions bound what an index can list, and one chart of it.
	maxIndexCharts   = 20_000
	maxIndexVersions = 20_000
)

// unreadable keeps the parser's words out of the message: they may quote the document.
func unreadable() error {
	return failure.New(failure.ErrInvalid, "the repository's index.yaml cannot be read: is this the URL of a Helm repository?")
}

// readIndexed parses a piece of an index.yaml.
func readIndexed(text []byte, into any) error {
	err := yamlcheck.Aliases(text)
	if errors.Is(err, yamlcheck.ErrTooLarge) {
		return failure.AliasesTooLarge("the repository's index.yaml")
	}
	if err == nil {
		err = yaml.Unmarshal(text, into)
	}
	if err != nil {
		return unreadable()
	}
	return nil
}

// first is the one URL of a version that is ever asked for; the list it stood in is let go.
func first(urls []string) []string {
	if len(urls) == 0 {
		return nil
	}
	return []string{urls[0]}
}

// errOtherLayout means that the lines are not laid out as Helm writes them.
var errOtherLayout = errors.New("another layout")

// takeApart writes the charts of an index.yaml one by one. One in JSON is read token by token; one that is laid out in
// another way than Helm's is parsed whole, if it is small.
func takeApart(index io.Reader, on *writer, doc int64) error {
	in := bufio.NewReaderSize(index, 64*limit.KiB)
	start, err := in.Peek(512)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if bytes.HasPrefix(bytes.TrimLeft(bytes.TrimPrefix(start, byteOrderMark), " \t\r\n"), []byte("{")) {
		return writeJSON(in, on)
	}
	// What was read is kept while it is little enough to be parsed whole.
	read := &limit.Beginning{Max: int(doc) + 1}
	err = writeLines(io.TeeReader(in, read), on)
	if !errors.Is(err, errOtherLayout) {
		return err
	}
	rest := io.MultiReader(bytes.NewReader(read.Bytes()), in)
	if int64(len(read.Bytes())) > doc {
		return failure.TooLarge("an index.yaml that is not laid out as Helm writes it", doc)
	}
	over := failure.TooLarge("an index.yaml that is not laid out as Helm writes it", doc)
	return writeWhole(limit.NewReader(rest, doc, over), on)
}

var byteOrderMark = []byte("\xef\xbb\xbf")

// writeWhole parses an index in one piece.
func writeWhole(index io.Reader, on *writer) error {
	text, err := io.ReadAll(index)
	if err != nil {
		return err
	}
	var whole struct {
		Entries map[string][]indexEntry `yaml:"entries"`
	}
	if len(text) == 0 {
		return unreadable()
	}
	if err := readIndexed(text, &whole); err != nil {
		return err
	}
	if err := on.clear(); err != nil {
		return err
	}
	for chart, entries := range whole.Entries {
		if err := on.begin(chart); err != nil {
			return err
		}
		for _, entry := range entries {
			if err := on.entry(entry); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeLines cuts the lines of each chart out:
//
//	entries:
//	  other: …
//	  chart:
//	  - version: 1.2.3
//
// YAML indents whatever belongs to a key deeper than the key, except the dashes of a list, so the chart's lines end
// where another line begins at its depth.
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

// cutter is where the lines of an index have got to.
type cutter struct {
	on    *writer
	stage int
	// depth of the charts' names, 0 before the first.
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

// outside waits for the line "entries:".
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

// chart begins the lines of a chart, whose versions have to begin on the next line.
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

// cutKey splits a line of YAML at the end of its key.
func cutKey(line string) (key, value string, ok bool) {
	if line == "" {
		return "", "", false
	}
	end := ":"
	if line[0] == '"' || line[0] == '\'' {
		end, line = line[:1]+":", line[1:]
	}
	key, value, ok = strings.Cut(line, end)
	if !ok || (value != "" && value[0] != ' ') {
		return "", "", false
	}
	return key, strings.TrimSpace(value), true
}
