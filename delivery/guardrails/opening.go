package guardrails

import (
	"fmt"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/isolation"
)

// ProjectFile stands in place of the name of a Policy where the rule is what a project's NetworkPolicies may open, or a default limit that no policy states.
// No Policy can have that name.
const ProjectFile = "project.yaml"

// OwnNetworkPolicies reports whether the apps of a project may have NetworkPolicies; spec is nil if no policies hold.
func OwnNetworkPolicies(spec *v1alpha1.GuardrailsSpec) bool {
	return spec != nil && spec.Network != nil && spec.Network.Policies == v1alpha1.OwnNetworkPolicies
}

// opening: a NetworkPolicy may open only what the project may have. Package policy refuses it if the project's apps have none.
func opening(object *unstructured.Unstructured, spec *v1alpha1.GuardrailsSpec) []Violation {
	kind := object.GroupVersionKind()
	if !OwnNetworkPolicies(spec) || kind.Group != networkingv1.GroupName || kind.Kind != "NetworkPolicy" {
		return nil
	}
	broken := func(why string) Violation {
		return Violation{Rule: NetworkPolicies, Policy: ProjectFile, Action: v1alpha1.DenyAction, Field: "network", Why: why}
	}
	if isolation.OfPlatform(object.GetName()) {
		return []Violation{broken("has a name that is kept for the platform's own: choose another name in Git")}
	}
	policy := &networkingv1.NetworkPolicy{}
	if len(spec.Network.From) == 0 && len(spec.Network.To) == 0 {
		return nil // A plan of a commit that lets a project have NetworkPolicies does not know more. kubeop always lists the pods of the project.
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, policy); err != nil {
		return []Violation{broken(fmt.Sprintf("cannot be read as a NetworkPolicy: %v", err))}
	}
	var all []Violation
	for _, excess := range isolation.Narrow(&policy.Spec, spec.Network) {
		why := excess.Why
		if len(excess.Allowed) > 0 {
			why += ": " + listed(excess.Allowed)
		}
		all = append(all, broken(why))
	}
	return all
}
