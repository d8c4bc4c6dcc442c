package inventory

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// RecordPolicies records in the entries the prune policies of their manifests: after an object left its source, its policy is known only
// from the record.
func RecordPolicies(entries []v1alpha1.InventoryEntry, objects []*unstructured.Unstructured) {
	policies := make(map[string]v1alpha1.PrunePolicy, len(objects))
	for _, o := range objects {
		policies[IDOf(o).String()] = AnnotatedPolicy(o)
	}
	for i := range entries {
		if policy, ok := policies[entries[i].ID]; ok {
			entries[i].Policy = policy
		}
	}
}

// PolicyOf returns the prune policy of a recorded object: the strictest of its kind, its record and the live object, if there is one.
func PolicyOf(id ObjectID, e v1alpha1.InventoryEntry, live metav1.Object) v1alpha1.PrunePolicy {
	recorded := e.Policy
	if recorded == v1alpha1.PolicyClaims {
		recorded = "" // Whether the object still owns claims is checked again; the record must not hide the policy of its kind.
	}
	policy := max(KindPolicy(id), recorded)
	if live != nil {
		policy = max(policy, AnnotatedPolicy(live))
	}
	return policy
}

// KindPolicy protects the kinds for which a deletion also deletes data or other objects.
func KindPolicy(id ObjectID) v1alpha1.PrunePolicy {
	if LossOf(id.GroupKind()) != "" {
		return v1alpha1.PolicyConfirm
	}
	return ""
}

// AnnotatedPolicy returns the prune policy that the annotations of an object state; "" for none.
func AnnotatedPolicy(o metav1.Object) v1alpha1.PrunePolicy {
	switch o.GetAnnotations()[v1alpha1.PruneAnnotation] {
	case v1alpha1.PruneConfirm:
		return v1alpha1.PolicyConfirm
	case v1alpha1.PruneDisabled:
		return v1alpha1.PolicyDisabled
	}
	if keptByHelm(o) {
		return v1alpha1.PolicyDisabled
	}
	return ""
}

// keptByHelm reports whether an object of a Helm release has Helm's annotation that keeps it after an uninstall.
func keptByHelm(o metav1.Object) bool {
	annotations := o.GetAnnotations()
	return annotations["meta.helm.sh/release-name"] != "" && strings.EqualFold(strings.TrimSpace(annotations["helm.sh/resource-policy"]), "keep")
}

// losses are the kinds for which a deletion also deletes data or other objects, and what to do instead.
var losses = map[schema.GroupKind]string{
	{Kind: "PersistentVolumeClaim"}: "its volume goes with it: make a claim of another name in Git, and copy the data",
	{Kind: "Namespace"}:             "everything in it goes with it: make a namespace of another name in Git",
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: "every object of the kind goes with it: add a version to the definition, or define another kind, in Git",
}

// LossOf says what else would be lost with an object of the kind, and what to do instead; "" for nothing.
func LossOf(kind schema.GroupKind) string { return losses[kind] }
