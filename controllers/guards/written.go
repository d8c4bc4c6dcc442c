package guards

import (
	"strings"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/few"
	"github.com/kubeop/kubeop/delivery/guardrails"
)

// Names of the guards that are objects of Kubernetes, which kubeop writes into each project.
const (
	// Limits are those of containers and claims.
	Limits = guardrails.Limits
	// Quota is what a project may use.
	Quota = "Quota"
	// Egress is what pods may connect to outside of the cluster.
	Egress = "Egress"
)

// beside are guards that the API server does not enforce alone, whatever the admission policies of the chart are.
var beside = []string{Network, Tier, Added, Defaults, Egress, guardrails.Sources}

// written returns the guards that are objects of Kubernetes. The API server has the admission plugins for LimitRanges and ResourceQuotas by default.
func written(tenant *v1alpha1.Tenant, policies []v1alpha1.Policy) []v1alpha1.GuardStatus {
	limits := v1alpha1.GuardStatus{Name: Limits, State: v1alpha1.GuardAbsent, Reason: "no policy of the tenant has such a rule"}
	if files := stating(policies, false, func(s *v1alpha1.PolicySpec) bool { return s.Limits != nil }); files != "" {
		limits.State, limits.Reason = v1alpha1.GuardEnforced, "the LimitRange of each project, by spec.limits of "+files
	}
	quota := v1alpha1.GuardStatus{Name: Quota, State: v1alpha1.GuardEnforced, Reason: "the ResourceQuota of each project, which has at most the defaults of projects"}
	if files := stating(policies, len(tenant.Spec.Quota) > 0, func(s *v1alpha1.PolicySpec) bool { return s.Quota != nil && len(s.Quota.Max) > 0 }); files != "" {
		quota.Reason = "the ResourceQuota of each project, by spec.quota of " + files
	}
	egress := v1alpha1.GuardStatus{Name: Egress, State: v1alpha1.GuardRenderedOnly, Reason: "the NetworkPolicy of each project opens nothing outside of the cluster"}
	if files := stating(policies, len(tenant.Spec.Egress) > 0, func(s *v1alpha1.PolicySpec) bool { return s.Egress != nil }); files != "" {
		egress.Reason = "the NetworkPolicy of each project opens outside of the cluster only what spec.egress allows of " + files
	}
	egress.Reason += "; kubeop cannot see whether the network plugin of the cluster enforces it"
	return []v1alpha1.GuardStatus{limits, quota, egress}
}

// stating lists the files of the policies that state something, and that of the tenant; "" for none.
func stating(policies []v1alpha1.Policy, tenant bool, states func(*v1alpha1.PolicySpec) bool) string {
	var names []string
	for i := range policies {
		if states(&policies[i].Spec) {
			names = append(names, policies[i].Name)
		}
	}
	if tenant {
		names = append(names, guardrails.TenantFile)
	}
	return filesOf(names)
}

// filesOf lists the files of policies, by their names, and of the tenant.
func filesOf(names []string) string {
	var files []string
	for _, name := range names {
		if name != guardrails.TenantFile {
			name = "policies/" + name + ".yaml"
		}
		files = append(files, name)
	}
	return strings.Join(few.Of(files, 4), ", ")
}
