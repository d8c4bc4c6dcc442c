package tenant

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/internal/testenv/steptest"
)

func quantities(cpu, pods string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceRequestsCPU: resource.MustParse(cpu), corev1.ResourcePods: resource.MustParse(pods)}
}

func TestTheStatusSaysWhatIsUsedOfTheBudget(t *testing.T) {
	shop := &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-acme", Name: "shop"}, Spec: v1alpha1.ProjectSpec{Quota: quantities("8", "30")}}
	blog := &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-acme", Name: "blog"}}
	for name, c := range map[string]struct {
		budget        corev1.ResourceList
		outcome, over string
		summary       string
		// at is where the file has the budget.
		at string
	}{
		"none":     {outcome: "done"},
		"room":     {budget: quantities("16", "200"), outcome: "done", summary: "pods 80/200, requests.cpu 12/16"},
		"full":     {budget: quantities("12", "80"), outcome: "done", summary: "pods 80/80, requests.cpu 12/12"},
		"exceeded": {budget: quantities("10", "80"), outcome: "done", summary: "pods 80/80, requests.cpu 12/10", over: "the quotas of the projects are over the budget: requests.cpu over by 2 (12 of 10); nothing is deleted, and no project gets more of it until the others take less: lower spec.quota in a project.yaml, or ask an administrator of the cluster for more with spec.budget of the Tenant, in tenant.yaml of the platform repository"},
		"negative": {budget: quantities("-1", "80"), outcome: "later steps run; stopped InvalidBudget: spec.budget names requests.cpu: -1 is negative; write 0 or more in spec.budget; an administrator of the cluster corrects spec.budget of the Tenant, in tenant.yaml of the platform repository", summary: "pods 80/80, requests.cpu 12/-1", over: "the quotas of the projects are over the budget: requests.cpu over by 13 (12 of -1); nothing is deleted, and no project gets more of it until the others take less: lower spec.quota in a project.yaml, or ask an administrator of the cluster for more with spec.budget of the Tenant, in tenant.yaml of the platform repository"},
		"from Git": {budget: quantities("10", "80"), at: "tenants/acme/tenant.yaml:7:3", outcome: "done", summary: "pods 80/80, requests.cpu 12/10", over: "the quotas of the projects are over the budget: requests.cpu over by 2 (12 of 10); nothing is deleted, and no project gets more of it until the others take less: lower spec.quota in a project.yaml, or ask an administrator of the cluster for more with spec.budget of the Tenant, at tenants/acme/tenant.yaml:7:3 of the platform repository"},
	} {
		t.Run(name, func(t *testing.T) {
			tenant := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "acme"}, Spec: v1alpha1.TenantSpec{Budget: c.budget, Quota: quantities("100", "100")}}
			if c.at != "" {
				tenant.Annotations = map[string]string{v1alpha1.BudgetAnnotation: c.at}
			}
			tenant.Status.Budget = &v1alpha1.BudgetStatus{Summary: "pods 1/1"} // Of an earlier pass.
			b := newFixture(t, tenant, shop.DeepCopy(), blog.DeepCopy())
			s := b.newScope(tenant)
			if got := steptest.Outcome(t, b.weigh(t.Context(), s)); got != c.outcome {
				t.Errorf("got %q, want %q", got, c.outcome)
			}
			s.Record()
			if got := tenant.Status.Budget; got == nil && c.summary != "" || got != nil && got.Summary != c.summary {
				t.Errorf("got %+v, want %q", got, c.summary)
			}
			over := step.Note{Condition: v1alpha1.OverBudgetCondition, Reason: v1alpha1.SucceededReason, Message: "the quotas of the projects fit into the budget again", Event: "Normal"}
			if c.over != "" {
				over = step.Note{Condition: v1alpha1.OverBudgetCondition, Status: metav1.ConditionTrue, Reason: v1alpha1.BudgetExceededReason, Message: c.over, Event: "Warning"}
			}
			if diff := cmp.Diff(over, s.over); diff != "" {
				t.Errorf("the condition (-want +got):\n%s", diff)
			}
			if got := tenant.Status.Budget; got != nil && (len(got.Over) > 0 != (c.over != "") || len(got.Used) != len(c.budget)) {
				t.Errorf("used %v, over %v", got.Used, got.Over)
			}
		})
	}
}
