package fieldmanager

import (
	"encoding/json"
	"maps"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Unmanaged are fields of a manifest that kubeop leaves to other field managers, whatever value the manifest has.
type Unmanaged struct {
	// Replicas: an autoscaler sets spec.replicas.
	Replicas bool
	// CABundles: cert-manager writes every caBundle.
	CABundles bool
	// Ignored are paths of fields that others may change once the object exists, as split JSON pointers. The object is created with these
	// fields. Afterwards they are neither applied nor owned, and a change of them is no drift.
	Ignored [][]string
	// Manifest has the ignored fields; nil if there are none.
	Manifest *unstructured.Unstructured
}

// Without returns the object without the unmanaged fields. The given object is not changed.
func (u Unmanaged) Without(o *unstructured.Unstructured) *unstructured.Unstructured {
	if u.Replicas && HasReplicas(o) {
		spec := maps.Clone(o.Object["spec"].(map[string]any))
		delete(spec, "replicas")
		o = &unstructured.Unstructured{Object: maps.Clone(o.Object)}
		o.Object["spec"] = spec
	}
	if u.CABundles {
		o = o.DeepCopy()
		drop(o.Object, "caBundle")
	}
	return u.strip(o)
}

// Release removes the unmanaged fields from an entry of managedFields (KEP-555) of kubeop or of kubectl, and reports whether there were
// any. A field that its last owner ceases to apply gets its default value, such as one replica of a Deployment; a field without an owner
// keeps its value.
func (u Unmanaged) Release(f *metav1.ManagedFieldsEntry) bool {
	releasing := u.Replicas || u.CABundles || len(u.Ignored) > 0
	if !releasing || (!IsOurs(*f) && !EditedByHand(*f)) {
		return false
	}
	fields := map[string]any{}
	if err := json.Unmarshal(f.FieldsV1.GetRawBytes(), &fields); err != nil {
		return false
	}
	found := false
	spec, _ := fields["f:spec"].(map[string]any)
	if _, ok := spec["f:replicas"]; ok && u.Replicas {
		found = true
		if delete(spec, "f:replicas"); len(spec) == 0 {
			delete(fields, "f:spec")
		}
	}
	if u.CABundles && drop(fields, "f:caBundle") {
		found = true
	}
	found = u.disown(fields) || found
	if found {
		raw, _ := json.Marshal(fields) // What was decoded can be encoded.
		f.FieldsV1.SetRawBytes(raw)
	}
	return found
}

// drop deletes a key at any depth, and the objects that contain nothing else.
func drop(value any, key string) (dropped bool) {
	switch value := value.(type) {
	case map[string]any:
		if _, ok := value[key]; ok {
			delete(value, key)
			dropped = true
		}
		for k, child := range value {
			if !drop(child, key) {
				continue
			}
			dropped = true
			if inner, ok := child.(map[string]any); ok && len(inner) == 0 {
				delete(value, k)
			}
		}
	case []any:
		for _, item := range value {
			dropped = drop(item, key) || dropped
		}
	}
	return dropped
}

// InjectsCABundles reports whether cert-manager's cainjector writes the object's CA bundles: an annotation says from where.
func InjectsCABundles(o *unstructured.Unstructured) bool {
	if !strings.HasSuffix(o.GroupVersionKind().Group, ".k8s.io") {
		return false
	}
	for annotation := range o.GetAnnotations() {
		if strings.HasPrefix(annotation, "cert-manager.io/inject-") {
			return true
		}
	}
	return false
}

// HasReplicas reports whether the manifest sets spec.replicas.
func HasReplicas(o *unstructured.Unstructured) bool {
	spec, _ := o.Object["spec"].(map[string]any)
	_, ok := spec["replicas"]
	return ok
}

// Scaled reports whether the replicas were set through the scale subresource, as autoscalers and `kubectl scale` do.
func Scaled(live metav1.Object) bool {
	for _, f := range live.GetManagedFields() {
		if SetsScale(f) {
			return true
		}
	}
	return false
}
