package guardrails

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// TestOnlyPoliciesThatRefuseListWhereServicesLead: what one of them lists is listed, because the others refuse what they do not list themselves. A list that only warns or records opens
// nothing.
func TestOnlyPoliciesThatRefuseListWhereServicesLead(t *testing.T) {
	listing := func(action v1alpha1.PolicyAction, names, ips string) v1alpha1.PolicyRules {
		return v1alpha1.PolicyRules{Services: &v1alpha1.ServiceRules{Action: action, ExternalNames: strings.Fields(names), ExternalIPs: strings.Fields(ips)}}
	}
	spec := Of([]v1alpha1.Policy{
		named("a", false, listing("", "b.example a.example", "")),
		named("b", false, listing(v1alpha1.DenyAction, "c.example a.example", "192.0.2.0/28")),
		named("c", false, listing(v1alpha1.DenyAction, "", "10.0.0.0/28 192.0.2.0/28")),
		named("d", false, listing(v1alpha1.WarnAction, "warned.example a.example", "198.51.100.0/28")),
		named("e", false, listing(v1alpha1.AuditAction, "recorded.example", "203.0.113.0/28 10.0.0.0/28")),
		named("f", false, v1alpha1.PolicyRules{Images: &v1alpha1.ImageRules{RequireDigest: true}}),
	})
	if diff := cmp.Diff([]string{"a.example", "b.example", "c.example"}, ExternalNames(&spec)); diff != "" {
		t.Errorf("external names (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"10.0.0.0/28", "192.0.2.0/28"}, ExternalIPs(&spec)); diff != "" {
		t.Errorf("external IPs (-want +got):\n%s", diff)
	}
	for what, nothing := range map[string]*v1alpha1.GuardrailsSpec{
		"no policy": nil, "a policy without lists": {Deny: spec.Deny[3:]}, "policies that only warn or record": {Warn: spec.Warn, Audit: spec.Audit},
	} {
		if names, ips := ExternalNames(nothing), ExternalIPs(nothing); len(names)+len(ips) > 0 {
			t.Errorf("%s: names %v and addresses %v are listed", what, names, ips)
		}
	}
	if len(spec.Deny) != 4 || len(spec.Warn) != 1 || len(spec.Audit) != 1 {
		t.Errorf("%d policies refuse, %d warn and %d record", len(spec.Deny), len(spec.Warn), len(spec.Audit))
	}
}
