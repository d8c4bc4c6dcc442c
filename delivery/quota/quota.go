// Package quota says how much a project, and the home namespace of a tenant, may hold: what is declared, and defaults for the
// rest. Beside the requests of pods it counts the objects of every kind that the tenant's accounts can create, which keeps one
// tenant from filling the API server's store.
package quota

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Name is the name of the quota in the home and the projects' namespaces of a tenant.
const Name = "kubeop"

// usualPods is how many pods a project has by default. Other defaults are for that many, and grow with a larger number.
const usualPods = 50

// fixed are the defaults that do not grow with the number of pods. Load balancers and node ports are taken from what tenants
// share, so no project has any.
var fixed = corev1.ResourceList{
	corev1.ResourceRequestsCPU:           resource.MustParse("4"),
	corev1.ResourceRequestsMemory:        resource.MustParse("8Gi"),
	corev1.ResourceLimitsMemory:          resource.MustParse("16Gi"),
	corev1.ResourceRequestsStorage:       resource.MustParse("20Gi"),
	corev1.ResourceServicesLoadBalancers: resource.MustParse("0"),
	corev1.ResourceServicesNodePorts:     resource.MustParse("0"),
}

// perUsualPods are the defaults for the usual number of pods. The sum of limits is larger than a node's disk on purpose: no pod shall be
// refused because of the limits that its containers get by default. Requests are what is bounded.
var perUsualPods = corev1.ResourceList{
	corev1.ResourceRequestsEphemeralStorage: resource.MustParse("100Gi"),
	corev1.ResourceLimitsEphemeralStorage:   resource.MustParse("2000Gi"),
}

// Of returns a project's quota: what it requests, the defaults for the rest, and nothing beyond what the administrators allow the
// tenant's projects. An error names what the project requests in excess. The objects of each of the kinds are counted.
func Of(requested, allowed corev1.ResourceList, kinds []schema.GroupResource) (corev1.ResourceList, error) {
	bounds := over(defaults(kinds, allowed), allowed)
	hard := maps.Clone(bounds)
	for name, amount := range defaults(kinds, requested) {
		if bound := bounds[name]; amount.Cmp(bound) < 0 {
			hard[name] = amount
		}
	}
	var excess []string
	for name, amount := range requested {
		bound, ok := bounds[name]
		switch {
		case !ok:
			excess = append(excess, fmt.Sprintf("%s %s, of which nothing is allowed", name, amount.String()))
		case amount.Cmp(bound) > 0:
			excess = append(excess, fmt.Sprintf("%s %s, of which %s is allowed", name, amount.String(), bound.String()))
		}
		hard[name] = amount
	}
	if len(excess) > 0 {
		slices.Sort(excess)
		return nil, fmt.Errorf("spec.quota requests %s; administrators allow more with spec.quota of the Tenant", strings.Join(excess, "; "))
	}
	return hard, nil
}

// homeSecrets and homeObjects are how many Secrets, and objects of each other kind, a tenant's home namespace holds by default.
// No app is there; its people may keep Secrets.
const homeSecrets, homeObjects = 100, 50

// Home returns the quota of a tenant's home namespace: what administrators set, and the defaults for the rest.
func Home(set corev1.ResourceList, kinds []schema.GroupResource) corev1.ResourceList {
	hard := corev1.ResourceList{}
	for _, kind := range kinds {
		hard[nameOf(kind)] = *resource.NewQuantity(homeObjects, resource.DecimalSI)
	}
	hard[nameOf(secrets)] = *resource.NewQuantity(homeSecrets, resource.DecimalSI)
	return over(hard, set)
}

// defaults returns the quota of a project where nothing else is set. given is what was set: by administrators, or by the
// project.
func defaults(kinds []schema.GroupResource, given corev1.ResourceList) corev1.ResourceList {
	all := maps.Clone(fixed)
	pods, ok := given[corev1.ResourcePods]
	if !ok {
		pods = *resource.NewQuantity(usualPods, resource.DecimalSI)
		all[corev1.ResourcePods] = pods
	}
	times := max(1, (pods.Value()+usualPods-1)/usualPods)
	for name, amount := range perUsualPods {
		amount.Mul(times)
		all[name] = amount
	}
	for _, kind := range kinds {
		all[nameOf(kind)] = countOf(kind, times, given)
	}
	return all
}

// countOf returns how many objects of a kind a project may have by default. Kubernetes has older names for some counts: if one of them is
// set to more than the default, that number is used.
func countOf(kind schema.GroupResource, times int64, given corev1.ResourceList) resource.Quantity {
	count := otherObjects * times
	if known, ok := usual[kind]; ok {
		count = known.count
		if !known.fixed {
			count *= times
		}
	}
	if kind.Group == "" {
		if older, ok := given[corev1.ResourceName(kind.Resource)]; ok {
			count = max(count, older.Value())
		}
	}
	return *resource.NewQuantity(count, resource.DecimalSI)
}

// nameOf is what Kubernetes calls the number of objects of a kind in a quota.
func nameOf(kind schema.GroupResource) corev1.ResourceName {
	return corev1.ResourceName("count/" + kind.String())
}

// over returns the defaults with what was set laid over them.
func over(defaults, set corev1.ResourceList) corev1.ResourceList {
	merged := maps.Clone(defaults)
	maps.Copy(merged, set)
	return merged
}
