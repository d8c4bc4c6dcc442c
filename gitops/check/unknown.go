package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"github.com/kubeop/kubeop/gitops/code"
)

// unknownFields reports fields that the schema does not have. The API server would drop them without an error.
func (d *Result) unknownFields(field string, value any, s *schema.Structural) {
	if s == nil || s.XPreserveUnknownFields || s.XEmbeddedResource || d.Full() {
		return
	}
	switch v := value.(type) {
	case []any:
		for i, item := range v {
			d.unknownFields(fmt.Sprintf("%s[%d]", field, i), item, s.Items)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			d.unknownField(field+"."+key, key, v[key], s)
		}
	}
}

func (d *Result) unknownField(field, key string, value any, parent *schema.Structural) {
	if s, ok := parent.Properties[key]; ok {
		d.unknownFields(field, value, &s)
		return
	}
	if parent.AdditionalProperties != nil {
		d.unknownFields(field, value, parent.AdditionalProperties.Structural)
		return
	}
	if parent.Type != "object" {
		return // another finding says that the value must not be an object
	}
	d.addUnknown(field, key, slices.Collect(maps.Keys(parent.Properties)))
}

// addUnknown reports an unknown field, and the known field that its author may have meant.
func (d *Result) addUnknown(field, key string, known []string) {
	if d.Full() {
		return
	}
	wrong, hint := fault{field: field, unknown: true}, ""
	if meant, ok := Nearest(key, known); ok {
		wrong.meant = strings.TrimSuffix(field, key) + meant
		hint = " (did you mean " + wrong.meant + "?)"
	} else if places := d.places(key); len(places) > 0 {
		wrong.meant = places[0]
		hint = " (did you mean " + strings.Join(places, " or ") + "?)"
	}
	d.faults = append(d.faults, wrong)
	d.AddAt(code.UnknownField, field, "unknown field %s%s", field, hint)
}

// Nearest finds the known name that is most similar to a misspelt one: at most two edits away, and fewer for short names, because short
// names are all similar.
func Nearest(name string, known []string) (string, bool) {
	best, least := "", min(2, len(name)/3)+1
	for _, k := range slices.Sorted(slices.Values(known)) {
		if strings.EqualFold(k, name) {
			return k, true
		}
		if n := edits(name, k, least); n < least {
			best, least = k, n
		}
	}
	return best, best != ""
}

// edits returns the Levenshtein distance of two names, or limit if the distance is larger.
func edits(a, b string, limit int) int {
	if len(a)-len(b) >= limit || len(b)-len(a) >= limit {
		return limit
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return min(row[len(b)], limit)
}
