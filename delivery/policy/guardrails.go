package policy

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/guardrails"
	"github.com/kubeop/kubeop/delivery/render/objectset"
)

// Notice is an object that breaks a rule of a Policy.
type Notice struct {
	// Object as "<kind>/<name>".
	Object string
	guardrails.Violation
}

// String returns one line: the object, what is wrong with it, and where the rule is written.
func (n Notice) String() string { return n.Object + " " + n.Why + "; see " + n.Where() }

// Judge returns the rules of Policies that objects break, whatever the action of the rule, in the order of the objects. spec is nil if no policy
// holds. Lists that cannot be expanded are left out: Check refuses them.
func Judge(objects []*unstructured.Unstructured, spec *v1alpha1.GuardrailsSpec) []Notice {
	if spec == nil {
		return nil
	}
	var all []Notice
	for _, object := range objects {
		members, err := objectset.Expand(object)
		if err != nil {
			continue
		}
		for _, member := range members {
			for _, v := range guardrails.Check(member, spec) {
				all = append(all, Notice{NameOf(member), v})
			}
		}
	}
	return all
}

// Refusal returns what is broken and denied as an error of package policy; nil for nothing.
func Refusal(broken []Notice) error {
	var found []*Violation
	for _, n := range broken {
		if n.Action == v1alpha1.DenyAction {
			found = append(found, &Violation{Object: n.Object, Rule: n.Rule, Why: n.Why, Remedies: []Remedy{{
				About: "policy " + n.Policy, Text: "change that in Git, or ask an administrator of the cluster to change " + n.Where(),
			}}})
		}
	}
	return join(found)
}
