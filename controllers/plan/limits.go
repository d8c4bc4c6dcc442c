package plan

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/controllers/usage"
	"github.com/kubeop/kubeop/gitops/identity"
)

// admission holds what a commit creates or changes to the limits of its tenants, in the order in which the operator does.
type admission struct {
	*comparison
	// usages are those of the tenants of which the commit changes something.
	usages map[string]*usage.Usage
	// gone are the objects that the commit deletes at once, and refused those that it may not create.
	gone, refused map[identity.Ref]bool
}

// admit says why an object is not created or changed; "" if it is.
func (a *admission) admit(ctx context.Context, ref identity.Ref, want client.Object) (string, error) {
	if ref.Project == "" {
		return "", nil // Administrators declare Policies and Tenants.
	}
	if a.refused[ref.Parent()] {
		return "its " + ref.Parent().String() + " is refused", nil
	}
	u, err := a.usageOf(ctx, ref)
	if err != nil {
		return "", err
	}
	size, err := usage.SizeOf(want)
	if err != nil {
		return "", err
	}
	if exceeded := u.Admit(ref, size); exceeded != nil {
		a.refused[ref] = a.there[ref] == nil
		return exceeded.Error(), nil
	}
	return "", nil
}

// usageOf counts the objects of a tenant that stay.
func (a *admission) usageOf(ctx context.Context, ref identity.Ref) (*usage.Usage, error) {
	if u := a.usages[ref.Tenant]; u != nil {
		return u, nil
	}
	tenant, err := tenantOf(ctx, a.comparison, ref.Tenant)
	if err != nil {
		return nil, err
	}
	u := usage.New(ref.Tenant, a.limits.With(&tenant.Spec.Limits))
	for _, o := range a.listed {
		of, _ := identity.Of(o)
		if of.Tenant != ref.Tenant || of.Project == "" || a.gone[of] {
			continue
		}
		size, err := usage.SizeOf(o)
		if err != nil {
			return nil, err
		}
		u.Add(of, size)
	}
	a.usages[ref.Tenant] = u
	return u, nil
}
