package guardrails

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// TestWhatSomePolicyListsIsListed, whatever its action: the other policies refuse what they do not list themselves.
func TestWhatSomePolicyListsIsListed(t *testing.T) {
	spec := Of([]v1alpha1.Policy{
		named("a", false, v1alpha1.PolicyRules{Services: &v1alpha1.ServiceRules{ExternalNames: []string{"b.example", "a.example"}}}),
		named("b", false, v1alpha1.PolicyRules{Services: &v1alpha1.ServiceRules{Action: v1alpha1.WarnAction, ExternalNames: []string{"c.example", "a.example"}, ExternalIPs: []string{"192.0.2.0/28"}}}),
		named("c", false, v1alpha1.PolicyRules{Services: &v1alpha1.ServiceRules{Action: v1alpha1.AuditAction, ExternalIPs: []string{"10.0.0.0/28"}}}),
		named("d", false, v1alpha1.PolicyRules{Images: &v1alpha1.ImageRules{RequireDigest: true}}),
	})
	if diff := cmp.Diff([]string{"a.example", "b.example", "c.example"}, ExternalNames(&spec)); diff != "" {
		t.Errorf("external names (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"10.0.0.0/28", "192.0.2.0/28"}, ExternalIPs(&spec)); diff != "" {
		t.Errorf("external IPs (-want +got):\n%s", diff)
	}
	for what, nothing := range map[string]*v1alpha1.GuardrailsSpec{"no policy": nil, "policies without lists": {Deny: spec.Deny[1:]}} {
		if names, ips := ExternalNames(nothing), ExternalIPs(nothing); len(names)+len(ips) > 0 {
			t.Errorf("%s: names %v and addresses %v are listed", what, names, ips)
		}
	}
}
