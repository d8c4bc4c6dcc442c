package check

import (
	"slices"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
)

// A pattern that has no words would be shown to people as it is, and words without a pattern are left over.
func TestEveryPatternHasWords(t *testing.T) {
	kinds, err := Compile()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for name, k := range kinds {
		spec := k.schema.Properties["spec"]
		for _, pattern := range patterns(&spec) {
			found[pattern] = true
			if inWords[pattern] == "" {
				t.Errorf("%s: no words for the pattern %s", name, pattern)
			}
		}
	}
	for pattern := range inWords {
		if !found[pattern] {
			t.Errorf("words for the pattern %s, which no spec has", pattern)
		}
	}
}

func patterns(s *schema.Structural) []string {
	if s == nil {
		return nil
	}
	all := patterns(s.Items)
	if s.ValueValidation != nil && s.ValueValidation.Pattern != "" {
		all = append(all, s.ValueValidation.Pattern)
	}
	for _, p := range s.Properties {
		all = slices.Concat(all, patterns(&p))
	}
	if s.AdditionalProperties != nil {
		all = append(all, patterns(s.AdditionalProperties.Structural)...)
	}
	return all
}
