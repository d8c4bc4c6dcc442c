package apply

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Slim takes from an object's metadata what nobody here reads before a cache holds it: annotations, and the fields that
// belong to other controllers. Tenants write both, as large as they like.
func Slim(object any) (any, error) {
	o, ok := object.(metav1.Object)
	if !ok {
		return object, nil
	}
	o.SetAnnotations(nil)
	o.SetManagedFields(slices.DeleteFunc(o.GetManagedFields(), func(f metav1.ManagedFieldsEntry) bool { return !owns(f) && !byHand(f) }))
	return object, nil
}
