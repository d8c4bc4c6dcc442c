package apply

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ranks orders kinds by what needs what: a rank is applied when the one before it is there. Kinds that are not named
// come between configuration and workloads, because custom resources are mostly read by workloads.
var ranks = map[string]int{
	"Namespace": 0,

	"ServiceAccount": 1, "Role": 1, "ClusterRole": 1, "ResourceQuota": 1, "LimitRange": 1, "NetworkPolicy": 1, "Tenant": 1, "Repository": 1,

	// The API server looks at the role when it is asked for a binding.
	"RoleBinding": 2, "ClusterRoleBinding": 2,

	"ConfigMap": 3, "Secret": 3, "PersistentVolumeClaim": 3, "PodDisruptionBudget": 3, "Project": 3,

	"Service": 4, "App": 4,

	"Deployment": 6, "StatefulSet": 6, "DaemonSet": 6, "Job": 6, "CronJob": 6, "Pod": 6, "ReplicaSet": 6,

	"HorizontalPodAutoscaler": 7, "Ingress": 7,
}

const otherRank = 5

func rankOf(kind string) int {
	if rank, ok := ranks[kind]; ok {
		return rank
	}
	return otherRank
}

// byRank groups objects by rank, lowest first, each group sorted by ID.
func byRank(objects []*unstructured.Unstructured) [][]*unstructured.Unstructured {
	sorted := slices.Clone(objects)
	slices.SortFunc(sorted, func(x, y *unstructured.Unstructured) int {
		if d := rankOf(x.GetKind()) - rankOf(y.GetKind()); d != 0 {
			return d
		}
		return strings.Compare(IDOf(x).String(), IDOf(y).String())
	})
	var groups [][]*unstructured.Unstructured
	for i, o := range sorted {
		if i == 0 || rankOf(o.GetKind()) != rankOf(sorted[i-1].GetKind()) {
			groups = append(groups, nil)
		}
		groups[len(groups)-1] = append(groups[len(groups)-1], o)
	}
	return groups
}
