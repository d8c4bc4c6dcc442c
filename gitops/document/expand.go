package document

import (
	"math"

	"go.yaml.in/yaml/v3"

	"github.com/kubeop/kubeop/delivery/yamlcheck"
	"github.com/kubeop/kubeop/gitops/code"
)

// These limits of an expanded document stop alias bombs.
const (
	maxDepth  = 64
	maxValues = 100_000
	maxText   = MaxSize
	// maxItems is the most items in one list, because the API server's check for duplicates compares every two items.
	maxItems = 2000
)

// expansion converts YAML nodes to JSON values. A YAML value that JSON does not have is an error, because the API server would not see what
// the author wrote.
type expansion struct {
	*Document
	values, text int
	stopped      bool
}

// expand returns the value of a node as map[string]any, []any, string, bool, int64, float64 or nil.
func (e *expansion) expand(n *yaml.Node, depth int) any {
	at := yamlcheck.PositionOf(n)
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if e.exhausted(n, at, depth) {
		return nil
	}
	switch {
	case n.Kind == yaml.MappingNode && n.ShortTag() == "!!map":
		return e.mapping(n, depth)
	case n.Kind == yaml.SequenceNode && n.ShortTag() == "!!seq":
		list := make([]any, 0, len(n.Content))
		for _, item := range n.Content {
			list = append(list, e.expand(item, depth+1))
		}
		return list
	case n.Kind == yaml.ScalarNode:
		return e.scalar(n)
	}
	e.Add(code.UnsupportedYAML, at, "the tag %s is not supported", n.ShortTag())
	return nil
}

// exhausted counts a node. It stops the expansion with one finding when a limit is exceeded. The limit of the depth also stops an alias
// that contains itself.
func (e *expansion) exhausted(n *yaml.Node, at yamlcheck.Position, depth int) bool {
	e.values++
	e.text += len(n.Value)
	if e.stopped {
		return true
	}
	switch {
	case depth > maxDepth:
		e.Add(code.FileTooLarge, at, "the document is nested deeper than %d levels", maxDepth)
	case e.values > maxValues:
		e.Add(code.FileTooLarge, at, "the document holds more than %d values, aliases followed", maxValues)
	case n.Kind == yaml.SequenceNode && len(n.Content) > maxItems:
		e.Add(code.FileTooLarge, at, "the list holds more than %d items", maxItems)
	case e.text > maxText:
		e.Add(code.FileTooLarge, at, "the document holds more than %d KiB of text, aliases followed", maxText>>10)
	default:
		return false
	}
	e.stopped = true
	return true
}

func (e *expansion) mapping(n *yaml.Node, depth int) map[string]any {
	object := make(map[string]any, len(n.Content)/2)
	first := make(map[string]int, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content) && !e.stopped && e.text <= maxText; i += 2 {
		key := n.Content[i]
		name, ok := e.key(key)
		if !ok {
			continue
		}
		e.text += len(name) // Duplicate keys count, too: looking them up costs as much.
		if line, again := first[name]; again {
			e.Add(code.DuplicateKey, yamlcheck.PositionOf(key), "%q is written a second time; the first is in line %d: keep one", name, line)
			continue
		}
		first[name] = key.Line
		object[name] = e.expand(n.Content[i+1], depth+1)
	}
	return object
}

// key converts a key to a JSON key: numbers and booleans become text, as in kubectl.
func (e *expansion) key(n *yaml.Node) (string, bool) {
	at := yamlcheck.PositionOf(n)
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Kind != yaml.ScalarNode {
		e.Add(code.UnsupportedYAML, at, "a key must be text")
		return "", false
	}
	switch n.ShortTag() {
	case "!!str", "!!int", "!!float", "!!timestamp", "!!bool":
		return n.Value, true
	case "!!merge":
		e.Add(code.UnsupportedYAML, at, "merge keys (<<) are not supported; write the fields out")
	default:
		e.Add(code.UnsupportedYAML, at, "a key must be text, not %s", n.ShortTag())
	}
	return "", false
}

func (e *expansion) scalar(n *yaml.Node) any {
	switch n.ShortTag() {
	case "!!null":
		return nil
	case "!!str", "!!timestamp":
		return n.Value
	case "!!bool":
		var b bool
		if n.Decode(&b) == nil {
			return b
		}
	case "!!int":
		var i int64
		if n.Decode(&i) == nil {
			return i
		}
		return e.float(n)
	case "!!float":
		return e.float(n)
	}
	e.Add(code.UnsupportedYAML, yamlcheck.PositionOf(n), "%s is not a value that Kubernetes has", Quote(n.Value))
	return nil
}

// float decodes a number as float64. As in JSON, that includes integers that do not fit into 64 bits.
func (e *expansion) float(n *yaml.Node) any {
	var f float64
	if n.Decode(&f) != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		e.Add(code.UnsupportedYAML, yamlcheck.PositionOf(n), "%s is not a number that Kubernetes has", Quote(n.Value))
		return nil
	}
	return f
}
