package guardrails

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeop/kubeop/api/v1alpha1"
	defaults "github.com/kubeop/kubeop/delivery/classes"
	"github.com/kubeop/kubeop/delivery/podspec"
)

// Unnamed returns the rules that an object breaks because it names no class, in the order of actions and policies. What names none gets the cluster's default one,
// which a policy has to allow, too: the API server refuses the Ingress, the claim or the pod.
func Unnamed(object *unstructured.Unstructured, spec *v1alpha1.GuardrailsSpec, usual defaults.Usual) (all []Violation) {
	for _, action := range []v1alpha1.PolicyAction{v1alpha1.DenyAction, v1alpha1.WarnAction, v1alpha1.AuditAction} {
		for _, applied := range *listOf(spec, action) {
			for _, f := range unnamed(object, applied.Classes, usual) {
				all = append(all, Violation{Rule: Classes, Policy: applied.Policy, Action: action, Field: f.field, Why: f.why})
			}
		}
	}
	return all
}

func unnamed(object *unstructured.Unstructured, rule *v1alpha1.ClassRules, usual defaults.Usual) (broken []found) {
	if rule == nil {
		return nil
	}
	for _, of := range []struct {
		field, what, name string
		allowed           []string
		needed            func(*unstructured.Unstructured) bool
	}{
		{"classes.storage", "storageClassName", usual.Storage, rule.Storage, needsStorageClass},
		{"classes.ingress", "ingressClassName", usual.Ingress, rule.Ingress, needsIngressClass},
		{"classes.priority", "priorityClassName", usual.Priority, rule.Priority, needsPriorityClass},
	} {
		if of.name != "" && len(of.allowed) > 0 && !slices.Contains(of.allowed, of.name) && of.needed(object) {
			broken = append(broken, found{of.field, fmt.Sprintf("names no %s, and so gets %s, the default of the cluster; allowed are: %s", of.what, of.name, listed(of.allowed))})
		}
	}
	if len(rule.Ingress) > 0 && hasNoIngressClass(object, usual) {
		broken = append(broken, found{"classes.ingress", "has no ingressClassName; allowed are: " + listed(rule.Ingress)})
	}
	return broken
}

// hasNoIngressClass reports whether an Ingress names no class and gets none: the API server fills in the default one only where neither the field nor the annotation is
// there, and there may be none.
func hasNoIngressClass(object *unstructured.Unstructured, usual defaults.Usual) bool {
	named := ingressClasses(object)
	return named != nil && strings.Join(named, "") == "" && (usual.NoIngress || !needsIngressClass(object))
}

// needsStorageClass reports whether a claim gets the default class: an empty one counts as named, as does an empty annotation.
func needsStorageClass(object *unstructured.Unstructured) bool {
	return slices.ContainsFunc(claimsOf(object), func(claim map[string]any) bool { return lacks(claim, "storageClassName", storageClassAnnotation) })
}

func needsIngressClass(object *unstructured.Unstructured) bool {
	return object.GroupVersionKind().GroupKind() == ingressKind && lacks(object.Object, "ingressClassName", ingressClassAnnotation)
}

func needsPriorityClass(object *unstructured.Unstructured) bool {
	pod := podspec.Of(object)
	return pod != nil && (pod.Spec["priorityClassName"] == nil || pod.Spec["priorityClassName"] == "")
}

// lacks reports whether an object has neither a field in its spec nor an annotation.
func lacks(object map[string]any, field, annotation string) bool {
	spec, _ := object["spec"].(map[string]any)
	metadata, _ := object["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	_, annotated := annotations[annotation]
	return spec[field] == nil && !annotated
}
