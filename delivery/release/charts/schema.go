package charts

import (
	"encoding/json"
	"fmt"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
)

// selfContained refuses a values.schema.json that refers to something outside of itself: Helm would read the named file or URL from the
// operator's machine.
func selfContained(c *chart.Chart) error {
	if len(c.Schema) > 0 {
		var schema any
		if err := json.Unmarshal(c.Schema, &schema); err != nil {
			return fmt.Errorf("values.schema.json of chart %s: %w", c.Name(), err)
		}
		if ref := outwardReference(schema); ref != "" {
			return fmt.Errorf("values.schema.json of chart %s refers to %s; only references within the file are followed", c.Name(), ref)
		}
	}
	for _, sub := range c.Dependencies() {
		if err := selfContained(sub); err != nil {
			return err
		}
	}
	return nil
}

// metaSchemas are the schemas that the validator knows without using the network.
var metaSchemas = []string{"http://json-schema.org/", "https://json-schema.org/"}

// outwardReference returns a reference that leads out of the schema; "" for none.
func outwardReference(node any) string {
	switch n := node.(type) {
	case []any:
		for _, child := range n {
			if ref := outwardReference(child); ref != "" {
				return ref
			}
		}
	case map[string]any:
		for key, child := range n {
			if text, ok := child.(string); ok && leaves(key, text) {
				return text
			}
			if ref := outwardReference(child); ref != "" {
				return ref
			}
		}
	}
	return ""
}

func leaves(key, text string) bool {
	switch key {
	case "$ref", "$dynamicRef", "$recursiveRef", "$schema":
	default:
		return false
	}
	if strings.HasPrefix(text, "#") {
		return false
	}
	for _, known := range metaSchemas {
		if strings.HasPrefix(text, known) {
			return false
		}
	}
	return true
}
