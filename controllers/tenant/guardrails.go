package tenant

import (
	"context"
	"fmt"

	core "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/quota"
)

// guardName is the name of the home namespace's quota.
const guardName = "kubeop"

// guard bounds what the tenant's people can put into the home namespace.
func (r *Reconciler) guard(ctx context.Context, s *scope) error {
	if err := r.Client.List(ctx, &s.declared, client.InNamespace(s.home)); err != nil {
		return fmt.Errorf("listing the projects of %s: %w", s.tenant.Name, err)
	}
	kinds, err := r.Kinds.List(ctx)
	if err != nil {
		return err
	}
	hard := quota.Home(s.tenant.Spec.HomeQuota, kinds)
	counted := core.ResourceQuota(guardName, s.home).WithLabels(s.labels()).WithSpec(core.ResourceQuotaSpec().WithHard(hard))
	return step.Refused(v1alpha1.ApplyFailedReason, s.made.Apply(ctx, counted))
}
