package check

import (
	"testing"
)

// TestAKindIsCompiledFromTheSchemaOfItsVersion, and from no other.
func TestAKindIsCompiledFromTheSchemaOfItsVersion(t *testing.T) {
	const (
		head   = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nspec:\n  names: {kind: Widget}\n  versions:\n"
		schema = "schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, x-kubernetes-validations: [{rule: 'has(self.size)'}], properties: {size: {type: integer}}}}}}"
		wrong  = "schema: {openAPIV3Schema: {type: object, properties: {spec: {properties: {size: {type: integer}}}}}}"
		absent = "no schema of version v1alpha1"
	)
	for name, c := range map[string]struct{ text, want string }{
		"its version":                 {head + "  - {name: v1alpha1, " + schema + "}\n", ""},
		"after a version of others":   {head + "  - {name: v1, " + wrong + "}\n  - {name: v1alpha1, " + schema + "}\n", ""},
		"only a version of others":    {head + "  - {name: v1, " + schema + "}\n", absent},
		"without a schema":            {head + "  - {name: v1alpha1}\n", absent},
		"a schema after one without":  {head + "  - {name: v1alpha1}\n  - {name: v1alpha1, " + schema + "}\n", ""},
		"an invalid schema":           {head + "  - {name: v1alpha1, schema: {openAPIV3Schema: {type: object, $ref: x}}}\n", "reading the structural schema: OpenAPIV3Schema '$ref' is not supported"},
		"a field that does not exist": {"knd: x\n", `error unmarshaling JSON: while decoding JSON: json: unknown field "knd"`},
	} {
		t.Run(name, func(t *testing.T) {
			kind, compiled, err := compileKind([]byte(c.text))
			if c.want != "" {
				if err == nil || err.Error() != c.want {
					t.Errorf("got %v, want %q", err, c.want)
				}
				return
			}
			if err != nil || kind != "Widget" || compiled.rules == nil || compiled.schema.Properties["spec"].Properties["size"].Type != "integer" {
				t.Errorf("got %s, %+v, %v", kind, compiled, err)
			}
		})
	}
}
