// Package fieldmanager reads which manager owns which fields of an object (managedFields, KEP-555): kubeop, Helm, a person with kubectl, an
// autoscaler, or another controller. It releases fields that kubeop does not manage, and takes back fields that people changed by hand.
package fieldmanager

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// helmManager is the field manager with which delivery/release makes Helm write.
const helmManager = "helm"

// Narrowing is the field manager with which kubeop takes out of NetworkPolicies what they may not open any more. The next apply takes its fields back
// like those of people: otherwise those that the manifest then leaves out would stay.
const Narrowing = v1alpha1.FieldManager + "-narrowing"

// EditedByHand reports whether an entry of managedFields comes from a person who changed the desired state of an object with kubectl, or is of
// Narrowing. Such a change adds fields that server-side apply alone would never remove.
//
// Some changes are allowed: labels and annotations, including those by which people request something from kubeop; a restart (kubectl
// rollout); and suspending an object of this API, which stops kubeop from reverting anything.
func EditedByHand(f metav1.ManagedFieldsEntry) bool {
	if !strings.HasPrefix(f.Manager, "kubectl") && f.Manager != Narrowing || f.Manager == "kubectl-rollout" || f.Subresource != "" {
		return false
	}
	fields := map[string]any{}
	if err := json.Unmarshal(f.FieldsV1.GetRawBytes(), &fields); err != nil {
		return false
	}
	delete(fields, "f:metadata")
	spec, _ := fields["f:spec"].(map[string]any)
	if strings.HasPrefix(f.APIVersion, v1alpha1.Group+"/") {
		delete(spec, "f:suspend")
		delete(spec, ".")
	}
	if len(spec) == 0 {
		delete(fields, "f:spec")
	}
	return len(fields) > 0
}

// OwnedFields returns the fields that kubeop or its Helm applied and still owns, those that people added with kubectl, and when each
// manager last wrote, because a field with a changed value keeps its manager. They are sorted by their text: the API server sorts the items
// of a list by their keys, port 80 before 443, but an object that was decoded and encoded again has them in the order of their text.
func OwnedFields(live metav1.Object) string {
	var fields strings.Builder
	for _, f := range live.GetManagedFields() {
		if !IsOurs(f) && !EditedByHand(f) {
			continue
		}
		fields.Write(alike.sorted(f.FieldsV1))
		if f.Time != nil {
			fields.WriteString(f.Time.UTC().Format(time.RFC3339))
		}
	}
	return fields.String()
}

// IsOurs reports whether an entry of managedFields belongs to kubeop's server-side apply or to Helm. Other writes by kubeop, such as of
// finalizers and requests, do not count.
func IsOurs(f metav1.ManagedFieldsEntry) bool {
	applied := f.Manager == v1alpha1.FieldManager && f.Operation == metav1.ManagedFieldsOperationApply
	return (applied || f.Manager == helmManager) && f.Subresource == "" && f.FieldsV1 != nil
}

// SetsScale reports whether an entry of managedFields sets the replicas through the scale subresource.
func SetsScale(f metav1.ManagedFieldsEntry) bool {
	return f.Subresource == "scale" && bytes.Contains(f.FieldsV1.GetRawBytes(), []byte(`"f:replicas"`))
}

// OwnedFieldsChanged passes events that change what was applied: an object is deleted, another manager took some of our fields, or a person
// added fields. The status that controllers keep writing on quotas and namespaces does not pass.
var OwnedFieldsChanged = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false },
	UpdateFunc: func(e event.UpdateEvent) bool {
		return OwnedFields(e.ObjectOld) != OwnedFields(e.ObjectNew)
	},
}

// ChangedByHand reports whether a person changed fields of the desired state with kubectl. The next apply takes such fields back.
func ChangedByHand(o metav1.Object) bool {
	return slices.ContainsFunc(o.GetManagedFields(), EditedByHand)
}

// Applied reports whether kubeop applied the object, by the managers of its fields. Anyone who may write the object can remove labels, but
// not these.
func Applied(o metav1.Object) bool { return slices.ContainsFunc(o.GetManagedFields(), IsOurs) }

// Owns reports whether kubeop, or Helm for it, manages the field of a live object.
func Owns(live metav1.Object, path []string) bool {
	return slices.ContainsFunc(live.GetManagedFields(), func(f metav1.ManagedFieldsEntry) bool { return below(f, path) != nil })
}

// ItemNames returns the names of the items that kubeop manages in a list of a live object whose items are known by their names.
func ItemNames(live metav1.Object, path []string) (names []string) {
	for _, f := range live.GetManagedFields() {
		for field := range below(f, path) {
			text, _ := strings.CutPrefix(field, "k:")
			var key struct{ Name string }
			if json.Unmarshal([]byte(text), &key) == nil && key.Name != "" && !slices.Contains(names, key.Name) {
				names = append(names, key.Name)
			}
		}
	}
	return names
}

// below returns what an entry of managedFields has below a field; nil if it is not one of kubeop's, or has not the field.
func below(f metav1.ManagedFieldsEntry, path []string) map[string]any {
	var fields map[string]any
	if !IsOurs(f) || json.Unmarshal(f.FieldsV1.GetRawBytes(), &fields) != nil {
		return nil
	}
	for _, name := range path {
		inner, ok := fields["f:"+name].(map[string]any)
		if !ok {
			return nil
		}
		fields = inner
	}
	return fields
}

// SlimFields removes the managedFields of other controllers, except those of scaling, from the metadata of an object before a cache holds
// it. Equal fields of many objects are stored once.
func SlimFields(object any) (any, error) {
	o, ok := object.(metav1.Object)
	if !ok {
		return object, nil
	}
	var kept []metav1.ManagedFieldsEntry
	for _, f := range o.GetManagedFields() {
		if IsOurs(f) || EditedByHand(f) || SetsScale(f) {
			f.FieldsV1 = alike.one(f.FieldsV1)
			kept = append(kept, f)
		}
	}
	o.SetManagedFields(kept)
	return object, nil
}
