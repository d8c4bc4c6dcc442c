package project

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/internal/testenv/steptest"
)

// guardrails returns those of the project, as they are in its namespace; nil if there are none.
func (b *fixture) guardrails() *v1alpha1.Guardrails {
	b.t.Helper()
	live := &v1alpha1.Guardrails{ObjectMeta: metav1.ObjectMeta{Namespace: shopNamespace, Name: v1alpha1.GuardrailsName}}
	if !b.get(live) {
		return nil
	}
	return live
}

// enforced applies the rules that are found for a project, and returns how that ends.
func (b *fixture) enforced(s *scope) string {
	b.t.Helper()
	if err := b.findRules(b.t.Context(), s); err != nil {
		return err.Error()
	}
	return steptest.Outcome(b.t, errors.Join(b.connect(b.t.Context(), s), b.enforce(b.t.Context(), s)))
}

// TestTheRulesOfANamespaceAreThoseOfItsPoliciesUnlessOneIsMissing: fewer rules would allow more.
func TestTheRulesOfANamespaceAreThoseOfItsPoliciesUnlessOneIsMissing(t *testing.T) {
	const missing = "stopped PolicyNotFound: spec.policies of tenant acme names what does not exist: absent, gone. "
	strict := &v1alpha1.Policy{ObjectMeta: metav1.ObjectMeta{Name: "strict"}, Spec: v1alpha1.PolicySpec{PolicyRules: v1alpha1.PolicyRules{Images: &v1alpha1.ImageRules{RequireDigest: true}}}}
	under := func(names ...string) *v1alpha1.Tenant {
		return acme(func(a *v1alpha1.Tenant) { a.Spec.Policies = names })
	}
	b := newFixture(t, strict)
	if got := b.enforced(b.with(shop(), under("absent", "gone"))); !strings.HasPrefix(got, missing) || b.guardrails() != nil {
		t.Errorf("without rules before: %q, %v", got, b.guardrails())
	}
	s := b.with(shop(), under("strict", "absent"))
	if got := b.enforced(s); !strings.Contains(got, "absent") || len(s.rules.spec.Deny) != 1 || b.guardrails() != nil {
		t.Errorf("without rules before, and with one policy: %q, %+v", got, s.rules.spec)
	}
	if got := b.enforced(b.with(shop(), under())); got != "done" || len(b.guardrails().Spec.Deny) != 0 {
		t.Errorf("without policies: %q, %+v", got, b.guardrails())
	}
	s = b.with(shop(), under("strict"))
	if got := b.enforced(s); got != "done" || len(s.rules.policies) != 1 || len(b.guardrails().Spec.Deny) != 1 || b.guardrails().Labels[v1alpha1.ProjectLabel] != "shop" {
		t.Errorf("under a policy: %q, %+v", got, b.guardrails())
	}
	signed := b.guardrails()
	signed.Spec.Signed = []v1alpha1.SignedImages{{Signatures: "strict"}}
	if err := b.api.Update(t.Context(), signed); err != nil {
		t.Fatal(err)
	}
	claim := &v1alpha1.HostnameClaim{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: v1alpha1.HostnameClaimSpec{Hostname: "www.example.com", Tenant: "acme", Project: "shop"}}
	if err := b.api.Create(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	s = b.with(shop(), under("strict", "gone", "absent"))
	if got := b.enforced(s); !strings.HasPrefix(got, missing) || len(b.guardrails().Spec.Deny) != 1 || s.rules.spec.Signed != nil {
		t.Errorf("when two are missing: %q, %+v, signed %v", got, b.guardrails(), s.rules.spec.Signed)
	}
	if got := b.enforced(b.with(shop(), under("absent"))); !strings.Contains(got, "absent") || len(b.guardrails().Spec.Deny) != 1 || len(b.guardrails().Spec.Hostnames.Names) != 1 {
		t.Errorf("when all are missing: %q, %+v", got, b.guardrails())
	}
	for _, value := range []string{"a", "b"} {
		added := &v1alpha1.AddedMetadata{Labels: map[string]v1alpha1.LabelValue{"team": v1alpha1.LabelValue(value)}}
		policy := &v1alpha1.Policy{ObjectMeta: metav1.ObjectMeta{Name: value}, Spec: v1alpha1.PolicySpec{PolicyRules: v1alpha1.PolicyRules{Metadata: &v1alpha1.MetadataRules{Added: added}}}}
		if err := b.api.Create(t.Context(), policy); err != nil {
			t.Fatal(err)
		}
	}
	s = b.with(shop(), under("a", "b"))
	if got := b.enforced(s); got != "done" || !strings.Contains(s.Summary(), "policies contradict each other about labels") {
		t.Errorf("with policies that contradict each other: %q, %q", got, s.Summary())
	}
}

// TestTheGuardrailsListTheHostNamesOfTheProject: what kubeop claimed for it and nothing uses is taken off the list first, and is looked at again.
func TestTheGuardrailsListTheHostNamesOfTheProject(t *testing.T) {
	claim := func(name, tenant, project string, change ...func(*v1alpha1.HostnameClaim)) *v1alpha1.HostnameClaim {
		c := &v1alpha1.HostnameClaim{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.HostnameClaimSpec{Hostname: name, Tenant: tenant, Project: project}}
		for _, f := range change {
			f(c)
		}
		return c
	}
	b := newFixture(t, claim("www.example.com", "acme", "shop"), claim("api.example.com", "acme", "shop"), claim("a.example.com", "acme", "blog"), claim("b.example.com", "rival", "shop"))
	s := b.with(shop(), acme())
	if got := b.enforced(s); got != "done" || s.Again() != 0 {
		t.Errorf("got %q, again after %s", got, s.Again())
	}
	if diff := cmp.Diff([]string{"api.example.com", "www.example.com"}, b.guardrails().Spec.Hostnames.Names); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	unused := claim("old.example.com", "acme", "shop", func(c *v1alpha1.HostnameClaim) {
		c.Labels = map[string]string{v1alpha1.ManagedByLabel: v1alpha1.FieldManager}
	})
	if err := b.api.Create(t.Context(), unused); err != nil {
		t.Fatal(err)
	}
	b.clock.Step(time.Hour)
	if got := b.enforced(s); got != "done" || s.Again() == 0 {
		t.Errorf("with a name that nothing uses: %q, again after %s", got, s.Again())
	}
	b.fault = func(_ string, o any, _ string) error {
		if _, is := o.(*v1alpha1.HostnameClaimList); is {
			return errAway
		}
		return nil
	}
	if got := b.enforced(b.again(s)); got != "failed Failed: listing the claims of host names: the API server is away" {
		t.Errorf("without a list of claims: %q", got)
	}
	if got := steptest.Outcome(t, b.grantPlatform(t.Context(), b.newScope(platformProject("monitoring")))); got != "failed Failed: listing the claims of host names: the API server is away" {
		t.Errorf("a project of the platform, without a list of claims: %q", got)
	}
	b = newFixture(t, &v1alpha1.Guardrails{ObjectMeta: metav1.ObjectMeta{Namespace: shopNamespace, Name: v1alpha1.GuardrailsName}})
	if got := b.enforced(b.with(shop(), acme())); !strings.HasPrefix(got, "stopped ApplyFailed: Guardrails/"+v1alpha1.GuardrailsName+": exists already") {
		t.Errorf("guardrails of somebody else: %q", got)
	}
}
