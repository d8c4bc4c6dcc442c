package project

import (
	"context"

	"github.com/kubeop/kubeop/controllers/registry"
	"github.com/kubeop/kubeop/controllers/step"
)

// keepPullSecrets keeps the pull Secrets of the Registries that the tenant may use.
func (r *Reconciler) keepPullSecrets(ctx context.Context, s *scope) (err error) {
	s.pulls, err = r.Registries.Provide(ctx, s.pullsAt())
	return err
}

// pullsAt is the project for its pull Secrets.
func (s *scope) pullsAt() registry.Place {
	record := func(ctx context.Context, held registry.Held) error {
		s.pulls = held
		return step.Checkpoint(ctx)
	}
	return registry.Place{Tenant: s.tenant, Namespace: s.namespace, Labels: s.labels(), Held: s.pulls, Record: record}
}
