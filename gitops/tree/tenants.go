package tree

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/hostname"
	"github.com/kubeop/kubeop/gitops/code"
	"github.com/kubeop/kubeop/gitops/document"
	"github.com/kubeop/kubeop/gitops/layout"
)

// terms are the fields of a Tenant that are checked against other files of the repository.
type terms struct{ policies, domains []string }

func termsOf(n *node) terms {
	if n.object == nil {
		return terms{}
	}
	spec := decode(n, &v1alpha1.Tenant{}).Spec
	return terms{policies: spec.Policies, domains: spec.Domains}
}

// refuseTenants refuses each tenant.yaml that names a policy of which there is no file, or a domain that overlaps with one of another tenant and that
// the tenant did not have before the commit. A policy whose file has problems is there: it stays as it was. The tenant is accepted again when the other
// file is right.
func (p *pass) refuseTenants(t, before *Tree) {
	held := sync.OnceValues(p.domains)
	for i, tenant := range t.Tenants {
		t.Tenants[i] = tenant.fromFolder()
	}
	tenants, domains := slices.Clone(t.Tenants), domainsOf(t.Tenants)
	for i, tenant := range tenants {
		var found []document.Finding
		for j, name := range tenant.policies {
			if find(t.Policies, name) == nil && !t.PoliciesUnknown {
				found = append(found, p.unknownPolicy(t, tenant, j))
			}
		}
		for j := range tenant.domains {
			other, at := domains.overlap(tenant, j)
			if other == nil {
				continue
			}
			live, err := held()
			if err != nil {
				t.Problems = []Problem{{File: layout.Join(tenant.dir, layout.TenantFile), Code: code.Unreadable, Why: err.Error(), Err: err}}
				return
			}
			if had := find(before.Tenants, tenant.ref.Tenant); !had.has(tenant.domains[j]) && !within(tenant.domains[j], live[tenant.ref.Tenant]) {
				found = append(found, p.overlappingDomain(tenant, j, other, at))
			}
		}
		if len(found) == 0 {
			continue
		}
		refused := *tenant
		refused.asRead, refused.object, refused.problems = tenant, nil, slices.Concat(tenant.problems, p.problems(tenant.ref, found...))
		refused.count()
		if was := find(before.Tenants, tenant.ref.Tenant); was != nil && was.asRead == tenant && slices.Equal(was.problems, refused.problems) {
			t.Tenants[i] = was
			continue
		}
		t.Tenants[i] = &refused
	}
}

// has reports whether a tenant that is there and declared has a domain.
func (t *Tenant) has(domain string) bool {
	return t != nil && t.object != nil && within(domain, t.domains)
}

// within reports whether a domain is one of others or below one.
func within(domain string, others []string) bool {
	return slices.ContainsFunc(others, func(other string) bool { return hostname.Below(other, domain) })
}

// fromFolder returns the tenant as it was read from its folder, before any refusal because of another file.
func (t *Tenant) fromFolder() *Tenant {
	if t != nil && t.asRead != nil {
		return t.asRead
	}
	return t
}

// domain is an entry of spec.domains of a tenant.
type domain struct {
	of *Tenant
	at int
}

// domains are those of all tenants, by the name that they have, and by the names that they are below.
type domains struct{ at, below map[string][]domain }

func domainsOf(tenants []*Tenant) domains {
	all := domains{at: map[string][]domain{}, below: map[string][]domain{}}
	for _, tenant := range tenants {
		for i, name := range tenant.domains {
			all.at[name] = append(all.at[name], domain{tenant, i})
			for parent := parentOf(name); parent != ""; parent = parentOf(parent) {
				all.below[parent] = append(all.below[parent], domain{tenant, i})
			}
		}
	}
	return all
}

func parentOf(name string) string {
	_, parent, _ := strings.Cut(name, ".")
	return parent
}

// overlap returns the first entry of another tenant that a domain of a tenant overlaps with; nil for none.
func (all domains) overlap(tenant *Tenant, at int) (*Tenant, int) {
	name := tenant.domains[at]
	candidates := all.below[name]
	for within := name; within != ""; within = parentOf(within) {
		candidates = slices.Concat(all.at[within], candidates)
	}
	for _, other := range candidates {
		if other.of != tenant {
			return other.of, other.at
		}
	}
	return nil, 0
}

// overlappingDomain returns the finding that a domain of a tenant overlaps with one of another tenant. Only administrators read it.
func (p *pass) overlappingDomain(tenant *Tenant, at int, other *Tenant, otherAt int) document.Finding {
	file, field := layout.Join(tenant.dir, layout.TenantFile), fmt.Sprintf("spec.domains[%d]", at)
	return document.Finding{File: file, Position: p.read(file).Position(field), Code: code.OverlappingDomain,
		Why: fmt.Sprintf("%s: %s overlaps with %s of tenant %s, in spec.domains[%d] of %s; a host name belongs to one tenant only: remove one of the two",
			field, tenant.domains[at], other.domains[otherAt], other.ref.Tenant, otherAt, layout.Join(other.dir, layout.TenantFile))}
}
