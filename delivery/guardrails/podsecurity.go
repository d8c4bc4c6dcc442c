package guardrails

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// The levels of Pod Security that a Tenant or a policy can state, and the newest version of their checks.
const (
	baseline      = "baseline"
	restricted    = "restricted"
	latestVersion = "latest"
)

// strictness orders the levels. An unknown one counts as privileged.
var strictness = map[string]int{baseline: 1, restricted: 2}

// podSecurityOf returns the strictest level of a tenant and its policies that refuse; nil if no such policy names a level.
func podSecurityOf(tenant *v1alpha1.Tenant, policies []v1alpha1.Policy) *v1alpha1.AppliedPodSecurity {
	held := strictestOf(policies, v1alpha1.DenyAction)
	if held == nil {
		return nil
	}
	required := held.Level
	if state(held, levelOf(tenant), TenantFile); held.Level != required {
		held.Version = latestVersion
	}
	return held
}

// podSecurityNotices returns the strictest level of the policies that only warn, and that of those that only record.
func podSecurityNotices(policies []v1alpha1.Policy) (all []v1alpha1.AppliedPodSecurity) {
	for _, action := range []v1alpha1.PolicyAction{v1alpha1.WarnAction, v1alpha1.AuditAction} {
		if of := strictestOf(policies, action); of != nil {
			all = append(all, *of)
		}
	}
	return all
}

// strictestOf returns the strictest level of the policies with an action, in the newest version that one of them names; nil if none of them names a level.
// The version of a policy with another level counts as well, because its checks have to hold, too: each level has those of the levels below it.
func strictestOf(policies []v1alpha1.Policy, action v1alpha1.PolicyAction) (held *v1alpha1.AppliedPodSecurity) {
	for i := range policies {
		rule := policies[i].Spec.PodSecurity
		if rule == nil || cmp.Or(rule.Action, v1alpha1.DenyAction) != action {
			continue
		}
		if held == nil {
			held = &v1alpha1.AppliedPodSecurity{PodSecurityRules: v1alpha1.PodSecurityRules{Action: action}}
		}
		state(held, rule.Level, policies[i].Name)
		held.Version = newer(held.Version, cmp.Or(rule.Version, latestVersion))
	}
	return held
}

// state adds a level that a file states to what is held.
func state(held *v1alpha1.AppliedPodSecurity, level, by string) {
	switch {
	case strictness[level] > strictness[held.Level]:
		held.Level, held.Policies = level, []string{by}
	case level == held.Level:
		held.Policies = append(held.Policies, by)
	}
}

// PodSecurity returns the level that holds in a project of the tenant: that of its Guardrails, if they have one that is not below the Tenant's. rules
// is nil for none.
func PodSecurity(tenant *v1alpha1.Tenant, rules *v1alpha1.GuardrailsSpec) v1alpha1.AppliedPodSecurity {
	level := levelOf(tenant)
	if rules != nil && rules.PodSecurity != nil && strictness[rules.PodSecurity.Level] >= strictness[level] {
		return *rules.PodSecurity
	}
	return v1alpha1.AppliedPodSecurity{PodSecurityRules: v1alpha1.PodSecurityRules{Action: v1alpha1.DenyAction, Level: level, Version: latestVersion}, Policies: []string{TenantFile}}
}

// NoticedPodSecurity returns the levels of the policies that only warn, and of those that only record: what is enforced, if they have none that is stricter or newer. What is warned about is
// recorded, too. rules is nil for none.
func NoticedPodSecurity(enforced v1alpha1.PodSecurityRules, rules *v1alpha1.GuardrailsSpec) (warned, recorded v1alpha1.PodSecurityRules) {
	warned, recorded = enforced, enforced
	if rules == nil {
		return warned, recorded
	}
	for _, notice := range rules.PodSecurityNotices {
		if Demands(notice.PodSecurityRules, recorded) {
			recorded = notice.PodSecurityRules
		}
		if notice.Action == v1alpha1.WarnAction && Demands(notice.PodSecurityRules, warned) {
			warned = notice.PodSecurityRules
		}
	}
	return warned, recorded
}

// Demands reports whether a level is stricter than another one, or has a newer version of the same checks.
func Demands(level, than v1alpha1.PodSecurityRules) bool {
	more := strictness[level.Level] - strictness[than.Level]
	return more > 0 || more == 0 && minorOf(level.Version) > minorOf(than.Version)
}

// levelOf is the level that the Tenant states.
func levelOf(tenant *v1alpha1.Tenant) string { return cmp.Or(tenant.Spec.PodSecurity, restricted) }

// newer returns the newer of two versions; "" is older than all.
func newer(a, b string) string {
	if minorOf(a) > minorOf(b) {
		return a
	}
	return b
}

// minorOf returns the minor version of "v1.34"; that of latest is above all others.
func minorOf(version string) int {
	if version == latestVersion {
		return 1 << 30
	}
	minor, err := strconv.Atoi(strings.TrimPrefix(version, "v1."))
	if err != nil {
		return -1
	}
	return minor
}
