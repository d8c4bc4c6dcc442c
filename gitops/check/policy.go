package check

import (
	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/guardrails"
	"github.com/kubeop/kubeop/delivery/limitrange"
	"github.com/kubeop/kubeop/delivery/quota"
	"github.com/kubeop/kubeop/delivery/signer"
	"github.com/kubeop/kubeop/gitops/code"
)

// checkPolicy checks of a policy what the schema cannot check: the keys and identities of its signatures, the amounts of its quota and its limits, and the
// labels and annotations that it adds.
func (d *Result) checkPolicy(policy *v1alpha1.Policy) {
	if rules := policy.Spec.Images; rules != nil {
		for _, fault := range signer.Check(rules.Verify) {
			d.AddAt(code.InvalidPolicy, "spec.images.verify"+fault.Field, "spec.images.verify%s: %s", fault.Field, fault.Why)
		}
	}
	if rules := policy.Spec.Quota; rules != nil {
		for _, fault := range quota.CheckRules(rules) {
			d.AddAt(code.InvalidPolicy, "spec."+fault.Field, "spec.%s: %s", fault.Field, fault.Why)
		}
	}
	for _, fault := range guardrails.CheckAdded(policy) {
		d.AddAt(code.InvalidPolicy, "spec."+fault.Field, "spec.%s: %s", fault.Field, fault.Why)
	}
	if of := policy.Spec.Limits; of != nil {
		for _, fault := range limitrange.Check(of) {
			d.AddAt(code.InvalidPolicy, "spec."+fault.Field, "spec.%s: %s", fault.Field, fault.Why)
		}
	}
}
