package fieldmanager

import (
	"bytes"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// identity are the top-level fields that identify an object. They are always kept, because clients write managedFields, which may name any
// field.
var identity = []string{"apiVersion", "kind", "metadata"}

// WithoutManualFields returns an object without the fields that only people added by hand, as TakeBack and the following apply would leave
// it; a dry run cannot do both. People's labels and annotations are kept, and so are the Unmanaged fields.
func WithoutManualFields(o *unstructured.Unstructured, left Unmanaged) (*unstructured.Unstructured, error) {
	var manual, others []*fieldpath.Set
	for _, f := range o.GetManagedFields() {
		owner := &others
		if EditedByHand(f) {
			owner = &manual
			left.Release(&f)
		}
		fields := fieldpath.NewSet()
		if f.FieldsV1 == nil {
			continue
		}
		if err := fields.FromJSON(bytes.NewReader(f.FieldsV1.GetRawBytes())); err != nil {
			return nil, fmt.Errorf("reading the owners of its fields: %w", err)
		}
		*owner = append(*owner, fields)
	}
	rest := maps.Clone(o.Object)
	for _, name := range identity {
		delete(rest, name)
	}
	out := without(rest, union(manual).Difference(union(others))).(map[string]any)
	for _, name := range identity {
		out[name] = o.Object[name]
	}
	return &unstructured.Unstructured{Object: out}, nil
}

// union joins sets in pairs. Joining them one after the other would cost as much as all fields for each of many managers.
func union(sets []*fieldpath.Set) *fieldpath.Set {
	switch len(sets) {
	case 0:
		return fieldpath.NewSet()
	case 1:
		return sets[0]
	}
	half := len(sets) / 2
	return union(sets[:half]).Union(union(sets[half:]))
}

// without returns a value without the fields in a set.
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
		out, keys := make([]any, 0, len(from)), keysOf(fields)
		for i, item := range from {
			if item, stays := part(item, fields, elementOf(item, i, keys)); stays {
				out = append(out, item)
			}
		}
		return out
	}
	return from
}

// part returns the value at one path element without the fields in a set, and reports whether anything is left of it.
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

// keysOf returns the fields by which a set identifies the items of a list. They are the same for all items.
func keysOf(fields *fieldpath.Set) (names []string) {
	first := func(at fieldpath.PathElement) {
		if at.Key == nil || len(names) > 0 {
			return
		}
		for _, key := range *at.Key {
			names = append(names, key.Name)
		}
	}
	fields.Children.Iterate(first) // Iterating with All and stopping early panics.
	fields.Members.Iterate(first)
	return names
}

// elementOf returns how a set identifies an item of a list, so that the set can be searched: iterating over the set for each item would
// cost items times fields. Keys and the items of sets are scalars.
func elementOf(item any, index int, keys []string) fieldpath.PathElement {
	object, _ := item.(map[string]any)
	if isScalar(item) {
		return fieldpath.ValueElement(value.NewValueInterface(item))
	}
	var fields value.FieldList
	for _, name := range keys {
		key, ok := object[name]
		if !ok || !isScalar(key) {
			return fieldpath.IndexElement(index)
		}
		fields = append(fields, value.Field{Name: name, Value: value.NewValueInterface(key)})
	}
	if len(fields) == 0 {
		return fieldpath.IndexElement(index)
	}
	return fieldpath.KeyElement(fields...)
}

func isScalar(v any) bool {
	switch v.(type) {
	case map[string]any, []any:
		return false
	}
	return true
}
