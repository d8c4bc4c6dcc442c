package offline

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/usage"
	"github.com/kubeop/kubeop/delivery/guardrails"
	"github.com/kubeop/kubeop/delivery/quota"
	"github.com/kubeop/kubeop/gitops/code"
	"github.com/kubeop/kubeop/gitops/document"
	"github.com/kubeop/kubeop/gitops/identity"
	"github.com/kubeop/kubeop/gitops/tree"
)

// overBudgets returns the projects whose quotas do not fit into the budgets of their tenants, or are above the maximum of a policy, as if no project was
// there before. Budgets and policies are in the platform repository, and in the settings of the tenant whose repository is checked.
func overBudgets(files fs.FS, t *tree.Tree, s *terms) (problems []tree.Problem, err error) {
	policies := t.DeclaredPolicies()
	for _, n := range t.Tenants {
		name := n.Ref().Tenant
		tenant, declared := t.Declared(identity.Ref{Tenant: name}).(*v1alpha1.Tenant)
		if !declared && t.Scope.Tenant != "" {
			tenant, policies = s.tenant, s.policies
		}
		if tenant == nil {
			continue
		}
		tenant = tenant.DeepCopy()
		tenant.Name = name
		under, _ := guardrails.Select(tenant, policies)
		found, err := overBudget(files, t, usage.NewBudget(tenant, under, quota.Usual()))
		if err != nil {
			return nil, err
		}
		problems = append(problems, found...)
	}
	return problems, nil
}

// overBudget returns those of one tenant.
func overBudget(files fs.FS, t *tree.Tree, b *usage.Budget) (problems []tree.Problem, err error) {
	for _, n := range t.ProjectsOf(b.Tenant) {
		if project, ok := t.Declared(n.Ref()).(*v1alpha1.Project); ok {
			b.Declare(project)
		}
	}
	refused := b.Fit().Refused
	for _, project := range slices.Sorted(maps.Keys(refused)) {
		ref := identity.Ref{Tenant: b.Tenant, Project: project}
		n, _ := t.Find(ref)
		text, err := fs.ReadFile(files, t.File(n))
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", t.File(n), err)
		}
		over := refused[project]
		problems = append(problems, tree.Problem{
			Finding: document.Finding{File: t.File(n), Position: document.Parse("", text).Position(over.Field()), Code: code.OverBudget, Why: over.Error()}, Of: ref,
		})
	}
	return problems, nil
}
