package tree

import (
	"slices"
	"strings"
	"sync"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/few"
	"github.com/kubeop/kubeop/delivery/guardrails"
	"github.com/kubeop/kubeop/delivery/limitrange"
	"github.com/kubeop/kubeop/gitops/code"
	"github.com/kubeop/kubeop/gitops/document"
	"github.com/kubeop/kubeop/gitops/identity"
	"github.com/kubeop/kubeop/gitops/layout"
)

// tellContradictions reports each tenant.yaml that names policies which contradict each other, and default policies that do so if a tenant is under
// them. Nothing is refused: what holds then is defined, and each policy is right by itself.
func (p *pass) tellContradictions(t, before *Tree) {
	declared := sync.OnceValue(t.DeclaredPolicies)
	t.contradictions = map[string]string{}
	for _, tenant := range t.Tenants {
		of := tenant.fromFolder()
		if tenant.implicit {
			continue
		}
		key := strings.Join(slices.Sorted(slices.Values(of.policies)), " ")
		if _, told := t.contradictions[key]; key == "" && told {
			continue // What the defaults contradict is told once.
		}
		why, known := before.contradictions[key]
		if !known || !t.samePolicies(before, of.policies) {
			why = contradictionsOf(of.policies, declared())
		}
		if t.contradictions[key] = why; why != "" {
			t.Strays = append(t.Strays, p.problems(identity.Ref{}, p.contradiction(t, of, why))...)
		}
	}
}

// samePolicies reports whether the policies of these names, or the default ones if there are no names, are those of the tree before.
func (t *Tree) samePolicies(before *Tree, names []string) bool {
	if len(names) == 0 {
		return slices.Equal(t.Policies, before.Policies)
	}
	return !slices.ContainsFunc(names, func(name string) bool { return find(t.Policies, name) != find(before.Policies, name) })
}

// maxContradictions is how many contradictions of the same policies a message has.
const maxContradictions = 3

// contradictionsOf returns how the policies of these names contradict each other, or the default ones if there are no names; "" if they do not.
func contradictionsOf(names []string, declared []v1alpha1.Policy) string {
	selected, _ := guardrails.Select(&v1alpha1.Tenant{Spec: v1alpha1.TenantSpec{Policies: names}}, declared)
	all := append(guardrails.Contradictions(selected), limitrange.Of(selected, v1alpha1.ContainerLimits{}).Conflicts...)
	return strings.Join(few.Of(all, maxContradictions), "; ")
}

// contradiction returns the finding about the policies of a tenant. That about default ones is at the first of them. Only administrators read it.
func (p *pass) contradiction(t *Tree, tenant *Tenant, why string) document.Finding {
	file, field, remedy := layout.Join(tenant.dir, layout.TenantFile), "spec.policies", "change one of them, or take it out of the list"
	if len(tenant.policies) == 0 {
		first := slices.IndexFunc(t.Policies, func(d *Definition) bool { return d.byDefault })
		file, field, remedy = t.Policies[first].dir, "spec.default", "change one of them, or make it no default"
	}
	return document.Finding{File: file, Position: p.read(file).Position(field), Code: code.ContradictingPolicies,
		Why: field + ": the policies contradict each other: " + why + "; " + remedy}
}
