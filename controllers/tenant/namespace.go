package tenant

import (
	"context"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/home"
	"github.com/kubeop/kubeop/delivery/namespace"
	"github.com/kubeop/kubeop/delivery/pvc"
)

func (r *Reconciler) home(s *scope) home.Home {
	owner := namespace.Owner{Labels: s.labels(), Tenant: s.tenant.UID, Identity: namespace.Identity(s.tenant)}
	return home.Home{Direct: r.Direct, Steps: r.Steps, Of: s.tenant, Name: s.home, Owner: owner}
}

// makeNamespace creates the home namespace. No pods run in it, so it has the strictest Pod Security level.
func (r *Reconciler) makeNamespace(ctx context.Context, s *scope) error {
	return r.home(s).Make(ctx, s.made, namespace.Terms{PodSecurity: "restricted", Limits: namespace.LimitsOf(s.tenant, nil, nil), Frozen: s.tenant.Spec.Frozen})
}

// removeNamespace deletes the home namespace, which has no projects any more. It has no claims, unless administrators created some.
func (r *Reconciler) removeNamespace(ctx context.Context, s *scope) error {
	return r.home(s).Remove(ctx, home.Removal{Policy: s.tenant.Spec.DeletionPolicy, Claims: pvc.Terms{
		Policies: []v1alpha1.ClaimDeletionPolicy{s.tenant.Spec.ClaimDeletionPolicy}, Confirmed: pvc.Confirmed(s.tenant),
	}})
}
