package tree

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// wrongName says why no object of the kind can have the name; nothing if one can. The rules of the root are all about
// the name, and there is nothing else in this object for others to judge.
func (k *kind) wrongName(name string) string {
	object := map[string]any{"metadata": map[string]any{"name": name}}
	errs, _ := k.rules.Validate(context.Background(), nil, k.schema, object, nil, celconfig.RuntimeCELCostBudget)
	if len(errs) == 0 {
		return ""
	}
	return errs[0].Detail
}

// validate judges the document as the API server will: pruned nulls, defaults, schema, list keys, CEL rules, in its
// order. Rules about a change (oldSelf) are left to the API server. The name is that of the folder, which has been
// judged.
//
// What only follows from something else that is wrong is left out: it would stand above its cause and hide it.
func (d *document) validate(k *kind, name string) {
	object := runtime.DeepCopyJSON(d.value)
	object["metadata"] = map[string]any{"name": name}
	defaulting.PruneNonNullableNullsWithoutDefaults(object, k.schema)
	defaulting.Default(object, k.schema)

	errs := validation.ValidateCustomResource(nil, object, k.values)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, k.schema, object)...)
	for _, err := range errs {
		if d.full() {
			return
		}
		if err.Type == field.ErrorTypeRequired && d.misspelt(err.Field) {
			continue
		}
		if err.Type != field.ErrorTypeDuplicate { // each of the two is sound by itself
			d.faults = append(d.faults, fault{field: err.Field})
		}
		d.addAt(err.Field, "%s", schemaMessage(err))
	}
	broken, _ := k.rules.Validate(context.Background(), nil, k.schema, object, nil, celconfig.RuntimeCELCostBudget)
	d.addRules(broken)
}

// addRules reports CEL rules that do not hold, of each field the first: several rules about one field mostly say the
// same.
func (d *document) addRules(broken field.ErrorList) {
	said := map[string]bool{}
	for _, err := range broken {
		if said[err.Field] || d.explained(err.Field) {
			continue
		}
		said[err.Field] = true
		d.addAt(err.Field, "%s: %s", err.Field, err.Detail)
	}
}

// fault is a field that is wrong by itself.
type fault struct {
	field string
	// unknown: there is no such field. meant is the path its author may have meant, if one is near enough.
	unknown bool
	meant   string
}

// explained reports whether a fault at the field, around it or inside it makes any rule about the field moot.
func (d *document) explained(path string) bool {
	return slices.ContainsFunc(d.faults, func(f fault) bool { return within(f.field, path) || within(path, f.field) })
}

// misspelt reports whether the field is missing because it was written with another name: one that is meant for it, or
// one beside it that may mean anything.
func (d *document) misspelt(path string) bool {
	return slices.ContainsFunc(d.faults, func(f fault) bool {
		return f.unknown && (f.meant == path || f.meant == "" && parent(f.field) == parent(path))
	})
}

func parent(path string) string {
	return path[:max(strings.LastIndexByte(path, '.'), 0)]
}

// within reports whether path is the field around or a field inside it.
func within(path, around string) bool {
	rest, ok := strings.CutPrefix(path, around)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}
