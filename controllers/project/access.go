package project

import (
	"context"
	"errors"

	core "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/access"
	"github.com/kubeop/kubeop/delivery/apply"
)

// grant creates the deployer of the project's apps and gives the tenant's owners access. What they have lost, revoke took away.
func (r *Reconciler) grant(ctx context.Context, s *scope) error {
	// Nothing runs as the deployer, so its token is mounted nowhere.
	account := core.ServiceAccount(v1alpha1.Deployer, s.namespace).WithLabels(s.labels()).WithAutomountServiceAccountToken(false)
	wanted, _ := access.Bindings(s.namespace, s.labels(), s.tenant.Spec.Owners)
	var unwanted []any
	if opening := access.NetworkPolicies(s.namespace, s.labels()); s.network.allowed != nil {
		wanted = append(wanted, opening) // Also after spec.network.policies was Own, so that apps can remove theirs.
	} else {
		unwanted = append(unwanted, opening)
	}
	if err := s.made.Withdraw(ctx, s.labels(), unwanted...); err != nil {
		return err
	}
	if err := s.made.Apply(ctx, append(wanted, account, access.Deployer(s.namespace, s.labels()))...); err != nil {
		return step.Refused(v1alpha1.ApplyFailedReason, err, apply.ErrForeign)
	}
	failed := s.revoked
	if !s.hadCluster() {
		failed = errors.Join(failed, r.grantCluster(ctx, s))
	}
	if failed != nil {
		return failed
	}
	if err := s.made.Prune(ctx, s.labels()); err != nil {
		return err
	}
	return r.count(ctx, s) // Count again: apps of a new project were created meanwhile, and counting them later would cost another write.
}
