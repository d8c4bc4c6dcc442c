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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

// capped is a default policy with a maximum for processors.
func capped(name, most string) v1alpha1.Policy {
	return v1alpha1.Policy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.PolicySpec{Default: true, Quota: &v1alpha1.QuotaRules{Max: cpus(most)}}}
}

// TestACommitGetsNoMoreThanAPolicyAllows, whether the tenant has a budget or not. What was requested before stays, as it is written with the maximum.
func TestACommitGetsNoMoreThanAPolicyAllows(t *testing.T) {
	strict, wide := capped("strict", "3"), capped("wide", "6")
	for _, budget := range []string{"", "100"} {
		b, err := budgets(t, &strict, &wide, projectWith("shop", "5"), projectWith("blog", "2")).Of(t.Context(), tenantWith(budget))
		if err != nil {
			t.Fatal(err)
		}
		b.Declare(projectWith("shop", "5"))
		if a := b.Fit(); len(a.Refused) > 0 {
			t.Errorf("what was there before is refused: %v", a.Refused)
		}
		b.Declare(projectWith("shop", "4"))
		b.Declare(projectWith("blog", "4"))
		b.Declare(projectWith("docs", "3"))
		a := b.Fit()
		want := "spec.quota requests requests.cpu 4, of which 3 is allowed; ask for less, or ask an administrator of the cluster for more with spec.quota.max of policies/strict.yaml in the platform repository"
		if over := a.Refused["blog"]; len(a.Refused) != 1 || over == nil || over.Error() != want || over.Field() != "spec.quota.requests.cpu" || a.Refusals() != want {
			t.Errorf("refused are %v, want blog: %s", a.Refused, want)
		}
		if used := a.Used[corev1.ResourceRequestsCPU]; budget != "" && used.String() != "8" {
			t.Errorf("%s is used, want 8: 3 of shop, 3 of docs, and the 2 that blog keeps", used.String())
		}
	}
}

// TestWithoutBudgetAndQuotaOfAPolicyNothingIsCounted: no project is listed.
func TestWithoutBudgetAndQuotaOfAPolicyNothingIsCounted(t *testing.T) {
	other := capped("other", "1")
	other.Spec.Default = false
	b := budgets(t, &other)
	b.Kinds = func(context.Context) ([]schema.GroupResource, error) { return nil, errors.New("no discovery") }
	if of, err := b.Of(t.Context(), tenantWith("")); of != nil || err != nil {
		t.Errorf("got %v, %v", of, err)
	}
	b.Reader = unseen{b.Reader}
	if of, err := b.Of(t.Context(), tenantWith("")); of != nil || err != nil {
		t.Errorf("of who may not see policies: got %v, %v", of, err)
	}
}

// unseen is a reader who may not see policies.
type unseen struct{ client.Reader }

func (u unseen) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if _, ok := list.(*v1alpha1.PolicyList); ok {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "policies"}, "", errors.New("no"))
	}
	return u.Reader.List(ctx, list, options...)
}

func TestABudgetThatCannotBeCountedIsAnError(t *testing.T) {
	b := budgets(t)
	b.Reader = failing{}
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
	b := NewBudget(tenant, []v1alpha1.Policy{capped("strict", "9")}, quota.Usual())
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
	hard, _ := quota.Of(nil, quota.Terms{}, quota.Usual())
	return hard
}
