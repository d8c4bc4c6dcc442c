package render

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/kubeop/kubeop/delivery/yamlcheck"
)

// Parse reads the manifests that Helm rendered: YAML documents with Lists expanded and empty documents left out. An
// error names the template where Helm wrote it into the document, else the line. As in Helm, the last of two equal keys
// of a mapping counts, and the same object may come twice (a hook and its twin).
func Parse(manifests []byte) ([]*unstructured.Unstructured, error) {
	found := objectSet{repeats: true}
	for _, doc := range documents(manifests) {
		place := doc.template
		if place == "" {
			place = fmt.Sprintf("line %d", doc.line)
		}
		value, err := decodeYAML(doc, yaml.YAMLToJSON)
		if err != nil {
			found.refuse(place, err)
			continue
		}
		found.add(place, value)
	}
	return found.result()
}

// document is one YAML document of a stream.
type document struct {
	line     int    // of the first line with content, counted from 1
	template string // the chart's template that made it, as Helm notes it in a comment
	data     []byte // from that line on
}

const templateComment = "# Source: "

// documents splits a stream at its document markers. A marker is one only in the first column, where neither a quoted
// nor a block scalar can hold it, so no parser is needed to find them. "..." ends a document too: a parser that stops
// there would silently lose what follows.
func documents(stream []byte) []document {
	stream = bytes.TrimPrefix(stream, []byte("\ufeff"))
	var docs []document
	var open document
	flush := func() {
		if open.line > 0 {
			docs = append(docs, open)
		}
		open = document{}
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
		open.take(number, content, start[:len(line)])
	}
	flush()
	return docs
}

// take adds a line. The leading lines without content are left out, but for the comment that names the template. A
// line that follows the first is always the next in memory, so the data grows in place.
func (d *document) take(number int, content, line []byte) {
	if d.line > 0 {
		d.data = d.data[:len(d.data)+len(line)]
		return
	}
	text := strings.TrimSpace(string(content))
	if name, ok := strings.CutPrefix(text, templateComment); ok {
		d.template = name
	}
	if text == "" || text[0] == '#' || content[0] == '%' {
		return
	}
	d.line, d.data = number, line
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

// decodeYAML reads one document the way kubectl does (YAML 1.1: yes and on are true). toJSON decides whether a key that
// is given twice is an error.
func decodeYAML(doc document, toJSON func([]byte) ([]byte, error)) (any, error) {
	if err := yamlcheck.Aliases(doc.data); err != nil {
		return nil, err
	}
	data, err := toJSON(doc.data)
	if err != nil {
		// Read again with the lines before it, so that the error's line is the file's.
		_, err = toJSON(append(bytes.Repeat([]byte("\n"), doc.line-1), doc.data...))
		return nil, err
	}
	var value any
	if err := utiljson.Unmarshal(data, &value); err != nil {
		return nil, err
	}
	return value, nil
}

// decodeJSON reads a JSON file, which holds one value.
func decodeJSON(data []byte) (any, error) {
	var value any
	repeated, err := kjson.UnmarshalStrict(data, &value)
	if err != nil {
		return nil, err
	}
	return value, errors.Join(repeated...)
}
