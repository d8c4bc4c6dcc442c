package limitrange

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Breach is a limit that a container or a claim exceeds.
type Breach struct {
	// Policy is the name of the policy, "" for a default that no policy states. Field is where the limit is in its spec, and Why what is wrong, in words
	// that follow the name of the object.
	Policy, Field, Why string
}

// container is what a container requests, with the defaults of its limits and requests.
type container struct {
	requests, limits corev1.ResourceList
	// written is what the author wrote.
	written corev1.ResourceRequirements
}

func (l *Limits) defaulted(written corev1.ResourceRequirements) container {
	c := container{corev1.ResourceList{}, corev1.ResourceList{}, written}
	fill(c.limits, written.Limits)
	fill(c.requests, written.Requests, c.limits) // A pod without a request has its limit, before LimitRanger sees it.
	fill(c.limits, amountsOf(l.container.Default))
	fill(c.requests, amountsOf(l.container.DefaultRequest))
	return c
}

// limit and request are amounts in words.
func (c container) limit(about corev1.ResourceName) string {
	return amountIn("limits", c.limits, c.written.Limits, about)
}

func (c container) request(about corev1.ResourceName) string {
	return amountIn("requests", c.requests, c.written.Requests, about)
}

func amountIn(field string, list, written corev1.ResourceList, about corev1.ResourceName) string {
	amount := list[about]
	text := fmt.Sprintf("%s.%s %s", field, about, amount.String())
	if in(written, about) == nil {
		text += " by default"
	}
	return text
}

// Container judges the field "resources" of a container as the admission plugin LimitRanger judges the pod, and the API server the limits that the plugin adds: with the
// defaults. One that cannot be read, which the API server refuses, breaks nothing.
func (l *Limits) Container(name string, resources any) (all []Breach) {
	var written corev1.ResourceRequirements
	if !read(resources, &written) {
		return nil
	}
	c := l.defaulted(written)
	requests, limits := c.requests, c.limits
	add := func(policy, field, what, rule string) {
		all = append(all, Breach{policy, field, "has the container " + name + " with " + what + "; " + rule})
	}
	for _, about := range sortedNames(l.container.Max) {
		most, limit, request := amountsOf(l.container.Max)[about], limits[about], requests[about]
		switch rule := fmt.Sprintf("at most %s is allowed", most.String()); {
		case limit.Cmp(most) > 0:
			add(l.by.most[about].policy, "limits.max", c.limit(about), rule)
		case request.Cmp(most) > 0:
			add(l.by.most[about].policy, "limits.max", c.request(about), rule)
		}
	}
	for _, about := range sortedNames(l.container.Min) {
		least, limit, request := amountsOf(l.container.Min)[about], limits[about], requests[about]
		switch rule := fmt.Sprintf("at least %s is required", least.String()); {
		case request.Cmp(least) < 0:
			add(l.by.least[about].policy, "limits.min", c.request(about), rule)
		case in(limits, about) != nil && limit.Cmp(least) < 0:
			add(l.by.least[about].policy, "limits.min", c.limit(about), rule)
		}
	}
	for _, about := range sortedNames(l.container.MaxLimitRequestRatio) {
		ratio, limit, request := amountsOf(l.container.MaxLimitRequestRatio)[about], limits[about], requests[about]
		if limit.IsZero() || request.IsZero() || times(limit, request) > float64(ratio.MilliValue()) {
			add(l.by.ratio[about].policy, "limits.ratio", c.limit(about)+" and "+c.request(about), fmt.Sprintf("a limit may be at most %s times the request", ratio.String()))
		}
	}
	for _, about := range sortedNames(l.container.Default) {
		if c.aboveDefault(about) && !exceeds(requests, about, l.container.Max) {
			add(l.defaultOf(about), "limits.default", c.request(about), fmt.Sprintf("that is above %s, so it needs a limit of its own", c.limit(about)))
		}
	}
	return all
}

// aboveDefault reports whether the request of a resource is above the limit by default. If the author wrote both, the API server refuses the object itself.
func (c container) aboveDefault(about corev1.ResourceName) bool {
	return in(c.written.Limits, about) == nil && exceeds(c.requests, about, &c.limits)
}

// exceeds reports whether an amount of a list is above that of another one, which may lack it.
func exceeds(list corev1.ResourceList, about corev1.ResourceName, most *corev1.ResourceList) bool {
	amount, limit := list[about], in(amountsOf(most), about)
	return limit != nil && amount.Cmp(*limit) > 0
}

// defaultOf is the policy that states the default limit of a resource; "" if the project does, or nobody.
func (l *Limits) defaultOf(about corev1.ResourceName) string {
	if in(l.own, about) != nil {
		return ""
	}
	return l.by.usually[about].policy
}

// Claim judges the field "resources" of a claim.
func (l *Limits) Claim(resources any) (all []Breach) {
	var of corev1.VolumeResourceRequirements
	if l.claim == nil || !read(resources, &of) {
		return nil
	}
	const about = corev1.ResourceStorage
	size := of.Requests[about]
	if most := in(amountsOf(l.claim.Max), about); most != nil && size.Cmp(*most) > 0 {
		all = append(all, Breach{l.by.claimMost[about].policy, "limits.claims.max", fmt.Sprintf("has a claim of %s; at most %s is allowed", size.String(), most.String())})
	}
	if least := in(amountsOf(l.claim.Min), about); least != nil && size.Cmp(*least) < 0 {
		all = append(all, Breach{l.by.claimLeast[about].policy, "limits.claims.min", fmt.Sprintf("has a claim of %s; at least %s is required", size.String(), least.String())})
	}
	return all
}

// times is a thousand times how many times its request a limit is. It is calculated as LimitRanger does, in thousandths where these fit.
func times(limit, request resource.Quantity) float64 {
	if limit.Value() <= resource.MaxMilliValue && request.Value() <= resource.MaxMilliValue {
		return float64(limit.MilliValue()) / float64(request.MilliValue()) * 1000
	}
	return float64(limit.Value()) / float64(request.Value()) * 1000
}

// read reads resources as they are in YAML, with amounts that are texts or numbers.
func read(from, into any) bool {
	text, err := json.Marshal(from)
	return err == nil && json.Unmarshal(text, into) == nil
}

// fill sets what a list lacks.
func fill(list corev1.ResourceList, from ...corev1.ResourceList) {
	for _, others := range from {
		for name, amount := range others {
			if _, there := list[name]; !there {
				list[name] = amount
			}
		}
	}
}

func amountsOf(list *corev1.ResourceList) corev1.ResourceList {
	if list == nil {
		return nil
	}
	return *list
}

func sortedNames(list *corev1.ResourceList) []corev1.ResourceName {
	return slices.Sorted(maps.Keys(amountsOf(list)))
}
