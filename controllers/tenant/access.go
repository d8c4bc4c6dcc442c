package tenant

import (
	"context"

	rbac "k8s.io/client-go/applyconfigurations/rbac/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/access"
	"github.com/kubeop/kubeop/delivery/apply"
)

// grant gives the owners their roles in the home namespace, and from the cluster-scoped kinds their own Tenant and Repository.
func (r *Reconciler) grant(ctx context.Context, s *scope) error {
	wanted, unwanted := access.Bindings(s.home, s.labels(), s.tenant.Spec.Owners)
	for _, g := range r.grants(s.tenant) {
		role, binding := g.objects(s.labels())
		if g.needed {
			wanted = append(wanted, role, binding)
		} else {
			unwanted = append(unwanted, role, binding)
		}
	}
	if err := s.made.Withdraw(ctx, s.labels(), unwanted...); err != nil {
		return err
	}
	return step.Refused(v1alpha1.ApplyFailedReason, s.made.Apply(ctx, wanted...), apply.ErrForeign)
}

// grants are the rights of a tenant's owners to cluster-scoped objects. All owners may read the Tenant and the Repository, which reports
// the errors of their files. Owners with the role edit may annotate the Repository with requests, and those with the role admin also with
// confirmations. The chart's policy kubeop-requests limits the verb patch to that; without the policy nobody gets it.
func (r *Reconciler) grants(tenant *v1alpha1.Tenant) []grant {
	repository := []string{"repositories"}
	requests := func(role string, verbs ...string) grant {
		owners := access.Subjects(tenant.Spec.Owners, role)
		return grant{
			name: clusterRole(tenant) + "-" + role, of: tenant.Name, owners: owners, resources: repository, verbs: verbs,
			needed: r.OwnerRequests && tenant.Spec.Repository != nil && len(owners) > 0,
		}
	}
	return []grant{
		{
			name: clusterRole(tenant), of: tenant.Name, owners: access.Subjects(tenant.Spec.Owners, ""),
			resources: append([]string{"tenants"}, repository...), verbs: []string{"get", "list", "watch"}, needed: true,
		},
		requests("edit", "patch"),
		requests("admin", "patch", "confirm"),
	}
}

// grant lets owners do something with the Tenant or the Repository of their tenant's name.
type grant struct {
	// name is the name of the ClusterRole and of the ClusterRoleBinding.
	name, of         string
	owners           []*rbac.SubjectApplyConfiguration
	resources, verbs []string
	// needed: the role and its binding must exist; otherwise they must not.
	needed bool
}

// objects returns the ClusterRole and its binding.
func (g grant) objects(labels map[string]string) (role, binding any) {
	rule := rbac.PolicyRule().WithAPIGroups(v1alpha1.Group).WithResources(g.resources...).WithResourceNames(g.of).WithVerbs(g.verbs...)
	ref := rbac.RoleRef().WithAPIGroup("rbac.authorization.k8s.io").WithKind("ClusterRole").WithName(g.name)
	return rbac.ClusterRole(g.name).WithLabels(labels).WithRules(rule),
		rbac.ClusterRoleBinding(g.name).WithLabels(labels).WithRoleRef(ref).WithSubjects(g.owners...)
}

// clusterRole is the name of the ClusterRole by which all owners read their Tenant and Repository. The names of tenants have no dash, so
// no other tenant's role has a name that begins with it and a dash.
func clusterRole(tenant *v1alpha1.Tenant) string { return "kubeop-tenant-" + tenant.Name }
