package project

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	core "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/apply"
	"github.com/kubeop/kubeop/delivery/limitrange"
	"github.com/kubeop/kubeop/delivery/quota"
)

// guardName is the name of the project's quota and limits.
const guardName = quota.Name

// guard applies the policies, the quota, the limits and the network isolation. Network policies that cannot be narrowed do not keep the rest from
// being applied: kubeop's own opens only what is allowed, so nothing depends on the order.
func (r *Reconciler) guard(ctx context.Context, s *scope) error {
	enforced := r.enforce(ctx, s)
	narrowed := r.narrow(ctx, s)
	if enforced != nil {
		return errors.Join(narrowed, enforced)
	}
	return errors.Join(narrowed, r.limit(ctx, s))
}

// limit applies the quota, the limits and the network isolation. What the project requests in excess of what is allowed, or of the budget of its
// tenant, it does not get, and limit says so in the end, and why it has no ClusterNetworkPolicy.
func (r *Reconciler) limit(ctx context.Context, s *scope) error {
	hard, beyond, err := r.quotaOf(ctx, s)
	if err != nil {
		return err
	}
	within := limitrange.Of(s.rules.policies, s.project.Spec.Limits)
	s.conflicts = within.Conflicts
	counted := core.ResourceQuota(guardName, s.namespace).WithLabels(s.labels()).WithSpec(core.ResourceQuotaSpec().WithHard(hard))
	limits := core.LimitRange(guardName, s.namespace).WithLabels(s.labels()).
		WithSpec(core.LimitRangeSpec().WithLimits(within.Items()...))
	if err := s.made.Apply(ctx, counted, limits, noSystemPriority(s), s.isolate()); err != nil {
		return step.Refused(v1alpha1.ApplyFailedReason, err, apply.ErrForeign)
	}
	unsaid := r.confine(ctx, s)
	now, err := r.Store.Quota(s.namespace)
	if err != nil {
		return err
	}
	if now != nil {
		s.excess = quota.OverBy(now.Status.Used, hard)
	}
	if err := r.open(ctx, s); err != nil {
		return err
	}
	return errors.Join(unsaid, beyond)
}

// quotaOf returns the quota of the project. beyond says what the project requests and does not get; nil for nothing.
func (r *Reconciler) quotaOf(ctx context.Context, s *scope) (hard corev1.ResourceList, beyond, err error) {
	kinds, err := r.Kinds.List(ctx)
	if err != nil {
		return nil, nil, err
	}
	if s.network.allowed != nil { // kinds are those of the role kubeop-deployer. The right to write these is in another role.
		kinds = append(slices.Clone(kinds), schema.GroupResource{Group: networkingv1.GroupName, Resource: "networkpolicies"})
	}
	hard, excess := quota.Of(s.project.Spec.Quota, quota.TermsOf(s.tenant, s.rules.policies), kinds)
	hard, over, err := r.Grants.Grant(ctx, s.tenant, s.project.Name, hard)
	if err != nil {
		return nil, nil, err
	}
	switch {
	case excess != nil:
		beyond = step.GoOn(step.Stop(v1alpha1.QuotaExceededReason, fmt.Errorf("the project has only as much as is allowed: %w", excess)))
	case over != nil:
		beyond = step.GoOn(step.Stop(v1alpha1.BudgetExceededReason, over))
	}
	hard, s.lowered, err = r.Store.Share(ctx, s.tenant, s.namespace, hard)
	return hard, beyond, err
}

// noSystemPriority forbids the project's pods the priority classes of Kubernetes' own pods, which preempt other pods. It is needed if the
// admission policies are turned off, which allow only the classes in spec.priorityClasses of the tenant.
func noSystemPriority(s *scope) *core.ResourceQuotaApplyConfiguration {
	classes := core.ScopedResourceSelectorRequirement().WithScopeName(corev1.ResourceQuotaScopePriorityClass).
		WithOperator(corev1.ScopeSelectorOpIn).WithValues("system-node-critical", "system-cluster-critical")
	return core.ResourceQuota(guardName+"-priority", s.namespace).WithLabels(s.labels()).
		WithSpec(core.ResourceQuotaSpec().
			WithHard(corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}).
			WithScopeSelector(core.ScopeSelector().WithMatchExpressions(classes)))
}
