package podsecurity

import (
	"cmp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/guardrails"
	"github.com/kubeop/kubeop/delivery/policy"
)

// Notices returns the rules of levels of which policies only warn or only record that pods among the objects break, as if kubeop had filled in what these levels require, which it would
// do with the action Deny. fill is what the app says about that. What the judge refuses, which is under the same rules, is not among them. rules is nil for none.
func (j Judge) Notices(objects []*unstructured.Unstructured, rules *v1alpha1.GuardrailsSpec, fill v1alpha1.PodSecurityFill) (all []policy.Notice) {
	if rules == nil || j.Tenant == v1alpha1.PlatformTenant {
		return nil
	}
	newest := Judge{Version: cmp.Or(j.newest, j.Version)}
	for _, of := range rules.PodSecurityNotices {
		noticing := Judge{Level: of.Level, Version: newest.version(of.Version), Tenant: j.Tenant}
		for _, object := range objects {
			for _, violation := range noticing.beyond(j, object, FillOf(fill, of.Level)) {
				all = append(all, policy.Notice{Object: violation.Object, Violation: guardrails.Violation{
					Rule: Rule, Policy: of.Policies[0], Action: of.Action, Field: "podSecurity", Why: violation.Why,
				}})
			}
		}
	}
	return all
}

// beyond returns the rules that the pod of an object breaks once it is filled in, without those that it breaks by another judge as it is.
func (j Judge) beyond(enforced Judge, object *unstructured.Unstructured, fill string) (all []*policy.Violation) {
	if podOf(object) == nil {
		return nil
	}
	refused := map[string]bool{}
	for _, violation := range enforced.judge(object) {
		refused[violation.Remedies[0].About] = true
	}
	filled := object.DeepCopy()
	Fill([]*unstructured.Unstructured{filled}, fill)
	for _, violation := range j.judge(filled) {
		if !refused[violation.Remedies[0].About] {
			all = append(all, violation)
		}
	}
	return all
}
