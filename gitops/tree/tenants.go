package tree

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/hostname"
	"github.com/kubeop/kubeop/gitops/code"
	"github.com/kubeop/kubeop/gitops/document"
	"github.com/kubeop/kubeop/gitops/layout"
)

// terms are the fields of a Tenant that are checked against other files of the repository.
type terms struct {
	policies, domains, clusters []string
	prices                      string
}

func termsOf(n *node) terms {
	if n.object == nil {
		return terms{}
	}
	spec := decode(n, &v1alpha1.Tenant{}).Spec
	return terms{policies: spec.Policies, domains: spec.Domains, clusters: spec.Clusters, prices: spec.PriceList}
}

// refuseTenants refuses each tenant.yaml that names a policy, a price list or a cluster of which there is no file, or a domain that overlaps with one of another tenant and that
// the tenant did not have before the commit. A file with problems is there: its object stays as it was. The tenant is accepted again when the other
// file is right.
func (p *pass) refuseTenants(t, before *Tree) {
	held := sync.OnceValues(p.domains)
	for i, tenant := range t.Tenants {
		t.Tenants[i] = tenant.fromFolder()
	}
	tenants, domains := slices.Clone(t.Tenants), hostname.Entries{}
	for _, tenant := range tenants {
		domains.Add(tenant.ref.Tenant, tenant.domains)
	}
	for i, tenant := range tenants {
		found := p.unknown(t, tenant)
		for j, domain := range tenant.domains {
			other, overlaps := domains.Overlap(tenant.ref.Tenant, domain)
			if !overlaps {
				continue
			}
			live, err := held()
			if err != nil {
				t.Problems = []Problem{{Finding: document.Finding{File: layout.Join(tenant.dir, layout.TenantFile), Code: code.Unreadable, Why: err.Error(), Err: err}}}
				return
			}
			if had := find(before.Tenants, tenant.ref.Tenant); !had.has(domain) && !hostname.BelowAny(live[tenant.ref.Tenant], domain) {
				found = append(found, p.overlappingDomain(tenant, j, find(tenants, other.Owner), other.At))
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
	return t != nil && t.object != nil && hostname.BelowAny(t.domains, domain)
}

// fromFolder returns the tenant as it was read from its folder, before any refusal because of another file.
func (t *Tenant) fromFolder() *Tenant {
	if t != nil && t.asRead != nil {
		return t.asRead
	}
	return t
}

// overlappingDomain returns the finding that a domain of a tenant overlaps with one of another tenant. Only administrators read it.
func (p *pass) overlappingDomain(tenant *Tenant, at int, other *Tenant, otherAt int) document.Finding {
	file, field := layout.Join(tenant.dir, layout.TenantFile), fmt.Sprintf("spec.domains[%d]", at)
	return document.Finding{File: file, Position: p.read(file).Position(field), Code: code.OverlappingDomain,
		Why: fmt.Sprintf("%s: %s overlaps with %s of tenant %s, in spec.domains[%d] of %s; a host name belongs to one tenant only: remove one of the two",
			field, tenant.domains[at], other.domains[otherAt], other.ref.Tenant, otherAt, layout.Join(other.dir, layout.TenantFile))}
}

// unknown returns the findings about policies, clusters and a price list that a tenant names and of which there is no file.
func (p *pass) unknown(t *Tree, tenant *Tenant) (found []document.Finding) {
	file := layout.Join(tenant.dir, layout.TenantFile)
	look := func(kind kindByName, list string, all []*Definition, names ...string) {
		for i, name := range names {
			if field := strings.Replace(list, "#", strconv.Itoa(i), 1); name != "" && find(all, name) == nil {
				found = append(found, document.Finding{File: file, Position: p.read(file).Position(field), Code: kind.missing,
					Why: fmt.Sprintf("%s: there is no %s %q%s; add %s, or remove the name", field, kind.words, name, nearest(name, all), kind.file(name))})
			}
		}
	}
	if !t.PoliciesUnknown {
		look(policyKind, "spec.policies[#]", t.Policies, tenant.policies...)
	}
	if !t.ClustersUnknown {
		look(clusterKind, "spec.clusters[#]", t.Clusters, tenant.clusters...)
	}
	if !t.PriceListsUnknown {
		look(priceListKind, "spec.priceList", t.PriceLists, tenant.prices)
	}
	return found
}
