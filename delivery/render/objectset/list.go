package objectset

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Expand returns the objects in a List, and in Lists in it, or the object itself if it is no List. An item without kind and apiVersion gets
// them from its List, as with kubectl: a ConfigMapList holds ConfigMaps. Objects are not copied. An error names the invalid item, as
// "items[2]: why".
//
// delivery/release/manifest flattens Lists by another rule, because Helm reads its manifests again and treats every object with items as a
// List. Objects that are expanded here are sent to the API server, and nothing reads them as Lists any more. So an object of another kind,
// such as a custom resource, may have a field named items.
func Expand(object *unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	if !isList(object.Object) {
		return []*unstructured.Unstructured{object}, nil
	}
	return items(object.Object)
}

// isList reports whether an object is a List. A kind whose name merely ends in "List" has no items.
func isList(object map[string]any) bool {
	kind, _ := object["kind"].(string)
	if !strings.HasSuffix(kind, "List") {
		return false
	}
	_, found := object["items"]
	return found || kind == "List"
}

func items(list map[string]any) ([]*unstructured.Unstructured, error) {
	found, ok := list["items"].([]any)
	if !ok && list["items"] != nil {
		return nil, fmt.Errorf("items of a %s must be a list", list["kind"])
	}
	var objects []*unstructured.Unstructured
	for i, item := range found {
		object, ok := item.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("items[%d]: not an object", i)
		}
		inherit(object, list)
		inner, err := Expand(&unstructured.Unstructured{Object: object})
		if err != nil {
			return nil, fmt.Errorf("items[%d]: %w", i, err)
		}
		objects = append(objects, inner...)
	}
	return objects, nil
}

func inherit(item, list map[string]any) {
	kind := strings.TrimSuffix(list["kind"].(string), "List")
	if kind == "" || item["kind"] != nil || item["apiVersion"] != nil {
		return
	}
	item["kind"], item["apiVersion"] = kind, list["apiVersion"]
}
