package guardrails

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// levelled returns policies of Pod Security, each written as "<name>: <level> <version>" or "<name>: <action> <level> <version>".
func levelled(texts ...string) (policies []v1alpha1.Policy) {
	for _, text := range texts {
		name, rule, stated := strings.Cut(text, ": ")
		action := v1alpha1.PolicyAction("")
		if of, rest, _ := strings.Cut(rule, " "); of == "Warn" || of == "Audit" || of == "Deny" {
			action, rule = v1alpha1.PolicyAction(of), rest
		}
		policy := v1alpha1.Policy{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if level, version, _ := strings.Cut(rule, " "); stated {
			policy.Spec.PodSecurity = &v1alpha1.PodSecurityRules{Action: action, Level: level, Version: version}
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
		"one that only warns":                       {"baseline", levelled("a: Warn restricted v1.34", "b: Audit restricted"), "baseline latest [tenant.yaml]"},
		"one that warns beside one that refuses":    {"baseline", levelled("a: Warn restricted", "b: Deny baseline v1.34"), "baseline v1.34 [b tenant.yaml]"},
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

// TestLevelsThatOnlyWarnAreNotEnforced: the modes of Pod Security that warn and record have what is stricter than what is enforced, of the policies with that action.
func TestLevelsThatOnlyWarnAreNotEnforced(t *testing.T) {
	for name, c := range map[string]struct {
		policies         []v1alpha1.Policy
		notices          string
		warned, recorded string
	}{
		"no policy":                        {nil, "", "baseline latest", "baseline latest"},
		"one that refuses":                 {levelled("a: restricted v1.34"), "", "restricted v1.34", "restricted v1.34"},
		"one that warns":                   {levelled("a: Warn restricted v1.34"), "Warn restricted v1.34 [a]", "restricted v1.34", "restricted v1.34"},
		"one that records":                 {levelled("a: Audit restricted"), "Audit restricted latest [a]", "baseline latest", "restricted latest"},
		"both":                             {levelled("a: Audit restricted v1.36", "b: Warn restricted v1.34"), "Warn restricted v1.34 [b] Audit restricted v1.36 [a]", "restricted v1.34", "restricted v1.36"},
		"two that warn":                    {levelled("a: Warn restricted v1.34", "b: Warn baseline v1.36", "c: Warn restricted v1.33"), "Warn restricted v1.36 [a c]", "restricted v1.36", "restricted v1.36"},
		"one that warns about less":        {levelled("a: restricted v1.34", "b: Warn baseline"), "Warn baseline latest [b]", "restricted v1.34", "restricted v1.34"},
		"one that warns about new checks":  {levelled("a: baseline v1.33", "b: Warn baseline v1.36"), "Warn baseline v1.36 [b]", "baseline v1.36", "baseline v1.36"},
		"one that warns about old checks":  {levelled("a: baseline v1.36", "b: Warn baseline v1.33"), "Warn baseline v1.33 [b]", "baseline v1.36", "baseline v1.36"},
		"one that records less than warns": {levelled("a: Warn restricted", "b: Audit baseline"), "Warn restricted latest [a] Audit baseline latest [b]", "restricted latest", "restricted latest"},
	} {
		t.Run(name, func(t *testing.T) {
			tenant := &v1alpha1.Tenant{Spec: v1alpha1.TenantSpec{PodSecurity: "baseline"}}
			rules := For(tenant, c.policies)
			var notices []string
			for _, of := range rules.PodSecurityNotices {
				notices = append(notices, fmt.Sprint(of.Action, " ", of.Level, " ", of.Version, " ", of.Policies))
			}
			if got := strings.Join(notices, " "); got != c.notices {
				t.Errorf("the notices are %q, want %q", got, c.notices)
			}
			warned, recorded := NoticedPodSecurity(PodSecurity(tenant, &rules).PodSecurityRules, &rules)
			if got := warned.Level + " " + warned.Version; got != c.warned {
				t.Errorf("it warns about %s, want %s", got, c.warned)
			}
			if got := recorded.Level + " " + recorded.Version; got != c.recorded {
				t.Errorf("it records %s, want %s", got, c.recorded)
			}
		})
	}
	enforced := v1alpha1.PodSecurityRules{Level: "baseline", Version: "v1.34"}
	if warned, recorded := NoticedPodSecurity(enforced, nil); warned != enforced || recorded != enforced {
		t.Errorf("without Guardrails it warns about %v and records %v", warned, recorded)
	}
}
