package apply

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// Protect records in the entries what the manifests they were applied from say about deletion: once an object left its
// source, nothing else remembers it.
func Protect(entries []v1alpha1.InventoryEntry, objects []*unstructured.Unstructured) {
	policies := make(map[string]v1alpha1.PrunePolicy, len(objects))
	for _, o := range objects {
		policies[IDOf(o).String()] = annotatedPolicy(o)
	}
	for i := range entries {
		if policy, ok := policies[entries[i].ID]; ok {
			entries[i].Policy = policy
		}
	}
}

// protection returns what protects a recorded object: the strictest of what its kind, its record and the live object, where
// there is one, say.
func protection(id ObjectID, e v1alpha1.InventoryEntry, live metav1.Object) v1alpha1.PrunePolicy {
	recorded := e.Policy
	if recorded == v1alpha1.PolicyClaims {
		recorded = "" // Whether it still owns claims is looked up; what its kind says must not be hidden by it.
	}
	policy := max(kindPolicy(id), recorded)
	if live != nil {
		policy = max(policy, annotatedPolicy(live))
	}
	return policy
}

// kindPolicy protects the kinds that take data or other objects with them.
func kindPolicy(id ObjectID) v1alpha1.PrunePolicy {
	if _, ok := precious[schema.GroupKind{Group: id.Group, Kind: id.Kind}]; ok {
		return v1alpha1.PolicyConfirm
	}
	return ""
}

func annotatedPolicy(o metav1.Object) v1alpha1.PrunePolicy {
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

// keptByHelm reports whether an object of a Helm release carries Helm's annotation by which it outlives the release.
func keptByHelm(o metav1.Object) bool {
	annotations := o.GetAnnotations()
	return annotations["meta.helm.sh/release-name"] != "" && strings.EqualFold(strings.TrimSpace(annotations["helm.sh/resource-policy"]), "keep")
}

// The annotations that Slim leaves, shared by all objects that carry them.
var (
	confirmed = map[string]string{v1alpha1.PruneAnnotation: v1alpha1.PruneConfirm}
	disabled  = map[string]string{v1alpha1.PruneAnnotation: v1alpha1.PruneDisabled}
)

// protecting returns of an object's annotations those that protect it.
func protecting(o metav1.Object) map[string]string {
	switch annotatedPolicy(o) {
	case v1alpha1.PolicyConfirm:
		return confirmed
	case v1alpha1.PolicyDisabled:
		return disabled
	}
	return nil
}
