// Package quota calculates how much a project, or the home namespace of a tenant, may hold: the declared amounts, and defaults for the
// rest. Besides the requests of pods, it counts the objects of every kind that the tenant's accounts can create, so that one tenant cannot
// fill the API server's store.
package quota

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Name is the name of the quota in the home and the projects' namespaces of a tenant.
const Name = "kubeop"

// usualPods is how many pods a project has by default. The other defaults are for that number, and grow with a larger one.
const usualPods = 50

// fixed are the defaults that do not grow with the number of pods. All tenants share load balancers and node ports, so by default a project
// has none.
var fixed = corev1.ResourceList{
	corev1.ResourceRequestsCPU:           resource.MustParse("4"),
	corev1.ResourceRequestsMemory:        resource.MustParse("8Gi"),
	corev1.ResourceLimitsMemory:          resource.MustParse("16Gi"),
	corev1.ResourceRequestsStorage:       resource.MustParse("20Gi"),
	corev1.ResourceServicesLoadBalancers: resource.MustParse("0"),
	corev1.ResourceServicesNodePorts:     resource.MustParse("0"),
}

// perUsualPods are the defaults for the usual number of pods. The sum of limits is larger than a node's disk on purpose: no pod shall be
// refused because of the default limits of its containers. The requests are the real bound.
var perUsualPods = corev1.ResourceList{
	corev1.ResourceRequestsEphemeralStorage: resource.MustParse("100Gi"),
	corev1.ResourceLimitsEphemeralStorage:   resource.MustParse("2000Gi"),
}

// Of returns a project's quota: the amounts that it requests, the defaults for the rest, and nothing beyond what administrators allow the
// tenant's projects. The objects of each of the kinds are counted. The excess says what the project requests beyond that; nil for nothing.
func Of(requested corev1.ResourceList, terms Terms, kinds []schema.GroupResource) (corev1.ResourceList, *Excess) {
	bounds := terms.bounds(kinds)
	return within(bounds, terms.Default, requested, kinds), terms.excess(bounds, requested)
}

// bounds returns the maximum of each resource: what administrators allow, and otherwise the default.
func (t Terms) bounds(kinds []schema.GroupResource) corev1.ResourceList {
	return Over(Over(defaults(kinds, Over(t.Default, t.Max)), t.Default), t.Max)
}

// within returns a project's quota within the bounds: what it requests, and the defaults for the rest. What has no bound is not counted. An amount that no
// quota can have counts as the next one that it can: otherwise the API server would refuse all of the quota, also what administrators lowered.
func within(bounds, usually, requested corev1.ResourceList, kinds []schema.GroupResource) corev1.ResourceList {
	requested = possible(requested)
	wanted := Over(Over(defaults(kinds, Over(usually, requested)), usually), requested)
	hard := maps.Clone(bounds)
	for name, bound := range bounds {
		if amount, ok := wanted[name]; ok && amount.Cmp(bound) < 0 {
			hard[name] = amount
		}
	}
	return hard
}

// homeSecrets and homeObjects are how many Secrets, and objects of each other kind, a tenant's home namespace may hold by default. It has
// no apps, but the tenant's users may keep Secrets there.
const homeSecrets, homeObjects = 100, 50

// Home returns the quota of a tenant's home namespace: the amounts that administrators set, and the defaults for the rest.
func Home(set corev1.ResourceList, kinds []schema.GroupResource) corev1.ResourceList {
	hard := corev1.ResourceList{}
	for _, kind := range kinds {
		hard[nameOf(kind)] = *resource.NewQuantity(homeObjects, resource.DecimalSI)
	}
	hard[nameOf(secrets)] = *resource.NewQuantity(homeSecrets, resource.DecimalSI)
	return Over(hard, set)
}

// defaults returns the default quota of a project, which may depend on given, the amounts that administrators or the project set.
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

// nameOf returns the name of the count of a kind in a quota.
func nameOf(kind schema.GroupResource) corev1.ResourceName {
	return corev1.ResourceName("count/" + kind.String())
}

// Over returns the defaults, replaced by the amounts that were set.
func Over(defaults, set corev1.ResourceList) corev1.ResourceList {
	merged := make(corev1.ResourceList, len(defaults)+len(set))
	maps.Copy(merged, defaults)
	maps.Copy(merged, set)
	return merged
}
