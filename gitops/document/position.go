package document

import (
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/kubeop/kubeop/delivery/yamlcheck"
)

// Position returns where the key of a field such as "spec.image.ports[0].name" is, or of the innermost field around it that the file has. An
// item of a list is where its value begins. A key that contains dots is found as the validators write it: "quota.requests.cpu" or
// "quota[requests.cpu]".
func (d *Document) Position(field string) yamlcheck.Position {
	if d.root == nil {
		return yamlcheck.Position{}
	}
	n, found := d.root, d.root
	for field != "" {
		at, value, rest := descend(n, field)
		if value == nil {
			break
		}
		n, found, field = value, at, rest
	}
	return yamlcheck.PositionOf(found)
}

// descend follows the first element of the path "field", and returns the node where it is, its value, and the rest of the path.
func descend(n *yaml.Node, field string) (at, value *yaml.Node, rest string) {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	switch n.Kind {
	case yaml.MappingNode:
		return descendInto(n, strings.TrimPrefix(field, "."))
	case yaml.SequenceNode:
		end := strings.IndexByte(field, ']')
		if end < 0 || field[0] != '[' {
			return nil, nil, ""
		}
		i, err := strconv.Atoi(field[1:end])
		if err != nil || i < 0 || i >= len(n.Content) {
			return nil, nil, ""
		}
		return n.Content[i], n.Content[i], field[end+1:]
	}
	return nil, nil, ""
}

// descendInto follows the longest key that is a prefix of field.
func descendInto(n *yaml.Node, field string) (at, value *yaml.Node, rest string) {
	longest := -1
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		after, ok := cutKey(field, key.Value)
		if ok && len(key.Value) > longest {
			longest, at, value, rest = len(key.Value), key, n.Content[i+1], after
		}
	}
	return at, value, rest
}

func cutKey(field, key string) (rest string, ok bool) {
	if rest, ok = strings.CutPrefix(field, "["+key+"]"); ok {
		return rest, true
	}
	rest, ok = strings.CutPrefix(field, key)
	return rest, ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}
