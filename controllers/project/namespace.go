package project

import (
	"cmp"
	"context"

	"github.com/kubeop/kubeop/controllers/home"
	"github.com/kubeop/kubeop/delivery/namespace"
)

// makeNamespace makes the project's namespace, held to the Pod Security level the tenant was given.
func (r *Reconciler) makeNamespace(ctx context.Context, s *scope) error {
	owner := namespace.Owner{Labels: s.labels(), Tenant: s.tenant.UID}
	return home.Home{Direct: r.Direct, Name: s.namespace, Owner: owner}.Make(ctx, s.made, cmp.Or(s.tenant.Spec.PodSecurity, "restricted"))
}

// removeNamespace deletes the namespace, empty of apps by now, and waits until it is gone with all that is in it.
func (r *Reconciler) removeNamespace(ctx context.Context, s *scope) error {
	if err := r.revokeCluster(ctx, s); err != nil {
		return err
	}
	h := home.Home{Direct: r.Direct, Name: s.namespace, Owner: namespace.Owner{Labels: s.labels()}}
	if err := h.Remove(ctx, s.project.Spec.DeletionPolicy); err != nil {
		return err
	}
	r.Forget(s.namespace)
	return nil
}
