package check

import (
	"context"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"github.com/kubeop/kubeop/gitops/code"
)

// wrongName says why no object of the kind can have the name; "" if one can. All CEL rules at the root of the schemas are about the name,
// and the object that is validated here has no other field.
func (k *kind) wrongName(name string) string {
	object := map[string]any{"metadata": map[string]any{"name": name}}
	errs, _ := k.rules.Validate(context.Background(), nil, k.schema, object, nil, celconfig.RuntimeCELCostBudget)
	if len(errs) == 0 {
		return ""
	}
	return errs[0].Detail
}

// validate checks the document as the API server will: pruned nulls, defaults, schema, list keys, CEL rules, in its order. Rules about a
// change (oldSelf) are left to the API server. The name is that of the folder, which has been checked.
//
// An error that only follows from another error is left out, because it could be listed before its cause and hide it.
func (d *Result) validate(k *kind, name string) {
	object := runtime.DeepCopyJSON(d.Value)
	object["metadata"] = map[string]any{"name": name}
	defaulting.PruneNonNullableNullsWithoutDefaults(object, k.schema)
	defaulting.Default(object, k.schema)

	errs := validation.ValidateCustomResource(nil, object, k.values)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, k.schema, object)...)
	for _, err := range errs {
		if d.Full() {
			return
		}
		if err.Type == field.ErrorTypeRequired && d.misspelt(err.Field) {
			continue
		}
		if err.Type != field.ErrorTypeDuplicate { // each of the two items is valid by itself
			d.faults = append(d.faults, fault{field: err.Field})
		}
		d.AddAt(schemaCode(err.Type), err.Field, "%s", schemaMessage(err))
	}
	broken, _ := k.rules.Validate(context.Background(), nil, k.schema, object, nil, celconfig.RuntimeCELCostBudget)
	d.addRules(broken)
}

// wholeObject is the field of an error about an object as a whole.
var wholeObject = (*field.Path)(nil).String()

// addRules reports the first broken CEL rule of each field, because several rules about one field mostly say the same.
func (d *Result) addRules(broken field.ErrorList) {
	reported := map[string]bool{}
	for _, err := range broken {
		if reported[err.Field] || d.explained(err.Field) {
			continue
		}
		reported[err.Field] = true
		text := err.Field + ": " + err.Detail
		if err.Field == wholeObject {
			text = err.Detail
		}
		d.AddAt(code.BrokenRule, err.Field, "%s", text)
	}
}
