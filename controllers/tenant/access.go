package tenant

import (
	"context"

	rbac "k8s.io/client-go/applyconfigurations/rbac/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/access"
	"github.com/kubeop/kubeop/delivery/apply"
)

// grant lets the owners read the tenant's Projects, and from the cluster-scoped kinds their own Tenant and Repository, which report the
// errors of their files.
func (r *Reconciler) grant(ctx context.Context, s *scope) error {
	name := clusterRole(s.tenant)
	own := rbac.PolicyRule().WithAPIGroups(v1alpha1.Group).WithResources("tenants", "repositories").
		WithResourceNames(s.tenant.Name).WithVerbs("get", "list", "watch")
	role := rbac.ClusterRole(name).WithLabels(s.labels()).WithRules(own)
	binding := rbac.ClusterRoleBinding(name).WithLabels(s.labels()).
		WithRoleRef(rbac.RoleRef().WithAPIGroup("rbac.authorization.k8s.io").WithKind("ClusterRole").WithName(name)).
		WithSubjects(access.Subjects(s.tenant.Spec.Owners, "")...)
	wanted, unwanted := access.Bindings(s.home, s.labels(), s.tenant.Spec.Owners)
	if err := s.made.Withdraw(ctx, s.labels(), unwanted...); err != nil {
		return err
	}
	return step.Refused(v1alpha1.ApplyFailedReason, s.made.Apply(ctx, append(wanted, role, binding)...), apply.ErrForeign)
}

// clusterRole is the name of the ClusterRole and of the ClusterRoleBinding.
func clusterRole(tenant *v1alpha1.Tenant) string { return "kubeop-tenant-" + tenant.Name }
