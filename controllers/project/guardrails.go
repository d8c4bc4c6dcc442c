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

// guard applies the policies, the network isolation, the limits and the quota. Each is applied whatever becomes of the others: nothing that the tenant
// writes keeps the rest from being narrowed, and only if all are in place is the namespace opened. kubeop's own network policy opens only what is allowed,
// so nothing depends on the order. What the tenant writes and does not get, and why the project has no ClusterNetworkPolicy, is said in the end.
func (r *Reconciler) guard(ctx context.Context, s *scope) error {
	unknown := r.connect(ctx, s)
	failed := []error{unknown, r.enforce(ctx, s), r.narrow(ctx, s)}
	if unknown != nil {
		return urgentFirst(failed...)
	}
	failed = append(failed, step.Refused(v1alpha1.ApplyFailedReason, s.made.Apply(ctx, noSystemPriority(s), s.isolate()), apply.ErrForeign))
	unconfined := r.confine(ctx, s)
	limited, unfit := r.limit(ctx, s)
	counted, beyond := r.bound(ctx, s)
	err := urgentFirst(append(failed, limited, counted)...)
	if err == nil {
		err = r.open(ctx, s)
	}
	return errors.Join(err, unconfined, unfit, beyond)
}

// urgentFirst joins errors. The first says how a step ends, so those that are tried again soon come before those that only a change can help.
func urgentFirst(all ...error) error {
	slices.SortStableFunc(all, func(a, b error) int {
		switch {
		case step.Fails(a) == step.Fails(b):
			return 0
		case step.Fails(a):
			return -1
		}
		return 1
	})
	return errors.Join(all...)
}

// limit applies the limits of containers and claims. If the API server refuses those that the project itself names, those of its policies hold alone, and
// unfit says so.
func (r *Reconciler) limit(ctx context.Context, s *scope) (err, unfit error) {
	applied := func(own v1alpha1.ContainerLimits) error {
		within := limitrange.Of(s.rules.policies, own)
		s.conflicts = within.Conflicts
		return s.made.Apply(ctx, core.LimitRange(guardName, s.namespace).WithLabels(s.labels()).
			WithSpec(core.LimitRangeSpec().WithLimits(within.Items()...)))
	}
	if err = applied(s.project.Spec.Limits); step.Unacceptable(err) {
		unfit = step.GoOn(step.Stop(v1alpha1.ApplyFailedReason, fmt.Errorf("spec.limits of project.yaml has no effect until it is corrected: %w", err)))
		err = applied(v1alpha1.ContainerLimits{})
	}
	return step.Refused(v1alpha1.ApplyFailedReason, err, apply.ErrForeign), unfit
}

// bound applies the quota. What the project requests in excess of what is allowed, or of the budget of its tenant, it does not get, and beyond says so.
func (r *Reconciler) bound(ctx context.Context, s *scope) (err, beyond error) {
	hard, beyond, err := r.quotaOf(ctx, s)
	if err != nil {
		return err, beyond
	}
	err = s.made.Apply(ctx, core.ResourceQuota(guardName, s.namespace).WithLabels(s.labels()).WithSpec(core.ResourceQuotaSpec().WithHard(hard)))
	if err != nil {
		return step.Refused(v1alpha1.ApplyFailedReason, err, apply.ErrForeign), beyond
	}
	now, err := r.Store.Quota(s.namespace)
	if now != nil {
		s.excess = quota.OverBy(now.Status.Used, hard)
	}
	return err, beyond
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
	faults := quota.CheckRequested("quota", s.project.Spec.Quota)
	switch {
	case len(faults) > 0:
		beyond = step.GoOn(step.Stop(v1alpha1.ApplyFailedReason, fmt.Errorf("spec.%s of project.yaml: %s; until it is corrected, the nearest amount that a quota can have holds", faults[0].Field, faults[0].Why)))
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
