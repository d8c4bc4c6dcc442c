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

// Notices returns the rules of Policies that objects break, whatever the action of the rule, in the order of the objects. Lists that cannot be
// expanded are left out: Check refuses them.
func Notices(objects []*unstructured.Unstructured, rules *v1alpha1.GuardrailsSpec) []Notice {
	if rules == nil {
		return nil
	}
	var all []Notice
	for _, object := range objects {
		members, err := objectset.Expand(object)
		if err != nil {
			continue
		}
		for _, member := range members {
			for _, v := range guardrails.Check(member, rules) {
				all = append(all, Notice{NameOf(member), v})
			}
		}
	}
	return all
}

// guarded returns the violations of rules of Policies whose action is Deny.
func (b Bounds) guarded(object *unstructured.Unstructured) []*Violation {
	if b.Guardrails == nil {
		return nil
	}
	var found []*Violation
	for _, v := range guardrails.Check(object, &v1alpha1.GuardrailsSpec{Deny: b.Guardrails.Deny}) {
		found = append(found, &Violation{Object: NameOf(object), Rule: v.Rule, Why: v.Why, Remedies: []Remedy{{"policy " + v.Policy,
			"change that in Git, or ask an administrator of the cluster to change " + v.Where()}}})
	}
	return found
}
