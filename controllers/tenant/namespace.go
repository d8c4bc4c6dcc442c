package tenant

import (
	"context"
	"errors"
	"time"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/namespace"
)

// makeNamespace makes the home namespace. Nobody runs pods in it, so it is held to the strictest Pod Security level.
func (r *Reconciler) makeNamespace(ctx context.Context, s *scope) error {
	err := namespace.Claim(ctx, r.Direct, s.home, s.owner())
	switch {
	case errors.Is(err, namespace.ErrTaken), errors.Is(err, namespace.ErrInherited):
		return step.Stop(v1alpha1.NamespaceTakenReason, err)
	case errors.Is(err, namespace.ErrLeaving):
		return step.Wait(v1alpha1.ProgressingReason, 2*time.Second, "%w", err)
	case err != nil:
		return err
	}
	return s.made.Apply(ctx, namespace.Object(s.home, s.owner(), "restricted"))
}

// removeNamespace deletes the home namespace, empty by now, and waits until it is gone.
func (r *Reconciler) removeNamespace(ctx context.Context, s *scope) error {
	if s.tenant.Spec.DeletionPolicy == v1alpha1.DeletionOrphan {
		return nil
	}
	left, err := namespace.Remove(ctx, r.Direct, s.home, s.labels())
	if err != nil {
		return err
	}
	if left != "" {
		return step.Wait(v1alpha1.DeletingReason, time.Second, "%s", left)
	}
	return nil
}
