package tenant

import (
	"context"
	"fmt"
	"slices"

	core "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/rollup"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/apply"
	"github.com/kubeop/kubeop/delivery/flow"
	"github.com/kubeop/kubeop/delivery/quota"
)

// guardName is the name of the home namespace's quota.
const guardName = quota.Name

// guard limits the objects in the home namespace. With FlowSchemas it also gives the tenants' accounts fair shares of the API server.
func (r *Reconciler) guard(ctx context.Context, s *scope) error {
	if err := r.Client.List(ctx, &s.declared, client.InNamespace(s.home)); err != nil {
		return fmt.Errorf("listing the projects of %s: %w", s.tenant.Name, err)
	}
	if err := r.count(ctx, s); err != nil {
		return err
	}
	if err := r.reportGuards(ctx, s); err != nil {
		return err
	}
	kinds, err := r.Kinds.List(ctx)
	if err != nil {
		return err
	}
	hard := quota.Home(s.tenant.Spec.HomeQuota, kinds)
	objects := []any{core.ResourceQuota(guardName, s.home).WithLabels(s.labels()).WithSpec(core.ResourceQuotaSpec().WithHard(hard))}
	if r.FlowControl {
		for _, schema := range flow.Schemas(s.tenant.Name, s.labels(), s.namespaces()) {
			objects = append(objects, schema)
		}
	}
	if err := s.made.Apply(ctx, objects...); err != nil {
		return step.Refused(v1alpha1.ApplyFailedReason, err, apply.ErrForeign)
	}
	return r.weigh(ctx, s)
}

// count counts the apps of the tenant's projects, and those that are ready.
func (r *Reconciler) count(ctx context.Context, s *scope) error {
	apps := &rollup.Apps{}
	for i := range s.declared.Items {
		project := s.declared.Items[i].Name
		if err := apps.Count(ctx, r.Client, v1alpha1.ProjectNamespace(s.tenant.Name, project), project+"/"); err != nil {
			return err
		}
	}
	s.apps = apps
	return nil
}

// namespaces returns the namespaces of the tenant's projects, sorted.
func (s *scope) namespaces() []string {
	var names []string
	for i := range s.declared.Items {
		names = append(names, v1alpha1.ProjectNamespace(s.tenant.Name, s.declared.Items[i].Name))
	}
	slices.Sort(names)
	return names
}
