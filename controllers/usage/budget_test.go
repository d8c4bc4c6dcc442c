package usage

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/quota"
)

func cpus(n string) corev1.ResourceList {
	if n == "" {
		return nil
	}
	return corev1.ResourceList{corev1.ResourceRequestsCPU: resource.MustParse(n)}
}

func projectWith(name, cpu string) *v1alpha1.Project {
	return &v1alpha1.Project{ObjectMeta: objectMeta("kubeop-acme", name, 1), Spec: v1alpha1.ProjectSpec{Quota: cpus(cpu)}}
}

func budgets(t *testing.T, objects ...client.Object) *Budgets {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return &Budgets{
		Reader: fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build(),
		Kinds:  func(context.Context) ([]schema.GroupResource, error) { return quota.Usual(), nil },
	}
}

func tenantWith(budget string) *v1alpha1.Tenant {
	return &v1alpha1.Tenant{ObjectMeta: objectMeta("", "acme", 1), Spec: v1alpha1.TenantSpec{Budget: cpus(budget), Quota: cpus("8")}}
}

func TestABudgetCountsTheEffectiveQuotasOfTheCommitAndTheCluster(t *testing.T) {
	going := projectWith("old", "3")
	going.DeletionTimestamp, going.Finalizers = &metav1.Time{Time: time.Unix(1, 0)}, []string{"x"}
	other := projectWith("shop", "8")
	other.Namespace = "kubeop-other"
	b, err := budgets(t, going, other, projectWith("shop", "2"), projectWith("blog", "")).Of(t.Context(), tenantWith("12"))
	if err != nil {
		t.Fatal(err)
	}
	b.Declare(projectWith("shop", "2")) // As it is.
	b.Declare(projectWith("new", ""))
	preview := projectWith("blog-pr-1", "1")
	preview.Annotations = map[string]string{v1alpha1.PreviewOfAnnotation: "blog"}
	b.Declare(preview)
	a := b.Fit()
	if used := a.Used[corev1.ResourceRequestsCPU]; used.String() != "10" || len(a.Refused) != 1 {
		t.Errorf("%s is used, and refused are %v", used.String(), a.Refused)
	}
	want := "the quota of project new does not fit into the budget of tenant acme: requests.cpu 4 (the default), with 2 of 12 left (the others have 10: blog 4, old 3 until it is gone, shop 2, and 1 more); ask for at most what is left in spec.quota of project.yaml, shrink another project, or ask an administrator of the cluster for more with spec.budget of the Tenant, in tenant.yaml of the platform repository"
	if over := a.Refused["new"]; over == nil || over.Error() != want {
		t.Errorf("got %v, want %q", over, want)
	}
	if !a.Grows["blog-pr-1"] {
		t.Error("the preview fits and is not admitted")
	}
	b.Remove("old")
	if a := b.Fit(); !a.Grows["new"] || len(a.Refused) > 0 || a.Shrinks["shop"] {
		t.Errorf("with room for the new one: %+v", a)
	}
}

func TestATenantWithoutBudgetIsNotCounted(t *testing.T) {
	b := budgets(t)
	b.Reader = failing{}
	if of, err := b.Of(t.Context(), tenantWith("")); of != nil || err != nil {
		t.Errorf("got %v, %v", of, err)
	}
	if of, err := b.Of(t.Context(), tenantWith("1")); of != nil || err == nil {
		t.Errorf("a failed list: got %v, %v", of, err)
	}
	b = budgets(t)
	b.Kinds = func(context.Context) ([]schema.GroupResource, error) { return nil, errors.New("no discovery") }
	if of, err := b.Of(t.Context(), tenantWith("1")); of != nil || err == nil {
		t.Errorf("unknown kinds: got %v, %v", of, err)
	}
}

// TestThousandProjectsArePlannedQuickly has a commit that changes half of the quotas of 1,000 projects, under a budget of all usual resources.
func TestThousandProjectsArePlannedQuickly(t *testing.T) {
	tenant := tenantWith("8k")
	for i, name := range slices.Sorted(maps.Keys(everything())) {
		tenant.Spec.Budget[name] = *resource.NewQuantity(int64(i+1)<<40, resource.DecimalSI)
	}
	took := planOf(t, tenant)
	t.Logf("1,000 projects and %d resources: %s", len(tenant.Spec.Budget), took)
	few := tenantWith("8k")
	for _, name := range []corev1.ResourceName{"pods", "requests.memory", "limits.memory", "requests.storage", "count/secrets"} {
		few.Spec.Budget[name] = resource.MustParse("1P")
	}
	t.Logf("1,000 projects and %d resources: %s", len(few.Spec.Budget), planOf(t, few))
}

func planOf(t *testing.T, tenant *v1alpha1.Tenant) time.Duration {
	t.Helper()
	b := NewBudget(tenant, quota.Usual())
	began := time.Now()
	for i := range 1000 {
		b.has(projectWith(fmt.Sprint("p", i), "4"))
	}
	for i := range 1000 {
		b.Declare(projectWith(fmt.Sprint("p", i), []string{"4", "8"}[i%2]))
	}
	a := b.Fit()
	took := time.Since(began)
	if len(a.Grows) != 500 || took > 30*time.Second {
		t.Errorf("%d grow, after %s", len(a.Grows), took)
	}
	return took
}

// everything names every resource of a quota.
func everything() corev1.ResourceList {
	hard, err := quota.Of(nil, nil, quota.Usual())
	if err != nil {
		panic(err)
	}
	return hard
}
