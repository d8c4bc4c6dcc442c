package project

import (
	"slices"

	"github.com/fluxcd/pkg/runtime/conditions"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/budget"
)

// TermsChanged passes updates of Tenants that freeze or stop the tenant, or change the limits of its Apps or of their sources, its keys, what
// administrators allow its Apps, or the Pod Security level of its namespaces.
var TermsChanged = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false }, DeleteFunc: func(event.DeleteEvent) bool { return false },
	UpdateFunc: func(e event.UpdateEvent) bool {
		old, current := e.ObjectOld.(*v1alpha1.Tenant), e.ObjectNew.(*v1alpha1.Tenant)
		was, is := &old.Spec, &current.Spec
		if was.Sops != is.Sops || !equality.Semantic.DeepEqual(old.Status.Sops, current.Status.Sops) {
			return true
		}
		before, after := budget.Limits{}.With(&was.Limits), budget.Limits{}.With(&is.Limits)
		return was.PodSecurity != is.PodSecurity || was.Frozen != is.Frozen || was.Stopped != is.Stopped || !slices.Equal(was.Freeze, is.Freeze) ||
			before.App != after.App || before.RenderedBytes != after.RenderedBytes || before.SourceBytes != after.SourceBytes || before.PackBytes != after.PackBytes ||
			!equality.Semantic.DeepEqual(allowed(was), allowed(is))
	},
}

// allowed are the exceptions that administrators make for a tenant, and what becomes of its claims.
func allowed(t *v1alpha1.TenantSpec) []any {
	return []any{t.ClusterKinds, t.Taints, t.IngressAnnotations, t.CSIDrivers, t.PriorityClasses, t.MaxTerminationGracePeriod, t.ClaimDeletionPolicy}
}

// ReadyChanged passes updates of a Project that change whether it is ready, or its pull Secrets, and those that report that a change of its spec was carried
// out, such as of claimDeletionPolicy or, in a project of the platform, of podSecurity.
var ReadyChanged = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		was, is := e.ObjectOld.(*v1alpha1.Project), e.ObjectNew.(*v1alpha1.Project)
		return conditions.IsReady(was) != conditions.IsReady(is) || was.Status.ObservedGeneration != is.Status.ObservedGeneration || !slices.Equal(was.Status.PullSecrets, is.Status.PullSecrets)
	},
}
