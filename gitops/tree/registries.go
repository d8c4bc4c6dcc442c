package tree

import (
	"fmt"
	"slices"

	"github.com/kubeop/kubeop/gitops/code"
	"github.com/kubeop/kubeop/gitops/document"
)

// refuseRegistries refuses each registry that names a tenant or a policy that the commit does not have, or that gives a tenant a second
// credential for a host. The registry is accepted again when the other file is right.
func (p *pass) refuseRegistries(t, before *Tree) {
	for i, registry := range t.Registries {
		t.Registries[i] = registry.fromFile()
	}
	registries, byHost := slices.Clone(t.Registries), map[string][]*Definition{}
	for _, registry := range registries {
		if registry.grant != nil {
			byHost[registry.grant.Host] = append(byHost[registry.grant.Host], registry)
		}
	}
	for i, registry := range registries {
		if registry.grant == nil {
			continue
		}
		found := p.unknownUsers(t, registry)
		if other, tenant := t.second(registry, byHost[registry.grant.Host]); other != nil {
			found = append(found, p.secondRegistry(registry, other, tenant))
		}
		if len(found) == 0 {
			continue
		}
		t.Registries[i] = p.refused(registry, find(before.Registries, registry.name()), found)
	}
}

// unknownUsers returns a finding for each tenant and policy that a registry names and that does not exist.
func (p *pass) unknownUsers(t *Tree, registry *Definition) (found []document.Finding) {
	add := func(kind, field string, at int, name, hint, instead string, is code.Code) {
		field = fmt.Sprintf("spec.%s[%d]", field, at)
		found = append(found, document.Finding{File: registry.dir, Position: p.read(registry.dir).Position(field), Code: is,
			Why: fmt.Sprintf("%s: there is no %s %q%s; %s, or remove the name", field, kind, name, hint, instead)})
	}
	for i, name := range registry.grant.Tenants {
		tenant := find(t.Tenants, name)
		if tenant == nil && !t.Unknown || tenant != nil && tenant.implicit {
			declared := slices.DeleteFunc(slices.Clone(t.Tenants), func(t *Tenant) bool { return t.implicit })
			add("tenant", "tenants", i, name, nearest(name, declared), "add tenants/"+name+"/tenant.yaml", code.UnknownTenant)
		}
	}
	for i, name := range registry.grant.Policies {
		if find(t.Policies, name) == nil && !t.PoliciesUnknown {
			add("policy", "policies", i, name, nearest(name, t.Policies), "add "+policyKind.file(name), code.UnknownPolicy)
		}
	}
	return found
}

// second returns the first other registry of the same host that a tenant of this one may use, too, and the tenant; nil for none.
func (t *Tree) second(registry *Definition, sameHost []*Definition) (*Definition, *Tenant) {
	for _, other := range sameHost {
		if other == registry {
			continue
		}
		for _, tenant := range t.Tenants {
			if t.mayUse(tenant, registry) && t.mayUse(tenant, other) {
				return other, tenant
			}
		}
	}
	return nil, nil
}

// mayUse reports whether a tenant may use a registry, as delivery/pullsecret decides for the objects in the cluster.
func (t *Tree) mayUse(tenant *Tenant, registry *Definition) bool {
	if slices.Contains(registry.grant.Tenants, tenant.name()) {
		return true
	}
	return slices.ContainsFunc(registry.grant.Policies, func(name string) bool {
		policy := find(t.Policies, name)
		return slices.Contains(tenant.policies, name) || len(tenant.policies) == 0 && !tenant.implicit && tenant.Declared() && policy != nil && policy.byDefault
	})
}

// secondRegistry returns the finding that a tenant has two credentials for one host. Only administrators read it.
func (p *pass) secondRegistry(registry, other *Definition, tenant *Tenant) document.Finding {
	return document.Finding{File: registry.dir, Position: p.read(registry.dir).Position("spec.host"), Code: code.SecondRegistry,
		Why: fmt.Sprintf("spec.host: tenant %s may use %s by Registry %s, in %s, too; a tenant has one credential for a host: take the tenant, or its policy, out of one of the two",
			tenant.name(), registry.grant.Host, other.name(), other.dir)}
}
