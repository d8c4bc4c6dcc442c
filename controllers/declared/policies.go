package declared

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/gitops/identity"
	"github.com/kubeop/kubeop/gitops/plan"
)

// Declarations is what a commit declares, on this cluster and on others.
type Declarations interface {
	// Declared returns an object of this cluster, nil for none; Elsewhere returns the name of another cluster that has it, "" for none.
	Declared(identity.Ref) client.Object
	Elsewhere(identity.Ref) string
}

// CountUsers adds the cluster to each loss of an object that the commit places on another one. It adds, to each loss of a Registry, how many
// projects have its credentials, and to each loss of a Policy, how many tenants are under it after the commit. A tenant whose file has a problem
// is under the policies that it has in the cluster. direct reads the tenants without a cache, because the commit may have changed them just now.
func CountUsers(ctx context.Context, direct client.Reader, losses []plan.Loss, lost map[identity.Ref]client.Object, now Declarations) error {
	for i := range losses {
		losses[i].Cluster = now.Elsewhere(losses[i].Ref)
		if registry, is := lost[losses[i].Ref].(*v1alpha1.Registry); is {
			losses[i].Projects = registry.Status.Projects
		}
	}
	if !slices.ContainsFunc(losses, func(l plan.Loss) bool { return l.Ref.Policy != "" }) {
		return nil
	}
	tenants := &v1alpha1.TenantList{}
	if err := direct.List(ctx, tenants); err != nil {
		return fmt.Errorf("counting the tenants that are under a policy: %w", err)
	}
	for i := range losses {
		policy, is := lost[losses[i].Ref].(*v1alpha1.Policy)
		for j := 0; is && j < len(tenants.Items); j++ {
			if names := policiesOf(&tenants.Items[j], now); slices.Contains(names, policy.Name) || len(names) == 0 && policy.Spec.Default {
				losses[i].Tenants++
			}
		}
	}
	return nil
}

// policiesOf returns spec.policies of a tenant after the commit.
func policiesOf(live *v1alpha1.Tenant, now Declarations) []string {
	if tenant, is := now.Declared(identity.Ref{Tenant: live.Name}).(*v1alpha1.Tenant); is {
		return tenant.Spec.Policies
	}
	return live.Spec.Policies
}
