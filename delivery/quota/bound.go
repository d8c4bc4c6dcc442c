package quota

import (
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Bound limits how many bytes all counted objects of one tenant may take in the API server's store. The size of each object is unknown, so
// each counts with its maximum.
type Bound struct {
	// Limit is the number of bytes for all objects together.
	Limit int64
	// MaxObject is the largest size of a ConfigMap or Secret that is not written through Git. The admission policy kubeop-object-size
	// derives the largest size of any other object from it, and weight does the same.
	MaxObject int64
}

// counts is the prefix of resource names in a quota that count objects.
const counts = "count/"

// workloads are the kinds that contain a pod template, or are made from one.
var workloads = map[string]bool{
	"pods": true, "deployments.apps": true, "statefulsets.apps": true, "daemonsets.apps": true, "replicasets.apps": true,
	"controllerrevisions.apps": true, "jobs.batch": true, "cronjobs.batch": true,
}

// weight is the number of bytes that one object counts, 0 for a resource that is no count of objects.
func (b Bound) weight(name corev1.ResourceName) int64 {
	kind, ok := strings.CutPrefix(string(name), counts)
	switch {
	case !ok:
		return 0
	case kind == "configmaps" || kind == "secrets":
		return b.MaxObject
	case workloads[kind]:
		return b.MaxObject / 2
	}
	return b.MaxObject / 4
}

// Taken is the number of bytes that the objects of one namespace count, by status.used of its quota.
func (b Bound) Taken(used corev1.ResourceList) (sum int64) {
	for name, amount := range used {
		sum += b.weight(name) * amount.Value()
	}
	return sum
}

// Near reports whether the tenant has taken so much that its quotas have to be recalculated at each change. Below half of the limit they
// need not be: each project keeps the quota that it has by itself, and nothing is written.
func (b Bound) Near(taken int64) bool { return taken >= b.Limit/2 }

// dampening: a number in a quota is kept if it deviates from the new one by at most this part of the remainder.
const dampening = 8

// Share returns the quota of one namespace, given the bytes that all namespaces of the tenant take. It allows, for each kind, the existing
// objects plus as many as fit into the remainder, but never more than hard. It reports whether the result is less than hard. used is the
// present use, and before is the quota in force. A number of before that is close enough is kept, so that a new object does not cause a
// write for each of the tenant's projects.
func (b Bound) Share(hard, used, before corev1.ResourceList, taken int64) (corev1.ResourceList, bool) {
	if !b.Near(taken) {
		return hard, false
	}
	shared, less := maps.Clone(hard), false
	for name, most := range hard {
		weight := b.weight(name)
		if weight == 0 {
			continue
		}
		has := used[name]
		more := max(0, b.Limit-taken) / weight
		now := min(most.Value(), has.Value()+more)
		if was, ok := before[name]; ok && was.Value() <= most.Value() && abs(was.Value()-now) <= more/dampening {
			now = was.Value()
		}
		if now < most.Value() {
			shared[name], less = *resource.NewQuantity(now, resource.DecimalSI), true
		}
	}
	return shared, less
}

func abs(n int64) int64 { return max(n, -n) }
