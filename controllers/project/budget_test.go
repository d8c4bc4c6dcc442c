package project

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
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
	b.Grants.Quota = func(namespace string) (*corev1.ResourceQuota, error) {
		if namespace != "kubeop-acme-blog" {
			return nil, nil
		}
		return &corev1.ResourceQuota{Spec: corev1.ResourceQuotaSpec{Hard: cpus("3")}}, nil
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
	s.tenant.Spec.Budget = cpus("7")
	if got := steptest.Outcome(t, b.guard(t.Context(), s)); got != "done" {
		t.Errorf("with a larger budget: %s", got)
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
