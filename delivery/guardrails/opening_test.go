package guardrails

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// TestNetworkPoliciesOfAppsOpenWhatTheProjectMayHave, where the project has such. Package isolation has the cases.
func TestNetworkPoliciesOfAppsOpenWhatTheProjectMayHave(t *testing.T) {
	shop := []map[string]string{{"kubernetes.io/metadata.name": "kubeop-acme-shop"}}
	opens := &v1alpha1.AllowedNetwork{Policies: v1alpha1.OwnNetworkPolicies, From: shop, To: []v1alpha1.AllowedPeers{{Namespaces: shop}}}
	const policy = "apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, "
	everything := "{" + policy + "metadata: {name: a}, spec: {ingress: [{}]}}"
	for name, c := range map[string]struct {
		object string
		spec   *v1alpha1.GuardrailsSpec
		want   []string
	}{
		"within the project":         {"{" + policy + "metadata: {name: a}, spec: {ingress: [{from: [{podSelector: {}}]}]}}", &v1alpha1.GuardrailsSpec{Network: opens}, nil},
		"everything":                 {everything, &v1alpha1.GuardrailsSpec{Network: opens}, []string{"lets everybody connect, because spec.ingress[0] has no from"}},
		"everything, of another API": {strings.Replace(everything, "networking.k8s.io", "example.org", 1), &v1alpha1.GuardrailsSpec{Network: opens}, nil},
		"another kind":               {strings.Replace(everything, "kind: NetworkPolicy", "kind: Ingress", 1), &v1alpha1.GuardrailsSpec{Network: opens}, nil},
		"two things": {"{" + policy + "metadata: {name: a}, spec: {ingress: [{from: [{namespaceSelector: {}}]}], egress: [{to: [{ipBlock: {cidr: 0.0.0.0/0}}]}]}}",
			&v1alpha1.GuardrailsSpec{Network: opens}, []string{
				"lets pods of other namespaces connect in spec.ingress[0] than the namespaceSelector may select: kubernetes.io/metadata.name=kubeop-acme-shop",
				"lets pods connect in spec.egress[0] to 0.0.0.0/0, or at ports there, which is not allowed",
			}},
		"a name of the platform":        {"{" + policy + "metadata: {name: kubeop-a}}", &v1alpha1.GuardrailsSpec{Network: opens}, []string{"has a name that is kept for the platform's own: choose another name in Git"}},
		"no spec":                       {"{" + policy + "metadata: {name: a}, spec: x}", &v1alpha1.GuardrailsSpec{Network: opens}, []string{"cannot be read as a NetworkPolicy"}},
		"a plan that knows no more":     {everything, &v1alpha1.GuardrailsSpec{Network: &v1alpha1.AllowedNetwork{Policies: v1alpha1.OwnNetworkPolicies}}, nil},
		"where apps have none":          {everything, &v1alpha1.GuardrailsSpec{}, nil},
		"where apps have none any more": {everything, &v1alpha1.GuardrailsSpec{Network: &v1alpha1.AllowedNetwork{Policies: v1alpha1.PlatformNetworkPolicies, From: shop}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, v := range Check(parsed(t, c.object), c.spec) {
				why := v.Why
				if strings.HasPrefix(why, "cannot be read") {
					why, _, _ = strings.Cut(why, ":")
				}
				got = append(got, why)
				if v.Action != v1alpha1.DenyAction || v.Rule != NetworkPolicies || v.Where() != "spec.egress of the tenant's tenant.yaml or of its policies in the platform repository" {
					t.Errorf("%+v is written in %s", v, v.Where())
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	for name, c := range map[string]struct {
		spec *v1alpha1.GuardrailsSpec
		want bool
	}{"no rules": {}, "no network": {spec: &v1alpha1.GuardrailsSpec{}}, "own": {&v1alpha1.GuardrailsSpec{Network: opens}, true}} {
		if got := OwnNetworkPolicies(c.spec); got != c.want {
			t.Errorf("%s: apps have network policies: %t", name, got)
		}
	}
}
