package tenant

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/hostname"
)

// compareDomains stops if a domain overlaps with one of an older tenant. Its owners read the status, so it does not name the other tenant.
func (r *Reconciler) compareDomains(ctx context.Context, s *scope) error {
	if len(s.tenant.Spec.Domains) == 0 {
		return nil
	}
	tenants := &v1alpha1.TenantList{}
	if err := r.Client.List(ctx, tenants, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing the tenants: %w", err)
	}
	if contested := hostname.Contested(s.tenant, tenants.Items); contested != "" {
		return step.Stop(v1alpha1.DomainTakenReason, fmt.Errorf("spec.domains: %s overlaps with a domain of another, older tenant, which keeps its host names; kubectl get tenants "+
			"-o custom-columns=NAME:.metadata.name,DOMAINS:.spec.domains shows administrators which tenant. Remove one of the two in the platform repository", contested))
	}
	return nil
}

// domainsChanged passes changes of the domains of a Tenant.
var domainsChanged = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		return !slices.Equal(e.ObjectOld.(*v1alpha1.Tenant).Spec.Domains, e.ObjectNew.(*v1alpha1.Tenant).Spec.Domains)
	},
}

// withDomains maps a tenant to all others that have domains.
func (r *Reconciler) withDomains(ctx context.Context, changed client.Object) []reconcile.Request {
	if len(changed.(*v1alpha1.Tenant).Spec.Domains) == 0 {
		return nil
	}
	return r.tenants(ctx, changed, func(tenant *v1alpha1.Tenant) bool {
		return len(tenant.Spec.Domains) > 0 && tenant.Name != changed.GetName()
	})
}
