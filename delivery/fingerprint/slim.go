package fingerprint

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/fieldmanager"
	"github.com/kubeop/kubeop/delivery/inventory"
)

// Slim removes from the metadata of an object what kubeop never reads, before a cache holds it: annotations, except those that protect the
// object from deletion or allow its deletion, and what fieldmanager.SlimFields removes. Tenants may write both, in any size.
func Slim(object any) (any, error) {
	if o, ok := object.(metav1.Object); ok {
		o.SetAnnotations(allowing(o, protecting(o)))
	}
	return fieldmanager.SlimFields(object)
}

// The annotations that Slim keeps, shared by all objects that carry them.
var (
	confirmed = map[string]string{v1alpha1.PruneAnnotation: v1alpha1.PruneConfirm}
	disabled  = map[string]string{v1alpha1.PruneAnnotation: v1alpha1.PruneDisabled}
)

// protecting returns the annotations of an object that protect it from deletion.
func protecting(o metav1.Object) map[string]string {
	switch inventory.AnnotatedPolicy(o) {
	case v1alpha1.PolicyConfirm:
		return confirmed
	case v1alpha1.PolicyDisabled:
		return disabled
	}
	return nil
}

// allowing adds the annotations of a namespace that allow its deletion.
func allowing(o metav1.Object, kept map[string]string) map[string]string {
	for _, name := range []string{v1alpha1.AllowDeletionAnnotation, v1alpha1.VolumesRetainedAnnotation} {
		value, ok := o.GetAnnotations()[name]
		if !ok {
			continue
		}
		kept = maps.Clone(kept) // All objects share the map of protecting annotations.
		if kept == nil {
			kept = map[string]string{}
		}
		kept[name] = value
	}
	return kept
}
