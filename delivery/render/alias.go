package render

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	yamlv3 "go.yaml.in/yaml/v3"
)

// CheckAliases refuses YAML documents, each of whose aliases would make it grow by more than 1 MiB, without writing them
// out. Whoever reads YAML of a tenant asks it first: turned into JSON, an anchor is copied once for each of its aliases.
// Its errors are ErrTooLarge or the parser's.
func CheckAliases(data []byte) error {
	if bytes.IndexByte(data, '&') < 0 || bytes.IndexByte(data, '*') < 0 {
		return nil
	}
	decoder := yamlv3.NewDecoder(bytes.NewReader(data))
	for {
		var node yamlv3.Node
		err := decoder.Decode(&node)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := (&aliases{sizes: map[*yamlv3.Node]int{}}).check(&node); err != nil {
			return err
		}
	}
}

// aliasBytes is how many bytes the aliases of a file stand for that CheckAliases allows.
func aliasBytes(data []byte) int {
	if bytes.IndexByte(data, '&') < 0 || bytes.IndexByte(data, '*') < 0 {
		return 0
	}
	decoder, sum := yamlv3.NewDecoder(bytes.NewReader(data)), 0
	for {
		var node yamlv3.Node
		a := aliases{sizes: map[*yamlv3.Node]int{}}
		if decoder.Decode(&node) != nil || a.check(&node) != nil {
			return sum
		}
		sum += a.added
	}
}

// aliases adds up what the aliases of a document stand for. Each anchor is measured once, so the work is that of
// reading the document.
type aliases struct {
	sizes map[*yamlv3.Node]int // of each anchored node with everything below it written out
	added int
}

func (a *aliases) check(root *yamlv3.Node) error {
	if _, err := a.measure(root); err != nil {
		return err
	}
	if a.added > maxAliasBytes {
		return fmt.Errorf("YAML aliases stand for more than %d bytes: %w", maxAliasBytes, ErrTooLarge)
	}
	return nil
}

// measure returns the size of the node with its aliases written out. Sizes stop growing just above the limit, so that
// they cannot overflow.
func (a *aliases) measure(node *yamlv3.Node) (int, error) {
	if node.Kind == yamlv3.AliasNode {
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

// anchor returns the size of an anchored node. Anchors stand before their aliases, so one that is not measured yet is
// the alias's own ancestor: it stands for text without end, which ends whoever follows it.
func (a *aliases) anchor(node *yamlv3.Node) (int, error) {
	size, ok := a.sizes[node]
	if !ok {
		return 0, fmt.Errorf("line %d: YAML anchor %q contains itself: %w", node.Line, node.Anchor, ErrTooLarge)
	}
	return size, nil
}

func atMost(size int) int { return min(size, maxAliasBytes+1) }
