package tree

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/kubeop/kubeop/delivery/yamlcheck"
)

// maxFile is the most a file may hold, in bytes. An object beyond 1.5 MiB does not fit into etcd.
const maxFile = 1 << 20

// maxNodes is how many values a parser may have to build of a file, as yamlcheck.MaxValues counts: each takes some 200 bytes while it is read.
const maxNodes = 200_000

// maxFindings bounds what is said about one file; more does not help its author.
const maxFindings = 20

// document is one parsed YAML document that knows its lines.
type document struct {
	file     string
	root     *yaml.Node
	value    map[string]any
	findings []finding
	// size of the file in bytes.
	size int
	// faults are the fields the findings are about, as far as other findings may follow from them.
	faults []fault
}

// read parses the file at name. Findings tell whether it can be used: with any, value may be incomplete.
func (p *pass) read(name string) *document {
	d := &document{file: name}
	data, err := readSome(p.files, name)
	d.size = len(data)
	switch {
	case err != nil:
		d.findings = []finding{unread(name, err)}
	case len(data) > maxFile:
		d.add(0, "the file is larger than %d KiB", maxFile>>10)
	case yamlcheck.MaxValues(data) > maxNodes:
		d.add(0, "the file may hold more than %d mappings, lists and values: write some of it into files of the app's folder", maxNodes)
	default:
		d.parse(data)
	}
	return d
}

// readSome reads a little more than maxFile at most.
func readSome(files fs.FS, name string) ([]byte, error) {
	f, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxFile+1))
}

// parse fills the document from its text.
func (d *document) parse(data []byte) {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var n yaml.Node
		err := decoder.Decode(&n)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			d.broken(err, data)
			return
		}
		if empty(&n) {
			continue
		}
		if d.root != nil {
			d.add(n.Content[0].Line, "a second document begins here; each file holds exactly one")
			return
		}
		d.root = n.Content[0]
	}
	if d.root == nil {
		d.add(0, "the file is empty")
		return
	}
	if d.root.Kind != yaml.MappingNode {
		d.add(d.root.Line, "the file is not an object; it must hold fields such as \"kind: …\"")
		return
	}
	e := expansion{document: d}
	d.value, _ = e.expand(d.root, 0).(map[string]any)
}

// empty reports whether nothing is between two document markers, as after a trailing "---".
func empty(n *yaml.Node) bool {
	return len(n.Content) == 0 || (n.Content[0].Kind == yaml.ScalarNode && n.Content[0].ShortTag() == "!!null" &&
		n.Content[0].Value == "")
}

func (d *document) add(line int, format string, args ...any) {
	switch {
	case d.full():
	case len(d.findings) == maxFindings:
		d.findings = append(d.findings, finding{file: d.file, why: "there is more wrong with this file"})
	default:
		why := cut(printable(fmt.Sprintf(format, args...)))
		d.findings = append(d.findings, finding{file: d.file, line: line, why: why})
	}
}

// full reports that nothing more will be said about the file, so that nothing more needs to be looked for.
func (d *document) full() bool { return len(d.findings) > maxFindings }

// addAt adds a finding at the line of a field, or of the nearest field around it that is written.
func (d *document) addAt(field, format string, args ...any) {
	if !d.full() { // finding the line costs more than the finding
		d.add(d.line(field), format, args...)
	}
}

// line finds a field such as "spec.image.ports[0].name". Keys that hold dots themselves are found as the validators
// write them, "quota.requests.cpu" or "quota[requests.cpu]".
func (d *document) line(field string) int {
	if d.root == nil {
		return 0
	}
	n, line := d.root, d.root.Line
	for field != "" {
		at, value, rest := descend(n, field)
		if value == nil {
			return line
		}
		n, line, field = value, at, rest
	}
	return line
}

// descend follows the first step of field and returns its line, its value and the rest of the path.
func descend(n *yaml.Node, field string) (line int, value *yaml.Node, rest string) {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	switch n.Kind {
	case yaml.MappingNode:
		return descendInto(n, strings.TrimPrefix(field, "."))
	case yaml.SequenceNode:
		end := strings.IndexByte(field, ']')
		if end < 0 || field[0] != '[' {
			return 0, nil, ""
		}
		i, err := strconv.Atoi(field[1:end])
		if err != nil || i < 0 || i >= len(n.Content) {
			return 0, nil, ""
		}
		return n.Content[i].Line, n.Content[i], field[end+1:]
	}
	return 0, nil, ""
}

// descendInto picks the longest key that the field begins with.
func descendInto(n *yaml.Node, field string) (line int, value *yaml.Node, rest string) {
	longest := -1
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		after, ok := cutKey(field, key.Value)
		if ok && len(key.Value) > longest {
			longest, line, value, rest = len(key.Value), key.Line, n.Content[i+1], after
		}
	}
	return line, value, rest
}

func cutKey(field, key string) (rest string, ok bool) {
	if rest, ok = strings.CutPrefix(field, "["+key+"]"); ok {
		return rest, true
	}
	rest, ok = strings.CutPrefix(field, key)
	return rest, ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}
