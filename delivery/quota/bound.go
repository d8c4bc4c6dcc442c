package quota

import (
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Bound is how much all objects of one tenant that quotas count may take in the API server's store, in bytes. The size of each object is
// unknown, so each counts with its maximum.
type Bound struct {
	// Limit is how much all of them may take together.
	Limit int64
	// MaxObject is how large a ConfigMap or Secret may be that is written past Git. The admission policy kubeop-object-size derives
	// from it how large any other object may be, and this as well.
	MaxObject int64
}

// counts is what the names of numbers of objects begin with.
const counts = "count/"

// workloads are the kinds that have the template of a pod, or are made from one.
var workloads = map[string]bool{
	"pods": true, "deployments.apps": true, "statefulsets.apps": true, "daemonsets.apps": true, "replicasets.apps": true,
	"controllerrevisions.apps": true, "jobs.batch": true, "cronjobs.batch": true,
}

// weight is what one more object counts, 0 of what is no number of objects.
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

// Taken is what the objects of one namespace count, by status.used of its quota.
func (b Bound) Taken(used corev1.ResourceList) (sum int64) {
	for name, amount := range used {
		sum += b.weight(name) * amount.Value()
	}
	return sum
}

// Near reports whether so much is taken that quotas have to be looked at when it changes. Below half of the limit they do not: every
// project may then have all that its own quota lets it have, and nothing is written.
func (b Bound) Near(taken int64) bool { return taken >= b.Limit/2 }

// dampening: a number is kept while it deviates by at most this part of what is left.
const dampening = 8

// Share returns the quota of one namespace where all of the tenant's take so much: of each kind as many objects as there are, and what
// the rest would hold, but never more than hard. It reports whether that is less than hard. used is what is there, and before is
// the quota that is in force; numbers of it that are near enough stay, so that not each object that is made is a write for each
// of the tenant's projects.
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
