package fieldmanager

import (
	"encoding/json"
	"maps"
	"reflect"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// strip returns the object without the ignored fields, except those that identify the object and its owner.
func (u Unmanaged) strip(o *unstructured.Unstructured) *unstructured.Unstructured {
	if len(u.Ignored) == 0 {
		return o
	}
	out := o.DeepCopy()
	for _, path := range u.Ignored {
		cut(out.Object, path)
	}
	out.SetGroupVersionKind(o.GroupVersionKind())
	out.SetNamespace(o.GetNamespace())
	out.SetName(o.GetName())
	labels := map[string]string{}
	for _, mark := range v1alpha1.OwnerLabels {
		if value, ok := o.GetLabels()[mark]; ok {
			labels[mark] = value
		}
	}
	maps.Copy(labels, out.GetLabels())
	out.SetLabels(labels)
	return out
}

// cut deletes the value at a path. An item of a list is not deleted, because the indexes of the following items would change.
func cut(value any, path []string) {
	switch value := value.(type) {
	case map[string]any:
		if len(path) == 1 {
			delete(value, path[0])
			return
		}
		cut(value[path[0]], path[1:])
	case []any:
		if i, err := strconv.Atoi(path[0]); err == nil && i >= 0 && i < len(value) && len(path) > 1 {
			cut(value[i], path[1:])
		}
	}
}

// disown removes the ignored fields from an owner's fields in managedFields, and reports whether there were any.
func (u Unmanaged) disown(fields map[string]any) (found bool) {
	for _, path := range u.Ignored {
		found = disown(fields, u.Manifest.Object, path) || found
	}
	return found
}

func disown(fields map[string]any, value any, path []string) bool {
	key, inner := fieldKey(fields, value, path[0])
	if len(path) == 1 {
		_, ok := fields[key]
		if ok = ok && strings.HasPrefix(key, "f:"); ok {
			delete(fields, key)
		}
		return ok
	}
	below, _ := fields[key].(map[string]any)
	if !disown(below, inner, path[1:]) {
		return false
	}
	if len(below) == 0 { // An empty set would stand for everything below.
		delete(fields, key)
	}
	return true
}

// fieldKey returns how managedFields names a field, or an item of a list by its keys, and the value that the manifest has there.
func fieldKey(fields map[string]any, value any, name string) (string, any) {
	list, ok := value.([]any)
	if !ok {
		object, _ := value.(map[string]any)
		return "f:" + name, object[name]
	}
	i, err := strconv.Atoi(name)
	if err != nil || i < 0 || i >= len(list) {
		return "", nil
	}
	for key := range fields {
		if text, ok := strings.CutPrefix(key, "k:"); ok && hasKeys(list[i], text) {
			return key, list[i]
		}
	}
	return "", nil
}

// hasKeys reports whether an item of a list has the values of a key such as {"name":"web"}.
func hasKeys(item any, text string) bool {
	var keys any
	if json.Unmarshal([]byte(text), &keys) != nil {
		return false
	}
	wanted, _ := keys.(map[string]any)
	for name, value := range wanted {
		object, _ := item.(map[string]any)
		have, _ := json.Marshal(object[name]) // What was decoded can be encoded.
		want, _ := json.Marshal(value)
		if !reflect.DeepEqual(have, want) {
			return false
		}
	}
	return len(wanted) > 0
}
