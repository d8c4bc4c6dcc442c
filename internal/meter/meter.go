// Package meter has what usage is counted in: the meters that kubeop measures, with their units, and exact amounts of them.
package meter

import (
	"strings"
)

// The meters that kubeop measures. Each is integrated over time, so an app that requests half a core for an hour has 1800 of CPURequested.
const (
	CPURequested    = "cpu.requested"
	CPUUsed         = "cpu.used"
	MemoryRequested = "memory.requested"
	MemoryUsed      = "memory.used"
	Pods            = "pods"
	LoadBalancers   = "loadbalancers"
	Objects         = "objects"
	// Storage is that of claims without a class. Those with one have a meter for each class, see StorageOf.
	Storage = "storage"
)

// Group is the name of a group of meters that are measured together: for each minute all of them are known, or none.
type Group = string

// The groups.
const (
	// OfPods has what pods request, and how many there are.
	OfPods Group = "pods"
	// OfMetrics has what pods use, by the metrics API of the cluster.
	OfMetrics Group = "metrics"
	OfVolumes Group = "volumes"
	// OfServices has load balancers.
	OfServices Group = "services"
	// OfObjects has how many objects apps have.
	OfObjects Group = "objects"
)

// Groups are all groups, sorted.
var Groups = []Group{OfMetrics, OfObjects, OfPods, OfServices, OfVolumes}

// StorageOf returns the meter of the storage of a class, of which "" is none.
func StorageOf(class string) string {
	if class == "" {
		return Storage
	}
	return Storage + "/" + class
}

var groups = map[string]Group{
	CPURequested: OfPods, MemoryRequested: OfPods, Pods: OfPods, CPUUsed: OfMetrics, MemoryUsed: OfMetrics, LoadBalancers: OfServices, Objects: OfObjects, Storage: OfVolumes,
}

// GroupOf returns the group of a meter that kubeop measures, and "" for any other.
func GroupOf(name string) Group {
	kind, _, _ := strings.Cut(name, "/")
	if kind == Storage {
		return OfVolumes
	}
	return groups[name]
}

// NamesOf returns the meters of a group, sorted. Those of storage have their class behind them.
func NamesOf(g Group) []string {
	return map[Group][]string{
		OfPods: {CPURequested, MemoryRequested, Pods}, OfMetrics: {CPUUsed, MemoryUsed}, OfVolumes: {Storage}, OfServices: {LoadBalancers}, OfObjects: {Objects},
	}[g]
}

// UnitOf returns the unit of a meter that kubeop measures, and "" for any other.
func UnitOf(name string) string {
	switch {
	case name == CPURequested || name == CPUUsed:
		return "core-seconds"
	case name == MemoryRequested || name == MemoryUsed || GroupOf(name) == OfVolumes:
		return "byte-seconds"
	case GroupOf(name) != "":
		return "seconds"
	}
	return ""
}
