package tree

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// validate judges the document as the API server will: pruned nulls, defaults, schema, list keys, CEL rules, in its
// order. Rules about a change (oldSelf) are left to the API server. The name is that of the folder, so that a folder's
// name is judged even where the file names another.
func (d *document) validate(k *kind, name string) {
	object := runtime.DeepCopyJSON(d.value)
	object["metadata"] = map[string]any{"name": name}
	defaulting.PruneNonNullableNullsWithoutDefaults(object, k.schema)
	defaulting.Default(object, k.schema)

	errs := validation.ValidateCustomResource(nil, object, k.values)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, k.schema, object)...)
	faulty := map[string]bool{}
	for _, err := range errs {
		if d.full() {
			return
		}
		faulty[err.Field] = true
		d.addAt(err.Field, "%s", schemaMessage(err))
	}
	broken, _ := k.rules.Validate(context.Background(), nil, k.schema, object, nil, celconfig.RuntimeCELCostBudget)
	for _, err := range broken {
		if !faulty[err.Field] {
			d.addRule(err)
		}
	}
}

// addRule reports a CEL rule that does not hold. Rules of the root are all about the name.
func (d *document) addRule(err *field.Error) {
	if err.Field == "" || err.Field == "<nil>" {
		d.addAt("metadata.name", "metadata.name: %s", err.Detail)
		return
	}
	d.addAt(err.Field, "%s: %s", err.Field, err.Detail)
}

// schemaMessage words an error of the schema as "field: what is wrong". The validators repeat the field and the
// value.
func schemaMessage(err *field.Error) string {
	switch err.Type {
	case field.ErrorTypeRequired:
		return err.Field + " is required"
	case field.ErrorTypeNotSupported:
		detail := strings.TrimPrefix(err.Detail, "supported values: ")
		return fmt.Sprintf("%s: %s is not one of %s", err.Field, shown(err.BadValue), detail)
	case field.ErrorTypeDuplicate:
		return fmt.Sprintf("%s: %s is there twice", err.Field, shown(err.BadValue))
	}
	detail := strings.TrimPrefix(err.Detail, err.Field)
	detail = strings.TrimPrefix(strings.TrimSpace(detail), "in body ")
	detail = strings.Replace(detail, "should", "must", 1)
	if want, got, ok := strings.Cut(detail, ": "); ok && err.Type == field.ErrorTypeTypeInvalid {
		return fmt.Sprintf("%s: %s, not %s", err.Field, want, strings.Trim(got, `"`))
	}
	return fmt.Sprintf("%s: %s", err.Field, detail)
}

// shown words a value of a file, which may be as large as the file.
func shown(value any) string {
	if text, ok := value.(string); ok {
		return abbreviated(text)
	}
	data, err := json.Marshal(value)
	if err != nil {
		return cut(fmt.Sprint(value))
	}
	return cut(string(data))
}

// cut bounds one message.
func cut(text string) string {
	const most = 400
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	return string(runes[:most]) + "…"
}
