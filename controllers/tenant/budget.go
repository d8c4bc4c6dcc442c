package tenant

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/command"
	"github.com/kubeop/kubeop/delivery/quota"
)

// weigh compares the quotas of the projects with the tenant's budget. A budget that names what no quota counts, or is negative, is an error;
// one that is exceeded is not: what is there stays.
func (r *Reconciler) weigh(ctx context.Context, s *scope) error {
	s.over = step.Note{Condition: v1alpha1.OverBudgetCondition, Reason: v1alpha1.SucceededReason, Message: "the quotas of the projects fit into the budget again", Event: "Normal"}
	spec := s.tenant.Spec
	b, err := r.Budgets.Of(ctx, s.tenant)
	if err != nil {
		return err
	}
	s.budget = nil
	if b == nil || len(spec.Budget) == 0 {
		return nil
	}
	a := b.Fit()
	s.budget = &v1alpha1.BudgetStatus{Used: a.Used, Over: a.Over, Summary: summaryOf(a.Used, spec.Budget)}
	if len(a.Over) > 0 {
		s.over = step.Note{
			Condition: v1alpha1.OverBudgetCondition, Status: metav1.ConditionTrue, Reason: v1alpha1.BudgetExceededReason, Event: "Warning",
			Message: fmt.Sprintf("the quotas of the projects are over the budget: %s; nothing is deleted, and no project gets more of it until the others take less: lower spec.quota in a project.yaml, "+
				"or ask an administrator of the cluster for more with %s", quota.OverBy(a.Used, spec.Budget), budgetOf(s.tenant)),
		}
	}
	var wrong []error
	for _, fault := range quota.CheckBudget(spec.Budget, spec.Quota) {
		wrong = append(wrong, fault)
	}
	if len(wrong) > 0 {
		return step.GoOn(step.Stop(v1alpha1.InvalidBudgetReason, fmt.Errorf("%w; an administrator of the cluster corrects %s", errors.Join(wrong...), budgetOf(s.tenant))))
	}
	return nil
}

// budgetOf names the budget of a Tenant, with its place in the platform repository if it comes from there.
func budgetOf(tenant *v1alpha1.Tenant) string {
	if at := tenant.Annotations[v1alpha1.BudgetAnnotation]; at != "" {
		return "spec.budget of the Tenant, at " + at + " of the platform repository"
	}
	return command.OfTenant("spec.budget")
}

// summaryOf returns what is used of a budget in one line, such as "pods 150/200, requests.cpu 12/16".
func summaryOf(used, budget corev1.ResourceList) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(budget)) {
		is, limit := used[name], budget[name]
		all = append(all, fmt.Sprintf("%s %s/%s", name, is.String(), limit.String()))
	}
	return strings.Join(all, ", ")
}
