// Package yamlcheck checks YAML that tenants wrote before a parser builds it: the size of its expanded aliases, how many entries its lists
// and mappings have, and how many values it holds. All code of the operator that reads a tenant's text checks it here first.
package yamlcheck

import (
	"bytes"
	"errors"
	"io"
	"iter"

	"go.yaml.in/yaml/v3"
)

// ErrTooLarge is wrapped by every error that says that a text is over a limit; the message names the limit.
var ErrTooLarge = errors.New("too large")

// Documents yields the YAML documents of a text, one after the other. An error of the parser is the last that it yields.
func Documents(data []byte) iter.Seq2[*yaml.Node, error] {
	return func(yield func(*yaml.Node, error) bool) {
		decoder := yaml.NewDecoder(bytes.NewReader(data))
		for {
			var node yaml.Node
			err := decoder.Decode(&node)
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(&node, nil) {
				return
			}
		}
	}
}

// JSONNodes returns the number of mappings, lists, keys and scalars in JSON text: it counts the characters that precede a value or a key.
func JSONNodes(text []byte) int {
	n, quoted := 1, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			quoted = !quoted
		case quoted && c == '\\':
			i++
		case quoted:
		case c == '{', c == '[', c == ',', c == ':':
			n++
		}
	}
	return n
}

// CountNodes returns the number of documents, mappings, lists, scalars and aliases in a parsed node, including the node itself.
func CountNodes(node *yaml.Node) int {
	sum := 1
	for _, inner := range node.Content {
		sum += CountNodes(inner)
	}
	return sum
}
