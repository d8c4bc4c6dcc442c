package guardrails

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// levelled returns policies of Pod Security, each written as "<name>: <level> <version>".
func levelled(texts ...string) (policies []v1alpha1.Policy) {
	for _, text := range texts {
		name, rule, stated := strings.Cut(text, ": ")
		policy := v1alpha1.Policy{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if level, version, _ := strings.Cut(rule, " "); stated {
			policy.Spec.PodSecurity = &v1alpha1.PodSecurityRules{Level: level, Version: version}
		}
		policies = append(policies, policy)
	}
	return policies
}

// TestTheStrictestLevelHolds of a tenant and its policies, and never less than any of them requires.
func TestTheStrictestLevelHolds(t *testing.T) {
	for name, c := range map[string]struct {
		tenant   string
		policies []v1alpha1.Policy
		want     string
	}{
		"nobody says anything":                      {"", nil, "restricted latest [tenant.yaml]"},
		"a policy about something else":             {"baseline", levelled("a"), "baseline latest [tenant.yaml]"},
		"a policy is stricter than the Tenant":      {"baseline", levelled("a: restricted v1.34"), "restricted v1.34 [a]"},
		"the Tenant is stricter":                    {"restricted", levelled("a: baseline v1.34"), "restricted latest [tenant.yaml]"},
		"both require the same":                     {"", levelled("a: restricted v1.34"), "restricted v1.34 [a tenant.yaml]"},
		"a Tenant with a level that it cannot have": {"privileged", levelled("a: baseline"), "baseline latest [a]"},
		"of several policies the strictest":         {"baseline", levelled("a: baseline v1.34", "b: restricted v1.34", "c"), "restricted v1.34 [b]"},
		"the newest version":                        {"baseline", levelled("a: restricted v1.9", "b: restricted v1.34", "c: restricted v1.10"), "restricted v1.34 [a b c]"},
		"no version is the newest":                  {"baseline", levelled("a: restricted", "b: restricted v1.34"), "restricted latest [a b]"},
		"the newest version, also of a lower level": {"baseline", levelled("a: baseline latest", "b: restricted v1.34"), "restricted latest [b]"},
		"in another order":                          {"baseline", levelled("a: restricted v1.34", "b: baseline v1.36"), "restricted v1.36 [a]"},
	} {
		t.Run(name, func(t *testing.T) {
			tenant := &v1alpha1.Tenant{Spec: v1alpha1.TenantSpec{PodSecurity: c.tenant}}
			rules := For(tenant, c.policies)
			got := PodSecurity(tenant, &rules)
			if text := fmt.Sprint(got.Level, " ", got.Version, " ", got.Policies); text != c.want {
				t.Errorf("got %s, want %s", text, c.want)
			}
		})
	}
}

// TestOldRulesDoNotWeakenATenant: a Tenant that became stricter is not held to the Guardrails from before, and no Guardrails are no rules.
func TestOldRulesDoNotWeakenATenant(t *testing.T) {
	tenant := &v1alpha1.Tenant{Spec: v1alpha1.TenantSpec{PodSecurity: "baseline"}}
	rules := For(tenant, levelled("a: baseline v1.30"))
	tenant.Spec.PodSecurity = "restricted"
	for name, rules := range map[string]*v1alpha1.GuardrailsSpec{"old rules": &rules, "no rules": nil} {
		if got := PodSecurity(tenant, rules); got.Level != "restricted" || got.Version != "latest" {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
