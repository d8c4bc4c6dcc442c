package project

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/fieldmanager"
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
			if again := b.reminded(s); len(again) > 0 != c.narrowed {
				t.Errorf("looks again: %v", again)
			}
			var reported bool
			for len(b.events.Events) > 0 {
				reported = reported || strings.HasPrefix(<-b.events.Events, "Warning NetworkPolicyNarrowed NetworkPolicy web lets pods connect to everything, because spec.egress[0] has no to; that was taken out")
			}
			if reported != c.narrowed {
				t.Errorf("reported: %t", reported)
			}
			b.clock.Step(takesEffect)
			second := b.ruled(c.project)
			if got := steptest.Outcome(t, b.guard(t.Context(), second)); got != "done" || len(b.reminded(second)) > 0 || len(b.events.Events) > 0 {
				t.Errorf("the second time: %q, %d events", got, len(b.events.Events))
			}
		})
	}
}

// reminded returns how the project of a scope is woken for the next look at its network policies.
func (b *fixture) reminded(s *scope) (names []string) {
	b.t.Helper()
	queue := newWoken()
	if err := b.onLooks().Start(b.t.Context(), queue); err != nil {
		b.t.Fatal(err)
	}
	b.remind(s)
	return queue.all(len(queue.names))
}

// narrowed reports whether a network policy opens nothing.
func (b *fixture) narrowed(name string) bool {
	policy := everything(name)
	return b.get(policy) && len(policy.Spec.Egress) == 0
}

// TestAProjectIsLookedAtWhenItsScopeIsDue: as the release of a host name or the end of pods needs, also after a failure of another step.
func TestAProjectIsLookedAtWhenItsScopeIsDue(t *testing.T) {
	for name, c := range map[string]struct {
		hosts, stopped time.Duration
		want           []string
	}{
		"nothing is due":     {0, 0, nil},
		"a host name is":     {2 * time.Second, 0, []string{"kubeop-acme/shop after 2s"}},
		"a stop comes first": {2 * time.Second, time.Second, []string{"kubeop-acme/shop after 1s"}},
	} {
		b := newFixture(t)
		s := b.ruled(shop())
		s.again, s.stopped.again = c.hosts, c.stopped
		if diff := cmp.Diff(c.want, b.reminded(s)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestAFailureToNarrowKeepsNothingElseOpen: the other policies are narrowed and kubeop's own is written, and it is tried again soon.
func TestAFailureToNarrowKeepsNothingElseOpen(t *testing.T) {
	for _, failing := range []string{"list", "patch"} {
		b := newFixture(t, everything("a"), everything("web"))
		away := true
		b.fault = func(verb string, o any, _ string) error {
			_, list := o.(*networkingv1.NetworkPolicyList)
			policy, one := o.(*networkingv1.NetworkPolicy)
			if away && verb == failing && (list || one && policy.Name == "a") {
				return errAway
			}
			return nil
		}
		s := b.ruled(shop(opensItself))
		err := b.guard(t.Context(), s)
		says := map[string]string{"list": "listing the network policies of namespace kubeop-acme-shop: ", "patch": "NetworkPolicy/a: taking out what it may not open: "}[failing]
		if got := steptest.Outcome(t, err); !errors.Is(err, errAway) || !strings.Contains(got, says+errAway.Error()) {
			t.Errorf("%s: got %q, %v", failing, got, err)
		}
		away = false
		if written := b.get(everything("kubeop")); !written || b.narrowed("web") != (failing == "patch") || b.narrowed("a") {
			t.Errorf("%s: the platform's is written: %t, web narrowed: %t, a narrowed: %t", failing, written, b.narrowed("web"), b.narrowed("a"))
		}
		b.clock.Step(takesEffect)
		if diff := cmp.Diff([]string{"kubeop-acme/shop after 10s"}, b.reminded(s)); diff != "" {
			t.Errorf("%s: when the look is due and failed (-want +got):\n%s", failing, diff)
		}
		if err := b.guard(t.Context(), b.ruled(shop(opensItself))); err != nil || !b.narrowed("a") || !b.narrowed("web") || len(b.reminded(s)) > 0 {
			t.Errorf("%s: afterwards %v, %v, a narrowed: %t", failing, err, b.reminded(s), b.narrowed("a"))
		}
	}
}

// TestAPolicyThatKeepsChangingIsNarrowed: its annotations may change between the list and each write. The next apply knows the manager of the fields.
func TestAPolicyThatKeepsChangingIsNarrowed(t *testing.T) {
	b := newFixture(t, everything("web"))
	b.fault = func(verb string, o any, _ string) error {
		if _, policy := o.(*networkingv1.NetworkPolicy); !policy || verb != "patch" {
			return nil
		}
		live := everything("web")
		if !b.get(live) {
			t.Error("it is gone")
		}
		live.Annotations = map[string]string{"at": "now"}
		return b.api.Update(t.Context(), live)
	}
	var managers []string
	b.Direct = interceptor.NewClient(b.api, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if _, policy := o.(*networkingv1.NetworkPolicy); policy {
				managers = append(managers, (&client.PatchOptions{}).ApplyOptions(opts).FieldManager)
			}
			return c.Patch(ctx, o, p, opts...)
		},
	})
	if got := steptest.Outcome(t, b.guard(t.Context(), b.ruled(shop(opensItself)))); got != "done" || !b.narrowed("web") {
		t.Errorf("got %q, narrowed: %t", got, b.narrowed("web"))
	}
	if diff := cmp.Diff([]string{fieldmanager.Narrowing}, managers); diff != "" {
		t.Errorf("who wrote it (-want +got):\n%s", diff)
	}
	live := everything("web")
	if !b.get(live) || live.Annotations["at"] != "now" {
		t.Errorf("its annotations are %v", live.Annotations)
	}
}

// TestEarlierRulesApplyWhileAPolicyIsMissing: what was refused meanwhile must not stay open because the tenant names a policy that does not exist.
func TestEarlierRulesApplyWhileAPolicyIsMissing(t *testing.T) {
	was := &v1alpha1.Guardrails{ObjectMeta: metav1.ObjectMeta{Namespace: shopNamespace, Name: v1alpha1.GuardrailsName, Labels: map[string]string{
		v1alpha1.TenantLabel: "acme", v1alpha1.ProjectLabel: "shop"}}, Spec: v1alpha1.GuardrailsSpec{Network: &v1alpha1.AllowedNetwork{}}}
	b := newFixture(t, was, everything("web"))
	s := b.with(shop(opensItself), acme(func(a *v1alpha1.Tenant) { a.Spec.Policies = []string{"absent"} }))
	if err := b.findRules(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if got := steptest.Outcome(t, b.guard(t.Context(), s)); !strings.Contains(got, v1alpha1.PolicyNotFoundReason) || !b.narrowed("web") || b.guardrails().Spec.Network == nil || len(b.guardrails().Spec.Network.From) != 0 {
		t.Errorf("got %q, narrowed: %t", got, b.narrowed("web"))
	}
}

// TestALookStaysDueUntilItWasMade: neither an event that wakes the project earlier nor a Reconcile that ends before guard loses it.
func TestALookStaysDueUntilItWasMade(t *testing.T) {
	project := shop(opensItself)
	b := newFixture(t, project)
	s := b.ruled(project)
	if err := b.guard(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	b.clock.Step(4 * time.Second)
	if err := b.guard(t.Context(), b.ruled(project)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"kubeop-acme/shop after 6s"}, b.reminded(s)); diff != "" {
		t.Errorf("after an event (-want +got):\n%s", diff)
	}
	queue := newWoken()
	if err := b.onLooks().Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	b.fault = func(string, any, string) error { return errAway }
	if result, err := b.Reconcile(t.Context(), project); err == nil && result.RequeueAfter == 0 {
		t.Error("it did not fail")
	}
	if diff := cmp.Diff([]string{"kubeop-acme/shop after 6s"}, queue.all(len(queue.names))); diff != "" {
		t.Errorf("after a failure (-want +got):\n%s", diff)
	}
	b.clock.Step(6 * time.Second)
	b.fault = func(string, any, string) error { return nil }
	if err := b.guard(t.Context(), b.ruled(project)); err != nil || len(b.reminded(s)) > 0 {
		t.Errorf("when it was made: %v, %v", err, b.reminded(s))
	}
	if b.looks.forget(shopNamespace); b.looks.known(shopNamespace) {
		t.Error("it is not forgotten")
	}
	if b.looks.looked(shopNamespace, b.clock.Now()); b.looks.known(shopNamespace) {
		t.Error("a look that was not due is known")
	}
	b.looks.ask("kubeop-acme-blog", deletedAt)
	if b.looks.ask(shopNamespace, deletedAt); !b.looks.known("kubeop-acme-blog") || !b.looks.known(shopNamespace) {
		t.Error("of two looks, one is forgotten")
	}
}

// TestALookIsDueAfterEachChangeOfWhatMayBeOpened, and once after a restart: the change may have been just before it.
func TestALookIsDueAfterEachChangeOfWhatMayBeOpened(t *testing.T) {
	project := shop(opensItself)
	b := newFixture(t, project)
	for _, c := range []struct {
		name  string
		begin func()
		due   bool
	}{
		{"the first rules", func() {}, true},
		{"the same rules", func() {}, false},
		{"other rules", func() { b.Admitted = []map[string]string{{"purpose": "ingress"}} }, true},
		{"the same again", func() {}, false},
		{"a restart", func() { b.looks.forget(shopNamespace) }, true},
	} {
		c.begin()
		s := b.ruled(project)
		if err := b.guard(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		if due := len(b.reminded(s)) > 0; due != c.due {
			t.Errorf("%s: a look is due: %t", c.name, due)
		}
		b.clock.Step(takesEffect)
		if err := b.narrow(t.Context(), s); err != nil || len(b.reminded(s)) > 0 {
			t.Errorf("%s: %v, after the look, another is due", c.name, err)
		}
	}
}
