package fetch

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"go.yaml.in/yaml/v3"
)

// An index.yaml lists every version of every chart: tens of megabytes, of which one chart is wanted. So the lines of
// that chart are cut out and only they are parsed. An index in JSON is read token by token. What is laid out in any
// other way is parsed whole, if it is small.

// indexEntry is one version in an index.yaml.
type indexEntry struct {
	Version string   `json:"version" yaml:"version"`
	URLs    []string `json:"urls"    yaml:"urls"`
	Digest  string   `json:"digest"  yaml:"digest"`
}

func scanIndex(path, chart string, limits limits) ([]version, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading index.yaml: %w", err)
	}
	defer file.Close()
	entries, err := readIndex(file, chart, limits)
	if err != nil {
		return nil, err
	}
	versions := make([]version, 0, len(entries))
	for _, entry := range entries {
		if entry.Version != "" {
			versions = append(versions, version{Name: entry.Version, URLs: entry.URLs, Digest: entry.Digest})
		}
	}
	return versions, nil
}

func readIndex(file io.ReadSeeker, chart string, limits limits) ([]indexEntry, error) {
	first, err := firstByte(file)
	if err != nil {
		return nil, err
	}
	if first == '{' {
		return readJSON(file, chart)
	}
	entries, err := readBlock(file, chart, limits)
	if !errors.Is(err, errOtherLayout) {
		return entries, err
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return nil, fmt.Errorf("reading index.yaml: %w", err)
	}
	var whole struct {
		Entries map[string][]indexEntry `yaml:"entries"`
	}
	text, err := io.ReadAll(limit(file, "an index.yaml that is not laid out as Helm writes it", limits.indexDoc))
	if err != nil {
		return nil, fmt.Errorf("reading index.yaml: %w", err)
	}
	if err := yaml.Unmarshal(text, &whole); err != nil || len(text) == 0 {
		return nil, unreadable()
	}
	return whole.Entries[chart], nil
}

// unreadable keeps the parser's words out of the message: they may quote the document.
func unreadable() error {
	return fail(ErrInvalid, "the repository's index.yaml cannot be read: is this the URL of a Helm repository?")
}

func firstByte(file io.ReadSeeker) (byte, error) {
	start := make([]byte, 512)
	n, err := io.ReadFull(file, start)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return 0, fmt.Errorf("reading index.yaml: %w", err)
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return 0, fmt.Errorf("reading index.yaml: %w", err)
	}
	start = bytes.TrimLeft(bytes.TrimPrefix(start[:n], []byte("\xef\xbb\xbf")), " \t\r\n")
	if len(start) == 0 {
		return 0, nil
	}
	return start[0], nil
}

// readJSON walks to entries.<chart>.
func readJSON(from io.Reader, chart string) ([]indexEntry, error) {
	decoder := json.NewDecoder(bufio.NewReader(from))
	var entries []indexEntry
	for _, key := range []string{"entries", chart} {
		found, err := enter(decoder, key)
		if err != nil {
			return nil, unreadable()
		}
		if !found {
			return nil, nil
		}
	}
	if err := decoder.Decode(&entries); err != nil {
		return nil, unreadable()
	}
	return entries, nil
}

// enter opens an object and skips to the value of key.
func enter(decoder *json.Decoder, key string) (bool, error) {
	open, err := decoder.Token()
	if err != nil {
		return false, err
	}
	if open != json.Delim('{') {
		return false, errors.New("not an object")
	}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return false, err
		}
		if name == key {
			return true, nil
		}
		if err := skip(decoder); err != nil {
			return false, err
		}
	}
	return false, nil
}

// skip passes over one value without keeping it.
func skip(decoder *json.Decoder) error {
	depth := 0
	for {
		token, err := decoder.Token()
		if err != nil {
			return err
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return nil
		}
	}
}

// errOtherLayout means that the lines are not laid out as Helm writes them.
var errOtherLayout = errors.New("another layout")

// maxIndexLine bounds a line of an index.yaml, in bytes; the longest are descriptions and icons as data URLs.
const maxIndexLine = 4 * mebibyte

// readBlock finds the lines of the chart:
//
//	entries:
//	  other: …
//	  chart:
//	  - version: 1.2.3
//
// YAML indents whatever belongs to a key deeper than the key, except the dashes of a list, so the chart's lines end
// where another line begins at its depth.
func readBlock(from io.Reader, chart string, limits limits) ([]indexEntry, error) {
	lines := bufio.NewScanner(from)
	lines.Buffer(make([]byte, 64*kibibyte), maxIndexLine)
	b := block{chart: chart, max: limits.indexDoc}
	for lines.Scan() && !b.done {
		if err := b.line(lines.Text()); err != nil {
			return nil, err
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return nil, tooLarge("a line of the repository's index.yaml", maxIndexLine)
	}
	if lines.Err() != nil {
		return nil, fmt.Errorf("reading index.yaml: %w", lines.Err())
	}
	if !b.inEntries && !b.done {
		return nil, errOtherLayout
	}
	if b.text.Len() == 0 {
		return nil, nil
	}
	var found struct {
		Chart []indexEntry `yaml:"chart"`
	}
	if err := yaml.Unmarshal([]byte(b.text.String()), &found); err != nil {
		// An anchor from elsewhere, perhaps; parsed whole it may make sense.
		return nil, errOtherLayout
	}
	return found.Chart, nil
}

type block struct {
	chart     string
	max       int64
	depth     int
	inEntries bool
	inChart   bool
	done      bool
	text      strings.Builder
}

func (b *block) line(line string) error {
	body := strings.TrimLeft(line, " ")
	depth := len(line) - len(body)
	blank := strings.TrimSpace(body) == "" || (strings.HasPrefix(body, "#") && !b.inChart)
	if !b.inEntries {
		return b.start(line)
	}
	switch {
	case blank && !b.inChart:
		return nil
	case blank:
		return b.add(line)
	case depth == 0:
		b.done = true
		return nil
	case b.depth == 0:
		b.depth = depth
	}
	if depth < b.depth {
		return errOtherLayout
	}
	if depth == b.depth && !strings.HasPrefix(body, "-") {
		return b.key(body)
	}
	if b.inChart {
		return b.add(line)
	}
	return nil
}

// start waits for the line "entries:".
func (b *block) start(line string) error {
	rest, ok := strings.CutPrefix(strings.TrimPrefix(line, "\xef\xbb\xbf"), "entries:")
	if !ok {
		return nil
	}
	if rest = strings.TrimSpace(rest); rest != "" && !strings.HasPrefix(rest, "#") {
		return errOtherLayout
	}
	b.inEntries = true
	return nil
}

// key begins the lines of a chart.
func (b *block) key(body string) error {
	if b.inChart {
		b.done = true
		return nil
	}
	for _, written := range []string{b.chart, `"` + b.chart + `"`, "'" + b.chart + "'"} {
		if rest, ok := strings.CutPrefix(body, written+":"); ok && (rest == "" || strings.ContainsAny(rest[:1], " \r")) {
			b.inChart = true
			return b.add("chart:" + rest)
		}
	}
	return nil
}

func (b *block) add(line string) error {
	if int64(b.text.Len()+len(line)) > b.max {
		return tooLarge("the part of the index.yaml about this chart", b.max)
	}
	b.text.WriteString(line + "\n")
	return nil
}
