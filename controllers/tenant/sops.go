package tenant

import (
	"context"
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/namespace"
	"github.com/kubeop/kubeop/internal/sopskey"
)

// NewKeys returns the keys of tenants, which are in Secrets of a namespace, that of the operator. The client must not read from a cache.
func NewKeys(direct client.Client, operatorNamespace string) *sopskey.Keys {
	return &sopskey.Keys{Client: direct, Namespace: operatorNamespace, Identity: namespace.Identity}
}

// makeKey makes the age key that a tenant wants, and keeps its earlier ones. What was made is kept, also when the tenant no longer wants it.
func (r *Reconciler) makeKey(ctx context.Context, s *scope) error {
	if s.tenant.Spec.Sops == "" {
		return nil
	}
	keys, err := r.Keys.Ensure(ctx, s.tenant)
	if keys != nil {
		s.keys = keys
	}
	switch {
	case errors.Is(err, sopskey.ErrUnusable):
		return step.Stop(v1alpha1.KeyUnusableReason, err)
	case err != nil:
		return err
	}
	return nil
}
