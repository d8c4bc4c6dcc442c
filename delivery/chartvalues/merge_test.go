package chartvalues

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

func TestMergeMergesMappingsAndReplacesTheRest(t *testing.T) {
	for name, tc := range map[string]struct{ base, over, want string }{
		"other keys stay":              {`{a: 1}`, `{b: 2}`, `{a: 1, b: 2}`},
		"a value is replaced":          {`{a: 1}`, `{a: 2}`, `{a: 2}`},
		"mappings at any depth":        {`{a: {b: {c: 1, d: 2}}}`, `{a: {b: {d: 3}}}`, `{a: {b: {c: 1, d: 3}}}`},
		"a list is replaced":           {`{a: [1, 2]}`, `{a: [3]}`, `{a: [3]}`},
		"a null stays":                 {`{a: {b: 1}}`, `{a: null}`, `{a: null}`},
		"a null within a mapping":      {`{a: {b: 1, c: 2}}`, `{a: {b: null}}`, `{a: {b: null, c: 2}}`},
		"a mapping over a null":        {`{a: null}`, `{a: {b: 1}}`, `{a: {b: 1}}`},
		"a mapping over a value":       {`{a: 1}`, `{a: {b: 1}}`, `{a: {b: 1}}`},
		"a value over a mapping":       {`{a: {b: 1}}`, `{a: 1}`, `{a: 1}`},
		"an empty mapping over a full": {`{a: {b: 1}}`, `{a: {}}`, `{a: {b: 1}}`},
		"nothing":                      {`{a: 1}`, `{}`, `{a: 1}`},
	} {
		t.Run(name, func(t *testing.T) {
			base, over := parse(t, tc.base), parse(t, tc.over)
			if diff := cmp.Diff(parse(t, tc.want), Merge(base, over)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if diff := cmp.Diff(parse(t, tc.base), base); diff != "" {
				t.Errorf("base changed:\n%s", diff)
			}
			if diff := cmp.Diff(parse(t, tc.over), over); diff != "" {
				t.Errorf("over changed:\n%s", diff)
			}
		})
	}
}

func parse(t *testing.T, text string) map[string]any {
	t.Helper()
	values := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &values); err != nil {
		t.Fatal(err)
	}
	return values
}
