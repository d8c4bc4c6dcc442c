package tenant

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/pod-security-admission/api"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/guards"
	"github.com/kubeop/kubeop/internal/testenv/steptest"
)

// withoutAnswer is a mapper that cannot ask the API server.
type withoutAnswer struct{ meta.RESTMapper }

func (withoutAnswer) RESTMapping(schema.GroupKind, ...string) (*meta.RESTMapping, error) {
	return nil, errAway
}

// TestTheStatusSaysWhichGuardsTheClusterHas: what the chart turned off, and what the API server does not serve or is too old for, is no guard.
func TestTheStatusSaysWhichGuardsTheClusterHas(t *testing.T) {
	for name, has := range map[string]bool{"all": true, "none": false} {
		t.Run(name, func(t *testing.T) {
			tenant, base := acme(), &v1alpha1.Policy{ObjectMeta: metav1.ObjectMeta{Name: "base"}, Spec: v1alpha1.PolicySpec{Default: true}}
			base.Spec.PodSecurity = &v1alpha1.PodSecurityRules{Level: "restricted", Version: "v1.34"}
			b := newFixture(t, base)
			states := map[string]v1alpha1.GuardState{guards.FairShare: v1alpha1.GuardAbsent, guards.Tier: v1alpha1.GuardAbsent}
			reason := "level restricted, version v1.34, by spec.podSecurity of policies/base.yaml, tenant.yaml"
			if b.FlowControl, b.PodSecurity = has, api.MajorMinorVersion(1, 34); has {
				mapper := meta.NewDefaultRESTMapper(nil)
				mapper.Add(b.Tier.Kind, meta.RESTScopeRoot)
				b.Tier.Mapper = mapper
				states = map[string]v1alpha1.GuardState{guards.FairShare: v1alpha1.GuardEnforced, guards.Tier: v1alpha1.GuardRenderedOnly}
			} else {
				b.PodSecurity = api.MajorMinorVersion(1, 33)
				reason += "; the API server is v1.33 and has no newer checks: an administrator of the cluster names at most that version in Git"
			}
			s := b.newScope(tenant)
			if err := b.guard(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			s.Record()
			got := map[string]v1alpha1.GuardState{}
			for _, g := range tenant.Status.Guards {
				if _, asked := states[g.Name]; asked {
					got[g.Name] = g.State
				}
				if g.Name == guards.PodSecurity && g.Reason != reason {
					t.Errorf("Pod Security: %q, want %q", g.Reason, reason)
				}
			}
			if diff := cmp.Diff(states, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestGuardsAreNotReportedWhileTheClusterCannotBeAsked: a tenant would be reported without guards that it has.
func TestGuardsAreNotReportedWhileTheClusterCannotBeAsked(t *testing.T) {
	for name, c := range map[string]struct {
		kind func(*fixture) *guards.OptionalKind
		want string
	}{
		"which policies change objects":       {func(b *fixture) *guards.OptionalKind { return b.Mutating }, "failed Failed: asking whether MutatingAdmissionPolicies are served: the API server is away"},
		"whether the tier of policies exists": {func(b *fixture) *guards.OptionalKind { return b.Tier }, "failed Failed: asking whether ClusterNetworkPolicies are served: the API server is away"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t)
			c.kind(b).Mapper = withoutAnswer{}
			before := []v1alpha1.GuardStatus{{Name: guards.Tier, State: v1alpha1.GuardRenderedOnly}}
			tenant := acme(func(a *v1alpha1.Tenant) { a.Status.Guards = before })
			s := b.newScope(tenant)
			if got := steptest.Outcome(t, b.guard(t.Context(), s)); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			s.Record()
			if diff := cmp.Diff(before, tenant.Status.Guards); diff != "" {
				t.Errorf("the status (-was +is):\n%s", diff)
			}
		})
	}
}

func TestAPolicyWakesTheTenantsThatAreUnderIt(t *testing.T) {
	named := func(name string, policies ...string) *v1alpha1.Tenant {
		return &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.TenantSpec{Policies: policies}}
	}
	b := newFixture(t, named("acme", "images"), named("rival", "kinds"), named("usual"))
	names := func(requests []reconcile.Request) []string {
		var all []string
		for _, r := range requests {
			all = append(all, r.Name)
		}
		return all
	}
	policy := func(name string, usual bool) *v1alpha1.Policy {
		return &v1alpha1.Policy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.PolicySpec{Default: usual}}
	}
	for name, c := range map[string]struct {
		changed *v1alpha1.Policy
		want    []string
	}{
		"one that a tenant names": {policy("images", false), []string{"acme"}},
		"a default one":           {policy("base", true), []string{"usual"}},
		"one for nobody":          {policy("other", false), nil},
	} {
		if diff := cmp.Diff(c.want, names(b.underPolicy(t.Context(), c.changed))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	all := []string{"acme", "rival", "usual"}
	if diff := cmp.Diff(all, names(b.withGuards(t.Context(), &admissionregistrationv1.ValidatingAdmissionPolicy{}))); diff != "" {
		t.Errorf("an admission policy (-want +got):\n%s", diff)
	}
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer queue.ShutDown()
	if err := b.Tier.Source(b.wakeAll).Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(b.Tier.Kind, meta.RESTScopeRoot)
	b.Tier.Mapper = mapper
	b.Tier.Look()
	var woken []reconcile.Request
	for range all {
		request, _ := queue.Get()
		woken = append(woken, request)
	}
	slices.SortFunc(woken, func(a, b reconcile.Request) int { return strings.Compare(a.Name, b.Name) })
	if diff := cmp.Diff(all, names(woken)); diff != "" {
		t.Errorf("a cluster that begins to serve ClusterNetworkPolicies (-want +got):\n%s", diff)
	}
}
