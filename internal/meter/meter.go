// Package meter defines the meters by which usage is measured, with their units, and exact amounts of them.
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
	// Storage is the storage of claims without a StorageClass. Each class has a meter of its own, see StorageOf.
	Storage = "storage"
)

// Group is a group of meters that are measured together: in each minute, all meters of a group were measured, or none.
type Group = string

// The groups.
const (
	// OfPods has the requests of pods, and their number.
	OfPods Group = "pods"
	// OfMetrics has the CPU and memory that pods use, from the metrics API of the cluster.
	OfMetrics Group = "metrics"
	OfVolumes Group = "volumes"
	// OfServices has the number of load balancers.
	OfServices Group = "services"
	// OfObjects has the number of objects of apps.
	OfObjects Group = "objects"
)

// Groups are all groups, sorted.
var Groups = []Group{OfMetrics, OfObjects, OfPods, OfServices, OfVolumes}

// StorageOf returns the meter for the storage of a StorageClass; "" means no class.
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

// NamesOf returns the meters of a group, sorted. For storage it returns only Storage, which stands for the meters of all classes.
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
