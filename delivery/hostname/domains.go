// Package hostname compares host names with domains, and says which tenant has a domain. It is pure.
package hostname

import (
	"slices"
	"strings"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// Below reports whether a host name is the domain or below it. Both are in lower case and without a dot at the end.
func Below(domain, host string) bool { return host == domain || strings.HasSuffix(host, "."+domain) }

// BelowAny reports whether a host name is one of the domains or below one.
func BelowAny(domains []string, host string) bool {
	return slices.ContainsFunc(domains, func(domain string) bool { return Below(domain, host) })
}

// Contested returns the first domain of a tenant that overlaps with one of an older tenant; "" for none. Files of a platform repository cannot
// have such a domain, but Tenants that were made otherwise can.
func Contested(tenant *v1alpha1.Tenant, all []v1alpha1.Tenant) string {
	for _, domain := range tenant.Spec.Domains {
		overlaps := func(other string) bool { return Below(domain, other) || Below(other, domain) }
		if slices.ContainsFunc(all, func(t v1alpha1.Tenant) bool {
			return older(&t, tenant) && slices.ContainsFunc(t.Spec.Domains, overlaps)
		}) {
			return domain
		}
	}
	return ""
}

// Reserved reports whether a host name, which may be a wildcard, is in a domain of an older tenant. If the domains of two tenants overlap, the older
// one keeps its names. It is false for a tenant without domains.
func Reserved(tenant *v1alpha1.Tenant, all []v1alpha1.Tenant, name string) bool {
	base, wildcard := strings.CutPrefix(name, "*.")
	within := func(domain string) bool { return Below(domain, base) || wildcard && Below(base, domain) }
	return len(tenant.Spec.Domains) > 0 && slices.ContainsFunc(all, func(t v1alpha1.Tenant) bool {
		return older(&t, tenant) && slices.ContainsFunc(t.Spec.Domains, within)
	})
}

// older reports whether a was created before b, or at the same time with a name that comes first.
func older(a, b *v1alpha1.Tenant) bool {
	if a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.Name < b.Name
	}
	return a.CreationTimestamp.Before(&b.CreationTimestamp)
}
