package guardrails

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// TestAnUnclearSourceBreaksTheRulesAboutSignatures: a registry may serve what a rule is about under a URL that no pattern of the rule has.
func TestAnUnclearSourceBreaksTheRulesAboutSignatures(t *testing.T) {
	signed := func(policy string, images ...string) v1alpha1.AppliedPolicy {
		return v1alpha1.AppliedPolicy{Policy: policy, Signatures: policy, PolicyRules: v1alpha1.PolicyRules{Images: &v1alpha1.ImageRules{Verify: []v1alpha1.SignatureRule{{Images: images}}}}}
	}
	spec := &v1alpha1.GuardrailsSpec{
		Deny: []v1alpha1.AppliedPolicy{{Policy: "none"}, {Policy: "others", PolicyRules: v1alpha1.PolicyRules{Images: &v1alpha1.ImageRules{Deny: []string{"a.example"}}}}, signed("acme", "registry.example.com/acme")},
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
			if action := map[string]v1alpha1.PolicyAction{"acme": v1alpha1.DenyAction, "all": v1alpha1.WarnAction}[v.Policy]; v.Action != action || v.Rule != Images {
				t.Errorf("%s breaks %s with the action %s", url, v.Rule, v.Action)
			}
			if v.Field != "images.verify" || !strings.Contains(v.Why, "servers may read in several ways") {
				t.Errorf("%s breaks %s: %s", url, v.Field, v.Why)
			}
		}
		if got := strings.Join(got, ", "); got != want {
			t.Errorf("%s is %s, want %s", url, got, want)
		}
	}
	if unverified, broken := UnverifiedSource(Source{Type: OCIRepository, URL: "oci://registry.example.com/acme/web/"}, "sha256:0", nil); unverified != nil || broken != nil {
		t.Errorf("without policies: %v, %v", unverified, broken)
	}
	if unverified, broken := UnverifiedSource(Source{Type: HelmRepository, URL: "https://charts.example.com/?x"}, "", spec); unverified != nil || broken != nil {
		t.Errorf("a Helm repository is %v, %v", unverified, broken)
	}
}

// TestImagesAreVerifiedByEachPolicyThatIsAboutThem, until its signatures were: what was verified by other rules does not count.
func TestImagesAreVerifiedByEachPolicyThatIsAboutThem(t *testing.T) {
	policy := func(name string, action v1alpha1.PolicyAction, images ...string) v1alpha1.Policy {
		return named(name, false, v1alpha1.PolicyRules{Images: &v1alpha1.ImageRules{Action: action, Verify: []v1alpha1.SignatureRule{{Images: images}}}})
	}
	tenant := &v1alpha1.Tenant{}
	policies := []v1alpha1.Policy{policy("acme", "", "a.example"), policy("all", v1alpha1.WarnAction, "*"), policy("watch", v1alpha1.AuditAction, "b.example"), named("none", false, v1alpha1.PolicyRules{Images: &v1alpha1.ImageRules{Deny: []string{"c.example"}}})}
	spec := Of(policies)
	ids := map[string]string{}
	for _, applied := range slices.Concat(spec.Deny, spec.Warn, spec.Audit) {
		ids[applied.Policy] = applied.Signatures
	}
	digest := "sha256:" + strings.Repeat("0", 64)
	object := parsed(t, "{apiVersion: v1, kind: Pod, spec: {containers: [{image: 'a.example/x:1@"+digest+"'}, {image: 'a.example/x:1'}, {image: 'b.example/y@"+digest+"'}]}}")
	of := func(name, policy string, action v1alpha1.PolicyAction, images ...string) Unverified {
		return Unverified{name, digest, ids[policy], []v1alpha1.SignatureRule{{Images: images}}, action, policy}
	}
	acme, all, allOther, watch := of("a.example/x", "acme", v1alpha1.DenyAction, "a.example"), of("a.example/x", "all", v1alpha1.WarnAction, "*"), of("b.example/y", "all", v1alpha1.WarnAction, "*"), of("b.example/y", "watch", v1alpha1.AuditAction, "b.example")
	if diff := cmp.Diff([]Unverified{acme, all, allOther, watch}, UnverifiedIn(object, &spec)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	source, broken := UnverifiedSource(Source{Type: OCIRepository, URL: "oci://a.example/x"}, digest, &spec)
	if diff := cmp.Diff([]Unverified{acme, all}, source); diff != "" || broken != nil {
		t.Errorf("of a source: %v (-want +got):\n%s", broken, diff)
	}
	// An earlier list of the same rules, and one of others, which has the other image.
	spec.Signed = []v1alpha1.SignedImages{{Signatures: ids["all"], Images: []string{allOther.Image()}}, {Signatures: ids["acme"], Images: []string{"a.example/x@" + digest}}, {Signatures: "others", Images: []string{watch.Image()}}}
	if diff := cmp.Diff([]Unverified{all, watch}, UnverifiedIn(object, &spec)); diff != "" {
		t.Errorf("after some were verified (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(Violation{Rule: Images, Policy: "all", Action: v1alpha1.WarnAction, Field: "images.verify", Why: "why"}, all.Violation("why")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got, want := SignaturesIn(&spec), ids["acme"]+" "+ids["all"]+" "+ids["watch"]; got != want || SignaturesIn(nil) != "" {
		t.Errorf("the rules are %q, want %q", got, want)
	}
	for i, want := range []bool{true, true, true, false} {
		one := Of(policies[i : i+1])
		if Verifies(&one) != want || Verifies(nil) {
			t.Errorf("%s verifies: %t", policies[i].Name, !want)
		}
	}
	for _, applied := range Offline(tenant, policies).Deny {
		if applied.Images != nil && len(applied.Images.Verify) > 0 {
			t.Errorf("offline, %s has signatures verified", applied.Policy)
		}
	}
	if len(policies[0].Spec.Images.Verify) == 0 {
		t.Error("the policy itself was changed")
	}
	if got := UnverifiedIn(object, &v1alpha1.GuardrailsSpec{}); got != nil {
		t.Errorf("without policies: %v", got)
	}
}

// TestOfflineAllRulesButThoseAboutSignaturesHold: a tenant learns on its own machine what the API server would refuse.
func TestOfflineAllRulesButThoseAboutSignaturesHold(t *testing.T) {
	policy := func(verify ...v1alpha1.SignatureRule) []v1alpha1.Policy {
		return []v1alpha1.Policy{named("acme", false, v1alpha1.PolicyRules{Images: &v1alpha1.ImageRules{Allow: []string{"a.example"}, Verify: verify}})}
	}
	tenant := &v1alpha1.Tenant{Spec: v1alpha1.TenantSpec{Domains: []string{"acme.example"}}}
	want := For(tenant, policy())
	if diff := cmp.Diff(&want, Offline(tenant, policy(v1alpha1.SignatureRule{Images: []string{"a.example"}}))); diff != "" || len(want.Deny) != 2 {
		t.Errorf("%d rules, -want +got:\n%s", len(want.Deny), diff)
	}
}

func TestAnImageThatIsNotVerifiedIsNamed(t *testing.T) {
	digest := "sha256:" + strings.Repeat("0", 64)
	spec := Of([]v1alpha1.Policy{named("acme", false, v1alpha1.PolicyRules{Images: &v1alpha1.ImageRules{Verify: []v1alpha1.SignatureRule{{Images: []string{"a.example"}}}}})})
	want := []Violation{
		{Images, "acme", v1alpha1.DenyAction, "images.verify", "has the image a.example/x:1, which has to be signed, without a digest: write it in Git as a.example/x:1@sha256:<digest>", ""},
		{Images, "acme", v1alpha1.DenyAction, "images.verify", "has the image a.example/x:1@" + digest + ", which has to be signed, and kubeop has verified no signature of it", "a.example/x@" + digest},
	}
	got := Check(parsed(t, "{apiVersion: v1, kind: Pod, spec: {containers: [{image: 'a.example/x:1'}, {image: 'a.example/x:1@"+digest+"'}, {image: b.example/y}]}}"), &spec)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
