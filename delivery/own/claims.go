package own

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// resourcePolicy is Helm's annotation that keeps an object when its release is uninstalled, or when the object left the chart:
// https://helm.sh/docs/howto/charts_tips_and_tricks/#tell-helm-not-to-uninstall-a-resource
const resourcePolicy = "helm.sh/resource-policy"

// Retain makes claims outlive the objects that create them. Claims get the App's own policy as an annotation, which is read when the App is
// gone. Helm keeps the claims of a release. StatefulSets keep their claims when they are deleted or scaled down, whatever their manifests
// say, because Kubernetes would delete these claims without a confirmation. It returns the StatefulSets that had another policy.
func Retain(objects []*unstructured.Unstructured, app *v1alpha1.App) (changed []string) {
	for _, o := range objects {
		switch o.GroupVersionKind().GroupKind() {
		case schema.GroupKind{Kind: "PersistentVolumeClaim"}:
			if app.Spec.ClaimDeletionPolicy != "" {
				annotate(o, v1alpha1.ClaimPolicyAnnotation, string(app.Spec.ClaimDeletionPolicy))
			}
			if app.Spec.Helm != nil {
				annotate(o, resourcePolicy, "keep")
			}
		case schema.GroupKind{Group: "apps", Kind: "StatefulSet"}:
			if retainClaims(o) {
				changed = append(changed, o.GetName())
			}
		}
	}
	slices.Sort(changed)
	return changed
}

func annotate(o *unstructured.Unstructured, name, value string) {
	annotations := o.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[name] = value
	o.SetAnnotations(annotations)
}

// retainClaims changes what a StatefulSet's persistentVolumeClaimRetentionPolicy (KEP-1847) deletes. A StatefulSet without this field keeps
// its claims anyway.
func retainClaims(set *unstructured.Unstructured) (changed bool) {
	policy, _, _ := unstructured.NestedFieldNoCopy(set.Object, "spec", "persistentVolumeClaimRetentionPolicy")
	fields, _ := policy.(map[string]any)
	for _, when := range []string{"whenDeleted", "whenScaled"} {
		if value, ok := fields[when]; ok && value != "Retain" {
			fields[when], changed = "Retain", true
		}
	}
	return changed
}
