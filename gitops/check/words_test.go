package check

import (
	"cmp"
	"slices"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kubeop/kubeop/gitops/code"
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

func TestErrorsOfTheSchemaAreWordedForPeople(t *testing.T) {
	for name, tc := range map[string]struct {
		err  *field.Error
		want string
		code code.Code
	}{
		"twice":             {field.Duplicate(field.NewPath("spec", "ports"), "http"), `spec.ports: "http" is there twice: keep one`, code.DuplicateItem},
		"an unknown value":  {field.NotSupported(field.NewPath("spec", "type"), "X", []string{"Git", "Image"}), `spec.type: "X" is not one of Git, Image`, code.UnknownValue},
		"required":          {field.Required(field.NewPath("spec", "type"), "Required value"), "spec.type is required: write one of Image, Git, Helm, Raw", code.RequiredField},
		"empty":             {field.Invalid(field.NewPath("spec", "a"), "", "spec.a in body should be at least 1 chars long"), "spec.a: must not be empty", ""},
		"too long":          {field.Invalid(field.NewPath("spec", "a"), "xx", "spec.a in body should be at most 1 chars long"), "spec.a: must be at most 1 characters long", ""},
		"another type":      {field.TypeInvalid(field.NewPath("spec", "a"), 1, `spec.a in body must be of type string: "integer"`), "spec.a: must be of type string, not integer", code.WrongType},
		"no type is named":  {field.TypeInvalid(field.NewPath("spec", "a"), 1, "spec.a in body must be text"), "spec.a: must be text", code.WrongType},
		"a colon in a rule": {field.Invalid(field.NewPath("spec", "a"), "x", "one of: b, c"), "spec.a: one of: b, c", ""},
		"a known pattern":   {field.Invalid(field.NewPath("spec", "a"), "x", "spec.a in body should match '^/'"), "spec.a: must begin with /", ""},
		"an unknown one":    {field.Invalid(field.NewPath("spec", "a"), "x", "spec.a in body should match '^z$'"), "spec.a: must match '^z$'", ""},
		"spaces":            {field.Invalid(field.NewPath("spec", "a"), "oci://a b", `spec.a in body should match '^oci://[^\s]+$'`), "spec.a: must not hold spaces", ""},
		"no text":           {field.Invalid(field.NewPath("spec", "a"), 3, `spec.a in body should match '^oci://[^\s]+$'`), "spec.a: must begin with oci://, without a tag", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := schemaMessage(tc.err); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			if got := schemaCode(tc.err.Type); got != cmp.Or(tc.code, code.InvalidValue) {
				t.Errorf("got the code %s", got)
			}
		})
	}
}
