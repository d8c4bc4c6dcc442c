package plan

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/usage"
	"github.com/kubeop/kubeop/delivery/quota"
	"github.com/kubeop/kubeop/gitops/identity"
	"github.com/kubeop/kubeop/gitops/plan"
)

// admission holds what a commit creates or changes to the limits of its tenants, in the order in which the operator does.
type admission struct {
	*comparison
	// usages are those of the tenants of which the commit changes something.
	usages map[string]*usage.Usage
	// allotments say which projects of these tenants fit into their budgets.
	allotments map[string]plan.Allotment
	// gone are the objects that the commit deletes at once, and refused those that it may not create.
	gone, refused map[identity.Ref]bool
}

// budgets reads how much of their budgets tenants use.
func (p *Planner) budgets() *usage.Budgets {
	kinds := p.Kinds
	if kinds == nil {
		kinds = func(context.Context) ([]schema.GroupResource, error) { return quota.Usual(), nil }
	}
	return &usage.Budgets{Reader: p.Client, Kinds: kinds}
}

func newAdmission(c *comparison) *admission {
	return &admission{
		comparison: c, usages: map[string]*usage.Usage{}, allotments: map[string]plan.Allotment{}, refused: map[identity.Ref]bool{}, gone: map[identity.Ref]bool{},
	}
}

// admit says why an object is not created or changed; "" if it is.
func (a *admission) admit(ctx context.Context, ref identity.Ref, want client.Object) (string, error) {
	if ref.Project == "" {
		return "", nil // Administrators declare Policies and Tenants.
	}
	if a.refused[ref.Parent()] {
		return "its " + ref.Parent().String() + " is refused", nil
	}
	if ref.App == "" {
		allotment, err := a.allotment(ctx, ref.Tenant)
		if err != nil {
			return "", err
		}
		if over := allotment.Refused[ref.Project]; over != nil {
			a.refused[ref] = a.there[ref] == nil
			return over.Error(), nil
		}
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

// allotment decides which projects of a tenant may have the quota that the commit declares.
func (a *admission) allotment(ctx context.Context, name string) (plan.Allotment, error) {
	if known, there := a.allotments[name]; there {
		return known, nil
	}
	tenant, err := tenantOf(ctx, a.comparison, name)
	if err != nil {
		return plan.Allotment{}, err
	}
	b, err := a.budgets.Of(ctx, tenant)
	if b == nil || err != nil {
		return plan.Allotment{}, err
	}
	for ref := range a.gone {
		if ref.Tenant == name && ref.App == "" {
			b.Remove(ref.Project)
		}
	}
	for _, n := range a.tree.ProjectsOf(name) {
		project, ok := a.tree.Declared(n.Ref()).(*v1alpha1.Project)
		if ok && (!a.previews || a.tree.OriginOf(n.Ref()) != nil) {
			b.Declare(project)
		}
	}
	a.allotments[name] = b.Fit()
	return a.allotments[name], nil
}

// overBudget says by how much the projects of a Tenant exceed the budget that the commit gives it; "" for no excess, and for other objects.
func (a *admission) overBudget(ctx context.Context, want client.Object) (string, error) {
	tenant, ok := want.(*v1alpha1.Tenant)
	if !ok || len(tenant.Spec.Budget) == 0 {
		return "", nil
	}
	allotment, err := a.allotment(ctx, tenant.Name)
	over := quota.OverBy(allotment.Used, tenant.Spec.Budget)
	if over == "" || err != nil {
		return "", err
	}
	budget := "the budget"
	if at := tenant.Annotations[v1alpha1.BudgetAnnotation]; at != "" {
		budget += " at " + at
	}
	return "the quotas of its projects are over " + budget + ": " + over + "; nothing is deleted, and no project gets more of it until others take less", nil
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
