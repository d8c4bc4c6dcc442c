package guardrails

import (
	"strings"
	"testing"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// TestAnUnclearSourceBreaksTheRulesAboutSignatures: a registry may serve what a rule is about under a URL that no pattern of the rule has.
func TestAnUnclearSourceBreaksTheRulesAboutSignatures(t *testing.T) {
	signed := func(policy string, images ...string) v1alpha1.AppliedPolicy {
		return v1alpha1.AppliedPolicy{Policy: policy, Signatures: policy, PolicyRules: v1alpha1.PolicyRules{Images: &v1alpha1.ImageRules{Verify: []v1alpha1.SignatureRule{{Images: images}}}}}
	}
	spec := &v1alpha1.GuardrailsSpec{
		Deny: []v1alpha1.AppliedPolicy{{Policy: "none"}, signed("acme", "registry.example.com/acme")},
		Warn: []v1alpha1.AppliedPolicy{signed("all", "*")},
	}
	for url, want := range map[string]string{
		"oci://registry.example.com/acme/web":          "verified by acme, verified by all",
		"oci://Registry.Example.com:0443/acme/web":     "verified by acme, verified by all",
		"oci://quay.io/acme/web":                       "verified by all",
		"oci://registry.example.com/acme/web/":         "broken in acme, broken in all",
		"oci://registry.example.com/%61cme/web":        "broken in acme, broken in all",
		"oci://registry.example.com/acme?x/web":        "broken in acme, broken in all",
		"oci://registry.example.com/acme#x/web":        "broken in acme, broken in all",
		"oci://registry.example.com/other/../acme/web": "broken in acme, broken in all",
	} {
		unverified, broken := UnverifiedSource(Source{Type: OCIRepository, URL: url}, "sha256:0", spec)
		var got []string
		for _, u := range unverified {
			got = append(got, "verified by "+u.Policy)
		}
		for _, v := range broken {
			got = append(got, "broken in "+v.Policy)
			if v.Field != "images.verify" || !strings.Contains(v.Why, "servers may read in several ways") {
				t.Errorf("%s breaks %s: %s", url, v.Field, v.Why)
			}
		}
		if got := strings.Join(got, ", "); got != want {
			t.Errorf("%s is %s, want %s", url, got, want)
		}
	}
	if unverified, broken := UnverifiedSource(Source{Type: HelmRepository, URL: "https://charts.example.com/?x"}, "", spec); unverified != nil || broken != nil {
		t.Errorf("a Helm repository is %v, %v", unverified, broken)
	}
}
