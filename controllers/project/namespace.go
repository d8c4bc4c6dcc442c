package project

import (
	"context"
	"errors"
	"time"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/namespace"
)

// makeNamespace makes the project's namespace, held to the Pod Security level the tenant was given.
func (r *Reconciler) makeNamespace(ctx context.Context, s *scope) error {
	err := namespace.Claim(ctx, r.Direct, s.namespace, s.owner())
	switch {
	case errors.Is(err, namespace.ErrTaken), errors.Is(err, namespace.ErrInherited):
		return step.Stop(v1alpha1.NamespaceTakenReason, err)
	case errors.Is(err, namespace.ErrLeaving):
		return step.Wait(v1alpha1.ProgressingReason, 2*time.Second, "%w", err)
	case err != nil:
		return err
	}
	level := s.tenant.Spec.PodSecurity
	if level == "" {
		level = "restricted"
	}
	return s.made.Apply(ctx, namespace.Object(s.namespace, s.owner(), level))
}

// removeNamespace deletes the namespace, empty of apps by now, and waits until it is gone with all that is in it.
func (r *Reconciler) removeNamespace(ctx context.Context, s *scope) error {
	if s.project.Spec.DeletionPolicy == v1alpha1.DeletionOrphan {
		return nil
	}
	left, err := namespace.Remove(ctx, r.Direct, s.namespace, s.labels())
	if err != nil {
		return err
	}
	if left != "" {
		return step.Wait(v1alpha1.DeletingReason, time.Second, "%s", left)
	}
	r.Clients.Forget(s.namespace)
	return nil
}
