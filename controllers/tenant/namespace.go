package tenant

import (
	"context"

	"github.com/kubeop/kubeop/controllers/home"
	"github.com/kubeop/kubeop/delivery/namespace"
)

func (r *Reconciler) home(s *scope) home.Home {
	return home.Home{Direct: r.Direct, Name: s.home, Owner: namespace.Owner{Labels: s.labels(), Tenant: s.tenant.UID}}
}

// makeNamespace makes the home namespace. Nobody runs pods in it, so it is held to the strictest Pod Security level.
func (r *Reconciler) makeNamespace(ctx context.Context, s *scope) error {
	return r.home(s).Make(ctx, s.made, "restricted")
}

// removeNamespace deletes the home namespace, empty by now.
func (r *Reconciler) removeNamespace(ctx context.Context, s *scope) error {
	return r.home(s).Remove(ctx, s.tenant.Spec.DeletionPolicy)
}
