package apply

import (
	"bytes"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// withoutHands returns an object without the fields that people alone added by hand, as takeBack and the apply after it
// would leave it; no dry run does both. Labels and annotations of theirs stay, and so does what is ceded.
func withoutHands(o *unstructured.Unstructured, left ceded) (*unstructured.Unstructured, error) {
	hands, others := fieldpath.NewSet(), fieldpath.NewSet()
	for _, f := range o.GetManagedFields() {
		owner := &others
		if byHand(f) {
			owner = &hands
			left.release(&f)
		}
		fields := fieldpath.NewSet()
		if f.FieldsV1 == nil {
			continue
		}
		if err := fields.FromJSON(bytes.NewReader(f.FieldsV1.GetRawBytes())); err != nil {
			return nil, fmt.Errorf("reading whose its fields are: %w", err)
		}
		*owner = (*owner).Union(fields)
	}
	out := without(o.Object, hands.Difference(others)).(map[string]any)
	out["metadata"] = o.Object["metadata"]
	return &unstructured.Unstructured{Object: out}, nil
}

// without returns a value without the fields of a set.
func without(from any, fields *fieldpath.Set) any {
	switch from := from.(type) {
	case map[string]any:
		out := make(map[string]any, len(from))
		for name, inner := range from {
			if inner, stays := part(inner, fields, fieldpath.FieldNameElement(name)); stays {
				out[name] = inner
			}
		}
		return out
	case []any:
		out := make([]any, 0, len(from))
		for i, item := range from {
			if item, stays := part(item, fields, elementOf(item, i, fields)); stays {
				out = append(out, item)
			}
		}
		return out
	}
	return from
}

// part is without for what is at one place, and reports whether anything stays there.
func part(of any, fields *fieldpath.Set, at fieldpath.PathElement) (any, bool) {
	below, ok := fields.Children.Get(at)
	if !ok {
		return of, !fields.Members.Has(at)
	}
	of = without(of, below)
	object, _ := of.(map[string]any)
	list, _ := of.([]any)
	return of, !fields.Members.Has(at) || len(object)+len(list) > 0
}

// elementOf returns how a set names an item of a list.
func elementOf(item any, index int, fields *fieldpath.Set) fieldpath.PathElement {
	for _, all := range []func(func(fieldpath.PathElement) bool){fields.Children.All(), fields.Members.All()} {
		for at := range all {
			if isNamed(at, item) {
				return at
			}
		}
	}
	return fieldpath.IndexElement(index)
}

func isNamed(at fieldpath.PathElement, item any) bool {
	if at.Value != nil {
		return value.Equals(*at.Value, value.NewValueInterface(item))
	}
	object, ok := item.(map[string]any)
	if at.Key == nil || !ok {
		return false
	}
	for _, key := range *at.Key {
		if !value.Equals(key.Value, value.NewValueInterface(object[key.Name])) {
			return false
		}
	}
	return true
}
