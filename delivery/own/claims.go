package own

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// resourcePolicy keeps an object when its release is uninstalled, or when it left the chart:
// https://helm.sh/docs/howto/charts_tips_and_tricks/#tell-helm-not-to-uninstall-a-resource
const resourcePolicy = "helm.sh/resource-policy"

// Retain has claims outlive what makes them. Claims carry the App's own policy, which is read when the App is gone; of a
// release they are kept by Helm; and StatefulSets keep theirs when they are deleted or scaled down, whatever they say: Kubernetes
// would delete those without a confirmation. It returns the StatefulSets that had another policy.
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

// retainClaims changes what a StatefulSet's persistentVolumeClaimRetentionPolicy (KEP-1847) deletes. One that says nothing
// keeps its claims anyway.
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
