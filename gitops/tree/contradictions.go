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

// tellContradictions reports each tenant.yaml that names policies which contradict each other or its domains, and default policies that do so if a tenant is under
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
		if _, told := t.contradictions[key]; key != "" || !told { // What the defaults contradict is told once.
			why := t.contradictory(before, key, of.policies, func() []string { return contradictionsOf(of.policies, declared()) })
			p.tell(t, why, func() document.Finding { return p.contradiction(t, of, why) })
		}
		if len(of.domains) > 0 {
			why := t.contradictory(before, key+" / "+strings.Join(of.domains, " "), of.policies, func() []string {
				return guardrails.Beyond(of.domains, selected(of.policies, declared()))
			})
			p.tell(t, why, func() document.Finding { return p.beyond(of, why) })
		}
	}
}

// tell adds a finding, if there is something to tell.
func (p *pass) tell(t *Tree, why string, finding func() document.Finding) {
	if why != "" {
		t.Strays = append(t.Strays, p.problems(identity.Ref{}, finding())...)
	}
}

// contradictory returns what find finds, or what it found in the tree before under the same key, if the policies are the same.
func (t *Tree) contradictory(before *Tree, key string, policies []string, find func() []string) string {
	why, known := before.contradictions[key]
	if !known || !t.samePolicies(before, policies) {
		why = strings.Join(few.Of(find(), maxContradictions), "; ")
	}
	t.contradictions[key] = why
	return why
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

// contradictionsOf returns how the policies of these names contradict each other, or the default ones if there are no names.
func contradictionsOf(names []string, declared []v1alpha1.Policy) []string {
	of := selected(names, declared)
	return append(guardrails.Contradictions(of), limitrange.Of(of, v1alpha1.ContainerLimits{}).Conflicts...)
}

// selected returns the policies of these names, or the default ones if there are no names.
func selected(names []string, declared []v1alpha1.Policy) []v1alpha1.Policy {
	of, _ := guardrails.Select(&v1alpha1.Tenant{Spec: v1alpha1.TenantSpec{Policies: names}}, declared)
	return of
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

// beyond returns the finding about the domains of a tenant.
func (p *pass) beyond(tenant *Tenant, why string) document.Finding {
	file := layout.Join(tenant.dir, layout.TenantFile)
	return document.Finding{File: file, Position: p.read(file).Position("spec.domains"), Code: code.ContradictingPolicies,
		Why: "spec.domains: a policy contradicts the domains: " + why + "; change one of them"}
}
