package usage

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/guardrails"
)

// QuotaChanged passes the changes of a Policy after which a project may have more. A new Policy allows nothing more.
var QuotaChanged = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false },
	UpdateFunc: func(e event.UpdateEvent) bool {
		was, is := e.ObjectOld.(*v1alpha1.Policy).Spec, e.ObjectNew.(*v1alpha1.Policy).Spec
		return !equality.Semantic.DeepEqual(was.Quota, is.Quota) || was.Quota != nil && was.Default != is.Default
	},
	DeleteFunc:  func(e event.DeleteEvent) bool { return e.Object.(*v1alpha1.Policy).Spec.Quota != nil },
	GenericFunc: func(event.GenericEvent) bool { return false },
}

// UnderPolicy maps a Policy to the repositories of the tenants that are under it. If listing the tenants fails, the error is logged, and their
// repositories are reconciled at their interval.
func (b *Budgets) UnderPolicy(ctx context.Context, changed client.Object) (requests []reconcile.Request) {
	policy := []v1alpha1.Policy{*changed.(*v1alpha1.Policy)}
	tenants := &v1alpha1.TenantList{}
	if err := b.Reader.List(ctx, tenants, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing the tenants whose repositories to wake; they are reconciled at their interval", "because", changed.GetName())
		return nil
	}
	for i := range tenants.Items {
		if selected, _ := guardrails.Select(&tenants.Items[i], policy); len(selected) > 0 {
			requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Name: tenants.Items[i].Name}})
		}
	}
	return requests
}
