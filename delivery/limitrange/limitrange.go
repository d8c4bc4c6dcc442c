// Package limitrange calculates the limits of containers and claims in a project: what its policies say, what the project says within that, and defaults.
package limitrange

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	core "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// Limits are the limits of the containers and claims of a project.
type Limits struct {
	container core.LimitRangeItemApplyConfiguration
	claim     *core.LimitRangeItemApplyConfiguration
	// by says which policy states what is strictest.
	by *rules
	// own are the default limits that the project states. They come before those of policies.
	own corev1.ResourceList
	// Conflicts say what does not fit together: policies that contradict each other, and defaults of the project beyond what a policy allows.
	Conflicts []string
}

// Items returns the items of the LimitRange.
func (l *Limits) Items() []*core.LimitRangeItemApplyConfiguration {
	items := []*core.LimitRangeItemApplyConfiguration{&l.container}
	if l.claim != nil {
		items = append(items, l.claim)
	}
	return items
}

// Of returns the limits of a project under these policies. Of each resource, the strictest amount of several policies holds. Where a minimum is above a
// maximum, the maximum holds. Defaults are brought within the limits, so that a container that names nothing is admitted.
func Of(policies []v1alpha1.Policy, project v1alpha1.ContainerLimits) *Limits {
	s := strictest(policies)
	l := &Limits{by: s, own: project.Default, container: *core.LimitRangeItem().WithType(corev1.LimitTypeContainer)}
	names := map[corev1.ResourceName]bool{}
	for _, list := range []corev1.ResourceList{usualLimits, usualRequests, project.Default, project.DefaultRequest, s.most.amounts(), s.least.amounts(), s.usually.amounts(), s.requests, s.ratio.amounts()} {
		for name := range list {
			names[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		b, conflict := s.of(name)
		if conflict != "" {
			l.Conflicts = append(l.Conflicts, conflict)
		}
		l.add(b, name, project)
	}
	l.addClaims(s)
	return l
}

// add adds the limits of one resource to the item of containers.
func (l *Limits) add(b bounds, name corev1.ResourceName, project v1alpha1.ContainerLimits) {
	limit, limited := project.Default[name]
	request, requested := project.DefaultRequest[name]
	if limited {
		l.note(b, name, "default", limit)
	}
	if requested {
		l.note(b, name, "defaultRequest", request)
	}
	own := limited && requested
	b.fill(name, &limit, &limited, &request, &requested)
	limit, request = b.within(limit), b.within(request)
	if limited && requested {
		if request.Cmp(limit) > 0 && !own { // What the project itself contradicts, the API server refuses.
			request = limit
		}
		request = b.largeEnough(request, limit, name)
	}
	of := &l.container
	for _, one := range []struct {
		list   **corev1.ResourceList
		amount resource.Quantity
		there  bool
	}{
		{&of.Default, limit, limited},
		{&of.DefaultRequest, request, requested},
		{&of.Max, deref(b.most), b.most != nil},
		{&of.Min, deref(b.least), b.least != nil},
		{&of.MaxLimitRequestRatio, deref(b.ratio), b.ratio != nil && !b.implied()},
	} {
		if one.there && *one.list == nil {
			*one.list = &corev1.ResourceList{}
		}
		if one.there {
			(**one.list)[name] = one.amount
		}
	}
}

// largeEnough returns the request, or the least one that the ratio allows for a limit.
func (b bounds) largeEnough(request, limit resource.Quantity, name corev1.ResourceName) resource.Quantity {
	if b.ratio == nil {
		return request
	}
	if least := b.atRatio(limit, name); least.Cmp(limit) <= 0 {
		return larger(request, least)
	}
	return limit // The least one is rounded up, above a limit of less than a byte.
}

// note records that a default of the project is beyond what a policy allows.
func (l *Limits) note(b bounds, name corev1.ResourceName, field string, amount resource.Quantity) {
	beyond := func(list string, bound *resource.Quantity, policy string) {
		l.Conflicts = append(l.Conflicts, fmt.Sprintf("spec.limits.%s of project.yaml has %s %s, and spec.limits.%s of policies/%s.yaml has %s, which holds",
			field, name, amount.String(), list, policy, bound.String()))
	}
	switch {
	case b.most != nil && amount.Cmp(*b.most) > 0:
		beyond("max", b.most, b.mostOf)
	case b.least != nil && amount.Cmp(*b.least) < 0:
		beyond("min", b.least, b.leastOf)
	}
}

// addClaims adds the sizes of claims.
func (l *Limits) addClaims(s *rules) {
	b := bounds{most: s.claimMost.of(corev1.ResourceStorage), least: s.claimLeast.of(corev1.ResourceStorage)}
	if b.most == nil && b.least == nil {
		return
	}
	if b.most != nil && b.least != nil && b.least.Cmp(*b.most) > 0 {
		l.Conflicts = append(l.Conflicts, contradiction("claims.min", s.claimLeast, "claims.max", s.claimMost, corev1.ResourceStorage))
		b.least = b.most
	}
	l.claim = core.LimitRangeItem().WithType(corev1.LimitTypePersistentVolumeClaim)
	if b.most != nil {
		l.claim.WithMax(corev1.ResourceList{corev1.ResourceStorage: *b.most})
	}
	if b.least != nil {
		l.claim.WithMin(corev1.ResourceList{corev1.ResourceStorage: *b.least})
	}
}
