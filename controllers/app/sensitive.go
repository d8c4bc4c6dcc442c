package app

import (
	"fmt"

	"sigs.k8s.io/yaml"
)

// sensitiveIn returns what no message may show of a Secret's content: the whole of it and, where it is YAML, each value in
// it, because a chart that fails may show just that one.
func sensitiveIn(content []byte) []string {
	found := []string{string(content)}
	var parsed any
	if err := yaml.Unmarshal(content, &parsed); err != nil {
		return found
	}
	return appendLeaves(found, parsed)
}

func appendLeaves(found []string, value any) []string {
	switch v := value.(type) {
	case map[string]any:
		for _, each := range v {
			found = appendLeaves(found, each)
		}
	case []any:
		for _, each := range v {
			found = appendLeaves(found, each)
		}
	case nil, bool:
	default:
		found = append(found, fmt.Sprint(v))
	}
	return found
}
