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

// Container judges the field "resources" of a container as the admission plugin LimitRanger judges the pod: with the defaults. One that cannot be read, which the API
// server refuses, breaks nothing.
func (l *Limits) Container(name string, resources any) (all []Breach) {
	var of corev1.ResourceRequirements
	if !read(resources, &of) {
		return nil
	}
	requests, limits := corev1.ResourceList{}, corev1.ResourceList{}
	fill(limits, of.Limits)
	fill(requests, of.Requests, limits) // A pod without a request has its limit, before LimitRanger sees it.
	fill(limits, amountsOf(l.container.Default))
	fill(requests, amountsOf(l.container.DefaultRequest))
	// has is the amount of a list in words; written is what the author wrote there.
	has := func(field string, list, written corev1.ResourceList, about corev1.ResourceName) string {
		amount := list[about]
		text := fmt.Sprintf("%s.%s %s", field, about, amount.String())
		if in(written, about) == nil {
			text += " by default"
		}
		return text
	}
	limitOf := func(about corev1.ResourceName) string { return has("limits", limits, of.Limits, about) }
	requestOf := func(about corev1.ResourceName) string { return has("requests", requests, of.Requests, about) }
	add := func(policy, field, what, rule string) {
		all = append(all, Breach{policy, field, "has the container " + name + " with " + what + "; " + rule})
	}
	for _, about := range sortedNames(l.container.Max) {
		most, limit, request := amountsOf(l.container.Max)[about], limits[about], requests[about]
		switch rule := fmt.Sprintf("at most %s is allowed", most.String()); {
		case limit.Cmp(most) > 0:
			add(l.by.most[about].policy, "limits.max", limitOf(about), rule)
		case request.Cmp(most) > 0:
			add(l.by.most[about].policy, "limits.max", requestOf(about), rule)
		}
	}
	for _, about := range sortedNames(l.container.Min) {
		least, limit, request := amountsOf(l.container.Min)[about], limits[about], requests[about]
		switch rule := fmt.Sprintf("at least %s is required", least.String()); {
		case request.Cmp(least) < 0:
			add(l.by.least[about].policy, "limits.min", requestOf(about), rule)
		case in(limits, about) != nil && limit.Cmp(least) < 0:
			add(l.by.least[about].policy, "limits.min", limitOf(about), rule)
		}
	}
	for _, about := range sortedNames(l.container.MaxLimitRequestRatio) {
		ratio, limit, request := amountsOf(l.container.MaxLimitRequestRatio)[about], limits[about], requests[about]
		if limit.IsZero() || request.IsZero() || times(limit, request) > float64(ratio.MilliValue()) {
			add(l.by.ratio[about].policy, "limits.ratio", limitOf(about)+" and "+requestOf(about), fmt.Sprintf("a limit may be at most %s times the request", ratio.String()))
		}
	}
	for _, about := range sortedNames(l.container.Default) {
		limit, request := limits[about], requests[about]
		if most := in(amountsOf(l.container.Max), about); in(of.Limits, about) != nil || request.Cmp(limit) <= 0 || most != nil && request.Cmp(*most) > 0 {
			continue // The API server refuses the object itself if its author wrote both.
		}
		policy := l.by.usually[about].policy
		if in(l.own, about) != nil {
			policy = ""
		}
		add(policy, "limits.default", requestOf(about), fmt.Sprintf("that is above %s, so it needs a limit of its own", limitOf(about)))
	}
	return all
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
