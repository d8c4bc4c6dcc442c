package project

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// defaultQuota holds where nobody says anything else. Load balancers and node ports are taken from what tenants share, so
// nobody has any by default; counts keep one project from filling the API server's store.
var defaultQuota = corev1.ResourceList{
	corev1.ResourceRequestsCPU:           resource.MustParse("4"),
	corev1.ResourceRequestsMemory:        resource.MustParse("8Gi"),
	corev1.ResourceLimitsMemory:          resource.MustParse("16Gi"),
	corev1.ResourceRequestsStorage:       resource.MustParse("20Gi"),
	corev1.ResourcePods:                  resource.MustParse("50"),
	corev1.ResourceServicesLoadBalancers: resource.MustParse("0"),
	corev1.ResourceServicesNodePorts:     resource.MustParse("0"),
	"count/configmaps":                   resource.MustParse("500"),
	"count/secrets":                      resource.MustParse("500"),
}

// quotaOf returns the project's quota: what it asks for, the defaults for the rest, and nothing beyond what the
// administrators allow the tenant's projects. An error names what the project asks for in excess.
func quotaOf(asked, allowed corev1.ResourceList) (corev1.ResourceList, error) {
	bounds := over(defaultQuota, allowed)
	quota := corev1.ResourceList{}
	for name, bound := range bounds {
		quota[name] = bound
		if usual, ok := defaultQuota[name]; ok && usual.Cmp(bound) < 0 {
			quota[name] = usual
		}
	}
	var excess []string
	for name, amount := range asked {
		bound, ok := bounds[name]
		switch {
		case !ok:
			excess = append(excess, fmt.Sprintf("%s %s, of which nothing is allowed", name, amount.String()))
		case amount.Cmp(bound) > 0:
			excess = append(excess, fmt.Sprintf("%s %s, of which %s is allowed", name, amount.String(), bound.String()))
		}
		quota[name] = amount
	}
	if len(excess) > 0 {
		slices.Sort(excess)
		return nil, fmt.Errorf("spec.quota asks for %s; administrators allow more with spec.quota of the Tenant", strings.Join(excess, "; "))
	}
	return quota, nil
}

// over returns the defaults with what was set laid over them.
func over(defaults, set corev1.ResourceList) corev1.ResourceList {
	merged := maps.Clone(defaults)
	maps.Copy(merged, set)
	return merged
}
