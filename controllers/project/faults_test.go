package project

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	core "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/isolation"
	"github.com/kubeop/kubeop/delivery/kube"
	"github.com/kubeop/kubeop/delivery/pvc"
	"github.com/kubeop/kubeop/internal/testenv/steptest"
)

// leavingPlatform returns a project of the platform that is being deleted, the namespace that it is declared in, and its own, which existed before it.
func leavingPlatform() (leaving *v1alpha1.Project, home, adopted *corev1.Namespace) {
	leaving = platformProject("monitoring")
	deletedProject(leaving)
	home = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: leaving.Namespace}}
	adopted = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "monitoring", UID: "ns-1", Labels: map[string]string{
		v1alpha1.TenantLabel: v1alpha1.PlatformTenant, v1alpha1.ProjectLabel: "monitoring", v1alpha1.AdoptedLabel: "true",
	}}}
	return leaving, home, adopted
}

// TestEachStepReturnsTheErrorOfEachRequest: a step that passes over an error would report the project Ready, or removed, when it is not.
func TestEachStepReturnsTheErrorOfEachRequest(t *testing.T) {
	owners := func(a *v1alpha1.Tenant) {
		a.Spec.Owners = []v1alpha1.Owner{{Kind: "User", Name: "lea", Role: "admin"}}
	}
	leaving, home, adopted := leavingPlatform()
	for name, c := range map[string]struct {
		project *v1alpha1.Project
		tenant  *v1alpha1.Tenant
		there   []client.Object
		before  func(*fixture, *scope) error
		do      func(*fixture, *scope) error
		least   int
		// tier: the API server serves ClusterNetworkPolicies.
		tier bool
	}{
		"the tenant is resolved": {project: shop(), tenant: acme(), do: func(b *fixture, s *scope) error { return b.resolve(t.Context(), s) }, least: 3},
		"the namespace is made":  {project: shop(), tenant: acme(), do: func(b *fixture, s *scope) error { return b.makeNamespace(t.Context(), s) }, least: 1},
		"guardrails":             {project: shop(), tenant: acme(), do: func(b *fixture, s *scope) error { return b.guard(t.Context(), s) }, least: 3},
		"access":                 {project: shop(), tenant: acme(owners), do: func(b *fixture, s *scope) error { return b.grant(t.Context(), s) }, least: 5},
		"what is not wanted any more": {project: shop(), tenant: acme(owners), before: func(b *fixture, s *scope) error {
			return s.made.Apply(t.Context(), core.ConfigMap("old", shopNamespace).WithLabels(shopLabels))
		}, do: func(b *fixture, s *scope) error { return b.grant(t.Context(), s) }, least: 7},
		"a quota within a budget":          {project: shop(), tenant: acme(func(a *v1alpha1.Tenant) { a.Spec.Budget = cpus("9") }), do: func(b *fixture, s *scope) error { return b.guard(t.Context(), s) }, least: 5},
		"access, and kinds of the cluster": {project: shop(), tenant: allowing(priorities), do: func(b *fixture, s *scope) error { return b.grant(t.Context(), s) }, least: 6},
		"apps are removed":                 {project: shop(deletedProject), tenant: acme(), there: []client.Object{appOf(shopNamespace, "web")}, do: func(b *fixture, s *scope) error { return b.removeApps(t.Context(), s) }, least: 4},
		"access in a platform's namespace": {project: platformProject("monitoring"), do: func(b *fixture, s *scope) error { return b.grantPlatform(t.Context(), s) }, least: 3},
		"apps of the platform":             {project: platformProject("monitoring"), do: func(b *fixture, s *scope) error { return b.resolvePlatform(t.Context(), s) }, least: 2},
		"an adopted namespace is left":     {project: leaving, there: []client.Object{adopted, home}, before: func(b *fixture, s *scope) error { return b.grantPlatform(t.Context(), s) }, do: func(b *fixture, s *scope) error { return b.removeNamespace(t.Context(), s) }, least: 5},
		"a ClusterNetworkPolicy":           {project: shop(), tenant: acme(), do: func(b *fixture, s *scope) error { return b.guard(t.Context(), s) }, least: 9, tier: true},
		"network policies are narrowed":    {project: shop(opensItself), tenant: acme(), there: []client.Object{everything("web")}, do: func(b *fixture, s *scope) error { return b.guard(t.Context(), s) }, least: 9},
		"all rights are taken back": {project: shop(), tenant: acme(), before: func(b *fixture, s *scope) error {
			granted := *s
			granted.tenant = allowing(priorities)
			return b.grantCluster(t.Context(), &granted)
		}, do: func(b *fixture, s *scope) error { return b.grantCluster(t.Context(), s) }, least: 4},
		"a policy in the cluster goes":      {project: shop(deletedProject), tenant: acme(), there: []client.Object{isolation.NewClusterPolicy(shopNamespace, shopLabels)}, do: func(b *fixture, s *scope) error { return b.removeNamespace(t.Context(), s) }, least: 6, tier: true},
		"a namespace is removed":            {project: shop(deletedProject), tenant: acme(), before: func(b *fixture, s *scope) error { return b.makeNamespace(t.Context(), s) }, do: func(b *fixture, s *scope) error { return b.removeNamespace(t.Context(), s) }, least: 4},
		"rights in the cluster are revoked": {project: shop(deletedProject), tenant: allowing(priorities), before: func(b *fixture, s *scope) error { return b.grantCluster(t.Context(), s) }, do: func(b *fixture, s *scope) error { return b.removeNamespace(t.Context(), s) }, least: 4},
	} {
		t.Run(name, func(t *testing.T) {
			requests := steptest.EachRequest(t, func(f *steptest.Failing) error {
				var there []client.Object
				for _, o := range c.there {
					there = append(there, o.DeepCopyObject().(client.Object))
				}
				if c.tenant != nil {
					there = append(there, c.tenant.DeepCopy())
				}
				b := platformFixture(t, kube.PlatformAppsNamespaced, there...)
				if c.tier {
					b.serveTier()
				}
				s := b.with(c.project.DeepCopy(), c.tenant)
				if c.before != nil {
					if err := c.before(b, s); err != nil {
						t.Fatal(err)
					}
				}
				away := f.Client(b.api)
				b.Client, b.Direct, b.Kinds.Roles, b.Hosts.Client, b.Hosts.Direct, b.Store.Reader, b.Grants.Reader = away, away, away, away, away, away, away
				return c.do(b, b.again(s))
			})
			if requests < c.least {
				t.Errorf("%d requests, want %d at least", requests, c.least)
			}
		})
	}
}

// TestNoStepGoesOnWithoutTheRightsOfTheDeployer: what it would stop, delete or leave is not touched by the operator's own rights.
func TestNoStepGoesOnWithoutTheRightsOfTheDeployer(t *testing.T) {
	leaving, home, adopted := leavingPlatform()
	for name, c := range map[string]struct {
		project *v1alpha1.Project
		tenant  *v1alpha1.Tenant
		do      func(*fixture, *scope) error
	}{
		"the tenant is stopped":    {shop(), acme(stopped), func(b *fixture, s *scope) error { return b.stop(t.Context(), s) }},
		"pods hold a removal":      {shop(deletedProject), acme(), func(b *fixture, s *scope) error { return b.killLate(t.Context(), s) }},
		"the namespace is removed": {shop(deletedProject), acme(), func(b *fixture, s *scope) error { return b.removeNamespace(t.Context(), s) }},
		"an adopted namespace is left": {leaving, nil, func(b *fixture, s *scope) error {
			_, err := b.leavePlatformNamespace(t.Context(), s, pvc.Terms{})
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			there := []client.Object{adopted.DeepCopy(), home.DeepCopy()}
			if c.tenant != nil {
				there = append(there, c.tenant)
			}
			b := platformFixture(t, kube.PlatformAppsNamespaced, there...)
			b.clock.SetTime(deletedAt.Add(24 * time.Hour))
			unreadable := rest.TLSClientConfig{CAFile: filepath.Join(t.TempDir(), "none")}
			b.Clients = kube.NewClients(&rest.Config{Host: "https://127.0.0.1", TLSClientConfig: unreadable}, b.api.Scheme(), b.api.RESTMapper(), b.Clients.Deployers)
			if err := c.do(b, b.with(c.project, c.tenant)); err == nil || !strings.HasPrefix(err.Error(), "making the client of ") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestNoNamespaceOfThePlatformIsMadeWhileNamespacesAreUnknown: it may exist, and have to be adopted.
func TestNoNamespaceOfThePlatformIsMadeWhileNamespacesAreUnknown(t *testing.T) {
	b := platformFixture(t, kube.PlatformAppsNamespaced)
	got := steptest.Outcome(t, b.makePlatformNamespace(t.Context(), b.newScope(platformProject("monitoring"))))
	if want := "failed Failed: the operator may not watch namespaces; the chart's role kubeop-operator lets it"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if b.get(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "monitoring"}}) {
		t.Error("the namespace was made")
	}
}

func TestSettingsOfTheNamespaceAreForThePlatformOnly(t *testing.T) {
	b := newFixture(t, acme())
	project := shop(func(p *v1alpha1.Project) { p.Spec.Namespace = &v1alpha1.PlatformNamespace{} })
	want := "stopped NotAllowed: spec.namespace is for projects of the platform itself only: remove it"
	if got := steptest.Outcome(t, b.resolve(t.Context(), b.newScope(project))); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestTheStatusCountsTheAppsAndTheirDeliveries(t *testing.T) {
	b := newFixture(t, acme(), appOf(shopNamespace, "web"))
	s := b.newScope(shop())
	s.project.Status.Inventory.Entries = []v1alpha1.InventoryEntry{{ID: shopNamespace + "_deployer__ServiceAccount", Version: "v1"}}
	if err := b.resolve(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if s.hadCluster() {
		t.Error("a ServiceAccount is no right in the cluster")
	}
	if s.Record(); s.project.Status.Apps != 1 || s.delivered == nil {
		t.Errorf("status %+v, delivered %v", s.project.Status.AppCounts, s.delivered)
	}
}
