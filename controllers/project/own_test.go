package project

import (
	"errors"
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/internal/testenv/steptest"
)

// everything is a network policy that opens everything.
func everything(name string) *networkingv1.NetworkPolicy {
	return &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: shopNamespace, Name: name}, Spec: networkingv1.NetworkPolicySpec{
		Egress: []networkingv1.NetworkPolicyEgressRule{{}},
	}}
}

func opensItself(p *v1alpha1.Project) { p.Spec.Network.Policies = v1alpha1.OwnNetworkPolicies }

// ruled is the scope of a project whose rules were found.
func (b *fixture) ruled(project *v1alpha1.Project) *scope {
	b.t.Helper()
	s := b.with(project, reaching("203.0.113.0/24"))
	if err := b.findRules(b.t.Context(), s); err != nil {
		b.t.Fatal(err)
	}
	return s
}

// TestOnlyNetworkPoliciesOfAppsAreNarrowed: those with names of the platform stay, and so do all of a project that never had such.
func TestOnlyNetworkPoliciesOfAppsAreNarrowed(t *testing.T) {
	was := &v1alpha1.Guardrails{ObjectMeta: metav1.ObjectMeta{Namespace: shopNamespace, Name: v1alpha1.GuardrailsName, Labels: map[string]string{
		v1alpha1.TenantLabel: "acme", v1alpha1.ProjectLabel: "shop"}}, Spec: v1alpha1.GuardrailsSpec{Network: &v1alpha1.AllowedNetwork{}}}
	for name, c := range map[string]struct {
		project  *v1alpha1.Project
		there    []client.Object
		narrowed bool
		rules    int
	}{
		"a project without them":          {shop(), nil, false, 3},
		"a project with them":             {shop(opensItself), nil, true, 1},
		"a project that had them earlier": {shop(), []client.Object{was.DeepCopy()}, true, 3},
	} {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t, append(c.there, everything("web"), everything("kubeop-x"))...)
			s := b.ruled(c.project)
			if got := steptest.Outcome(t, b.guard(t.Context(), s)); got != "done" {
				t.Fatalf("got %q", got)
			}
			open := map[string]int{}
			list := &networkingv1.NetworkPolicyList{}
			if err := b.api.List(t.Context(), list); err != nil {
				t.Fatal(err)
			}
			for _, policy := range list.Items {
				open[policy.Name] = len(policy.Spec.Egress)
			}
			if (open["web"] == 0) != c.narrowed || open["kubeop-x"] != 1 || open["kubeop"] != c.rules {
				t.Errorf("rules of egress: %v", open)
			}
			if again := s.Again() > 0; again != c.narrowed {
				t.Errorf("looks again: %t", again)
			}
			var told bool
			for len(b.events.Events) > 0 {
				told = told || strings.HasPrefix(<-b.events.Events, "Warning NetworkPolicyNarrowed NetworkPolicy web lets pods connect to everything, because spec.egress[0] has no to; that was taken out")
			}
			if told != c.narrowed {
				t.Errorf("told: %t", told)
			}
			second := b.ruled(c.project)
			if got := steptest.Outcome(t, b.guard(t.Context(), second)); got != "done" || second.Again() != 0 || len(b.events.Events) > 0 {
				t.Errorf("the second time: %q, looks again after %s, %d events", got, second.Again(), len(b.events.Events))
			}
		})
	}
}

// TestNothingIsSteppedBackBeforeItIsNarrowed: kubeop's own policy is written last.
func TestNothingIsSteppedBackBeforeItIsNarrowed(t *testing.T) {
	for _, failing := range []string{"list", "patch"} {
		b := newFixture(t, everything("web"))
		var applied []string
		b.fault = func(verb string, o any, data string) error {
			_, list := o.(*networkingv1.NetworkPolicyList)
			_, policy := o.(*networkingv1.NetworkPolicy)
			if verb == failing && (list || policy) {
				return errAway
			}
			if verb == "apply" && strings.Contains(data, `"kind":"NetworkPolicy"`) {
				applied = append(applied, data)
			}
			return nil
		}
		if err := b.guard(t.Context(), b.with(shop(opensItself), reaching("203.0.113.0/24"))); !errors.Is(err, errAway) {
			t.Errorf("%s: got %v", failing, err)
		}
		if len(applied) > 0 {
			t.Errorf("%s: %v was applied", failing, applied)
		}
	}
}
