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

// podSecurityOf returns the strictest level of a tenant and its policies, in the newest version that a policy names; nil if no policy names a level.
// The version of a policy with another level counts as well, because its checks have to hold, too: each level has those of the levels below it.
func podSecurityOf(tenant *v1alpha1.Tenant, policies []v1alpha1.Policy) *v1alpha1.AppliedPodSecurity {
	var held *v1alpha1.AppliedPodSecurity
	state := func(level, by string) {
		switch {
		case strictness[level] > strictness[held.Level]:
			held.Level, held.Policies = level, []string{by}
		case level == held.Level:
			held.Policies = append(held.Policies, by)
		}
	}
	for i := range policies {
		rule := policies[i].Spec.PodSecurity
		if rule == nil {
			continue
		}
		if held == nil {
			held = &v1alpha1.AppliedPodSecurity{}
		}
		state(rule.Level, policies[i].Name)
		held.Version = newer(held.Version, cmp.Or(rule.Version, latestVersion))
	}
	if held == nil {
		return nil
	}
	required := held.Level
	if state(levelOf(tenant), TenantFile); held.Level != required {
		held.Version = latestVersion
	}
	return held
}

// PodSecurity returns the level that holds in a project of the tenant: that of its Guardrails, if they have one that is not below the Tenant's. rules
// is nil for none.
func PodSecurity(tenant *v1alpha1.Tenant, rules *v1alpha1.GuardrailsSpec) v1alpha1.AppliedPodSecurity {
	level := levelOf(tenant)
	if rules != nil && rules.PodSecurity != nil && strictness[rules.PodSecurity.Level] >= strictness[level] {
		return *rules.PodSecurity
	}
	return v1alpha1.AppliedPodSecurity{PodSecurityRules: v1alpha1.PodSecurityRules{Level: level, Version: latestVersion}, Policies: []string{TenantFile}}
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
