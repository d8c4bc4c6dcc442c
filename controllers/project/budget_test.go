package project

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/internal/testenv/steptest"
)

func cpus(n string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceRequestsCPU: resource.MustParse(n)}
}

// TestAQuotaOverTheBudgetIsNotWritten: the quota has 0 of what does not fit, the rest of the namespace is made, and the step is not done.
func TestAQuotaOverTheBudgetIsNotWritten(t *testing.T) {
	b := newFixture(t)
	blog := "3"
	b.Grants.Quota = func(namespace string) (*corev1.ResourceQuota, error) {
		if namespace != "kubeop-acme-blog" {
			return nil, nil
		}
		return &corev1.ResourceQuota{Spec: corev1.ResourceQuotaSpec{Hard: cpus(blog)}}, nil
	}
	b.Grants.Changed("acme", "kubeop-acme-blog")
	s := b.with(shop(), acme(func(a *v1alpha1.Tenant) { a.Spec.Budget = cpus("5") }))
	got := steptest.Outcome(t, b.guard(t.Context(), s))
	if want := "later steps run; stopped BudgetExceeded: the quota of project shop does not fit into the budget of tenant acme: requests.cpu 4, with 2 of 5 left (the others have 3: blog 3); ask for at most what is left in spec.quota of project.yaml, shrink another project, or ask an administrator of the cluster for more with spec.budget of the Tenant, in tenant.yaml of the platform repository"; got != "later steps run; stopped BudgetExceeded: the quota of project shop does not fit into the budget of tenant acme: requests.cpu 4, with 2 of 5 left (the others have 3: blog 3); ask for at most what is left in spec.quota of project.yaml, shrink another project, or ask an administrator of the cluster for more with spec.budget of the Tenant, in tenant.yaml of the platform repository" || got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	quota, limits := &corev1.ResourceQuota{}, &corev1.LimitRange{}
	for _, o := range []client.Object{quota, limits} {
		if err := b.api.Get(t.Context(), client.ObjectKey{Namespace: shopNamespace, Name: guardName}, o); err != nil {
			t.Fatal(err)
		}
	}
	if cpu, pods := quota.Spec.Hard[corev1.ResourceRequestsCPU], quota.Spec.Hard[corev1.ResourcePods]; cpu.String() != "0" || pods.String() != "50" {
		t.Errorf("the quota has %s processors and %s pods", cpu.String(), pods.String())
	}
	queue := newWoken()
	if err := b.onGrants().Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	blog = "2"
	b.Grants.Changed("acme", "kubeop-acme-blog")
	if diff := cmp.Diff([]string{"kubeop-acme/shop"}, queue.all(len(queue.names))); diff != "" {
		t.Errorf("another project that gives something back wakes (-want +got):\n%s", diff)
	}
	s.tenant.Spec.Budget = cpus("7")
	if got := steptest.Outcome(t, b.guard(t.Context(), s)); got != "done" {
		t.Errorf("with a larger budget: %s", got)
	}
}

// TestAQuotaIsLoweredNearTheLimitOfTheStore, and the projects of the tenant are woken when that changes.
func TestAQuotaIsLoweredNearTheLimitOfTheStore(t *testing.T) {
	tenant := acme()
	used := resource.MustParse("1")
	b := newFixture(t, tenant, shop(), shop(func(p *v1alpha1.Project) { p.Namespace = "kubeop-rival" }))
	b.Store.Limits.StoreBytes = 64 << 10 // Two ConfigMaps.
	b.Store.Quota = func(name string) (*corev1.ResourceQuota, error) {
		if name != shopNamespace {
			return nil, nil
		}
		return &corev1.ResourceQuota{Status: corev1.ResourceQuotaStatus{Used: corev1.ResourceList{"count/configmaps": used}}}, nil
	}
	s := b.with(shop(), tenant)
	if got := steptest.Outcome(t, b.guard(t.Context(), s)); got != "done" || !s.lowered {
		t.Errorf("got %q, lowered: %t", got, s.lowered)
	}
	live := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: shopNamespace, Name: guardName}}
	if !b.get(live) || amounts(live.Spec.Hard)["count/configmaps"] != "2" {
		t.Errorf("the quota is %v", amounts(live.Spec.Hard))
	}
	queue := newWoken()
	if err := b.onStore().Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	go func() { _ = b.Store.Start(t.Context()) }()
	used = resource.MustParse("9")
	b.Store.Changed("acme", shopNamespace)
	for !b.clock.HasWaiters() {
		time.Sleep(time.Millisecond)
	}
	b.clock.Step(time.Second)
	if diff := cmp.Diff([]string{"kubeop-acme/shop"}, queue.all(1)); diff != "" {
		t.Errorf("a project that takes more wakes (-want +got):\n%s", diff)
	}
}

func TestReadySaysByHowMuchALoweredQuotaIsExceeded(t *testing.T) {
	b := newFixture(t)
	b.Store.Quota = func(string) (*corev1.ResourceQuota, error) {
		return &corev1.ResourceQuota{Status: corev1.ResourceQuotaStatus{Used: cpus("3")}}, nil
	}
	s := b.with(shop(func(p *v1alpha1.Project) { p.Spec.Quota = cpus("2") }), acme())
	if got := steptest.Outcome(t, b.guard(t.Context(), s)); got != "done" {
		t.Fatal(got)
	}
	if want := "Apps live in namespace kubeop-acme-shop; it uses more than its quota: requests.cpu over by 1 (3 of 2); nothing is deleted, and nothing more of it is admitted"; s.Summary() != want {
		t.Errorf("got %q, want %q", s.Summary(), want)
	}
}
