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

// reportContradictions reports each tenant.yaml that names policies which contradict each other or its domains, and default policies that do so if a tenant is under
// them. Nothing is refused: what holds then is defined, and each policy is right by itself.
func (p *pass) reportContradictions(t, before *Tree) {
	declared := sync.OnceValue(t.DeclaredPolicies)
	t.contradictions = map[string]string{}
	compared := guardrails.Comparison{}
	for _, tenant := range t.Tenants {
		of := tenant.fromFolder()
		if tenant.implicit {
			continue
		}
		key := strings.Join(slices.Sorted(slices.Values(of.policies)), " ")
		if _, reported := t.contradictions[key]; key != "" || !reported { // What the defaults contradict is reported once.
			why := t.contradictory(before, key, of.policies, func() []string {
				under := guardrails.Under(of.policies, declared())
				return append(compared.Contradictions(under), limitrange.Of(under, v1alpha1.ContainerLimits{}).Conflicts...)
			})
			p.reportContradiction(t, of, "spec.policies", why)
		}
		if len(of.domains) > 0 {
			why := t.contradictory(before, key+" / "+strings.Join(of.domains, " "), of.policies, func() []string {
				return guardrails.Beyond(of.domains, guardrails.Under(of.policies, declared()))
			})
			p.reportContradiction(t, of, "spec.domains", why)
		}
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

// reportContradiction adds the finding about a field of a tenant, if there is one. That about default policies is at the first of them. Only administrators read it.
func (p *pass) reportContradiction(t *Tree, tenant *Tenant, field, why string) {
	if why == "" {
		return
	}
	file, remedy := layout.Join(tenant.dir, layout.TenantFile), "change one of them, or take it out of the list"
	if field == "spec.policies" && len(tenant.policies) == 0 {
		first := slices.IndexFunc(t.Policies, func(d *Definition) bool { return d.byDefault })
		file, field, remedy = t.Policies[first].dir, "spec.default", "change one of them, or make it no default"
	}
	t.Strays = append(t.Strays, p.problems(identity.Ref{}, document.Finding{File: file, Position: p.read(file).Position(field), Code: code.ContradictingPolicies,
		Why: field + ": the policies contradict each other: " + why + "; " + remedy})...)
}
