package declared

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"
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
// is under the policies that it has in the cluster. It says of each loss of a PriceList whether it is a second default one. direct reads tenants and price lists without
// a cache, because the commit may have changed them just now.
func CountUsers(ctx context.Context, direct client.Reader, losses []plan.Loss, lost map[identity.Ref]client.Object, now Declarations) error {
	for i := range losses {
		losses[i].Cluster = now.Elsewhere(losses[i].Ref)
		if registry, is := lost[losses[i].Ref].(*v1alpha1.Registry); is {
			losses[i].Projects = registry.Status.Projects
		}
	}
	if err := findSecond(ctx, direct, losses); err != nil || !slices.ContainsFunc(losses, func(l plan.Loss) bool { return l.Ref.Policy != "" }) {
		return err
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

// findSecond marks the losses of PriceLists with spec.default if other PriceLists have it, too.
func findSecond(ctx context.Context, direct client.Reader, losses []plan.Loss) error {
	if !slices.ContainsFunc(losses, func(l plan.Loss) bool { return l.Ref.PriceList != "" }) {
		return nil
	}
	lists := &v1alpha1.PriceListList{}
	if err := direct.List(ctx, lists); err != nil {
		return fmt.Errorf("looking for another default price list: %w", err)
	}
	defaults := sets.New[string]()
	for i := range lists.Items {
		if lists.Items[i].Spec.Default {
			defaults.Insert(lists.Items[i].Name)
		}
	}
	for i, l := range losses {
		losses[i].Second = defaults.Len() > 1 && defaults.Has(l.Ref.PriceList)
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
