package check

import (
	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/quota"
	"github.com/kubeop/kubeop/gitops/code"
)

// checkBudget checks of a budget what the schema cannot check: its amounts, and that the quotas of projects count what it names.
func (d *Result) checkBudget(tenant *v1alpha1.Tenant) {
	for _, fault := range quota.CheckBudget(tenant.Spec.Budget, tenant.Spec.Quota) {
		d.AddAt(code.InvalidBudget, "spec.budget["+string(fault.Name)+"]", "%s", fault)
	}
}

// checkQuota checks of the quotas of a project and its previews what the schema cannot check.
func (d *Result) checkQuota(project *v1alpha1.Project) {
	faults := quota.CheckRequested("quota", project.Spec.Quota)
	if of := project.Spec.Previews; of != nil {
		faults = append(faults, quota.CheckRequested("previews.quota", of.Quota)...)
	}
	for _, fault := range faults {
		d.AddAt(code.InvalidValue, "spec."+fault.Field, "spec.%s: %s", fault.Field, fault.Why)
	}
}
