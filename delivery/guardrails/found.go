package guardrails

import (
	"strings"

	"github.com/kubeop/kubeop/delivery/few"
)

// found is a rule of one policy that an object breaks.
type found struct{ field, why string }

// maxQuoted is how many characters of a tenant's text a message quotes, and maxListed how many of the allowed things it names.
const maxQuoted, maxListed = 253, 8

// listed lists what a policy names.
func listed(names []string) string { return strings.Join(few.Of(names, maxListed), ", ") }

// mappings returns the mappings of a list.
func mappings(list any) []map[string]any {
	items, _ := list.([]any)
	var all []map[string]any
	for _, item := range items {
		if m, ok := item.(map[string]any); ok {
			all = append(all, m)
		}
	}
	return all
}
