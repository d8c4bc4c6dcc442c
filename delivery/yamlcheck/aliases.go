package yamlcheck

import (
	"bytes"
	"fmt"

	"go.yaml.in/yaml/v3"
)

// maxAliasBytes limits by how much the aliases of one document may make it grow when they are expanded. Aliases of aliases (an alias bomb)
// can fill any memory with a few lines.
const maxAliasBytes = 1 << 20

// Aliases refuses YAML with a document whose aliases would make it grow by more than 1 MiB, without expanding them: in JSON, an anchor is
// copied once for each of its aliases. Its errors are ErrTooLarge or the parser's.
func Aliases(data []byte) error {
	if !mayHaveAliases(data) {
		return nil
	}
	for document, err := range Documents(data) {
		if err != nil {
			return err
		}
		if err := Document(document); err != nil {
			return err
		}
	}
	return nil
}

// Document is Aliases for one document that is already parsed, in which aliases are still nodes. Its error is an ErrTooLarge.
func Document(document *yaml.Node) error {
	_, err := aliasBytes(document)
	return err
}

// AliasBytes returns how many bytes the aliases of a text expand to, up to the first document that Aliases refuses.
func AliasBytes(data []byte) int {
	if !mayHaveAliases(data) {
		return 0
	}
	sum := 0
	for document, err := range Documents(data) {
		if err != nil {
			break
		}
		added, err := aliasBytes(document)
		if err != nil {
			break
		}
		sum += added
	}
	return sum
}

func mayHaveAliases(data []byte) bool {
	return bytes.IndexByte(data, '&') >= 0 && bytes.IndexByte(data, '*') >= 0
}

// aliasBytes returns how many bytes the aliases of one document expand to.
func aliasBytes(document *yaml.Node) (int, error) {
	a := aliases{sizes: map[*yaml.Node]int{}}
	if _, err := a.measure(document); err != nil {
		return 0, err
	}
	if a.added > maxAliasBytes {
		return 0, fmt.Errorf("YAML aliases stand for more than %d bytes: %w", maxAliasBytes, ErrTooLarge)
	}
	return a.added, nil
}

// aliases adds up the expanded size of the aliases of a document. Each anchor is measured once, so the work is proportional to the
// document.
type aliases struct {
	sizes map[*yaml.Node]int // of each anchored node, with everything below it expanded
	added int
}

// measure returns the size of the node with its aliases expanded. Sizes stop growing just above the limit, so that they cannot overflow.
func (a *aliases) measure(node *yaml.Node) (int, error) {
	if node.Kind == yaml.AliasNode {
		size, err := a.anchor(node.Alias)
		a.added = atMost(a.added + size)
		return size, err
	}
	size := len(node.Value) + 1
	for _, child := range node.Content {
		inner, err := a.measure(child)
		if err != nil {
			return 0, err
		}
		size = atMost(size + inner)
	}
	if node.Anchor != "" {
		a.sizes[node] = size
	}
	return size, nil
}

// anchor returns the size of an anchored node. Anchors stand before their aliases, so an anchor that is not measured yet contains the alias
// itself, and would expand to an endless text.
func (a *aliases) anchor(node *yaml.Node) (int, error) {
	size, ok := a.sizes[node]
	if !ok {
		return 0, fmt.Errorf("line %d: YAML anchor %q contains itself: %w", node.Line, node.Anchor, ErrTooLarge)
	}
	return size, nil
}

func atMost(size int) int { return min(size, maxAliasBytes+1) }
