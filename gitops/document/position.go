package document

import (
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Line returns the line of a field such as "spec.image.ports[0].name", or of the innermost field around it that the file has. A key that
// contains dots is found as the validators write it: "quota.requests.cpu" or "quota[requests.cpu]".
func (d *Document) Line(field string) int {
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

// descend follows the first element of the path "field", and returns the line and value found and the rest of the path.
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

// descendInto follows the longest key that is a prefix of field.
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
