package inventory

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// stages orders kinds by their dependencies: each stage is applied after the one before it was tried. Kinds that are not listed come
// between configuration and workloads, because mostly workloads read custom resources.
var stages = map[string]int{
	"Namespace": 0, "CustomResourceDefinition": 0,

	"ServiceAccount": 1, "Role": 1, "ClusterRole": 1, "ResourceQuota": 1, "LimitRange": 1, "NetworkPolicy": 1, "Tenant": 1, "Repository": 1,

	// The API server reads the role when it creates a binding.
	"RoleBinding": 2, "ClusterRoleBinding": 2,

	"ConfigMap": 3, "Secret": 3, "PersistentVolumeClaim": 3, "PodDisruptionBudget": 3, "Project": 3,

	"Service": 4, "App": 4,

	"Deployment": 6, "StatefulSet": 6, "DaemonSet": 6, "Job": 6, "CronJob": 6, "Pod": 6, "ReplicaSet": 6,

	"HorizontalPodAutoscaler": 7, "Ingress": 7,

	// The API server calls these webhooks and policies at every later write, and Services of earlier stages serve them.
	"MutatingWebhookConfiguration": 8, "ValidatingWebhookConfiguration": 8, "ValidatingAdmissionPolicyBinding": 8, "MutatingAdmissionPolicyBinding": 8,
}

const defaultStage = 5

func stageOf(kind string) int {
	if stage, ok := stages[kind]; ok {
		return stage
	}
	return defaultStage
}

// Stages groups objects by stage, the lowest first. Each group is sorted by ID.
func Stages(objects []*unstructured.Unstructured) [][]*unstructured.Unstructured {
	sorted := slices.Clone(objects)
	slices.SortFunc(sorted, func(x, y *unstructured.Unstructured) int {
		if d := stageOf(x.GetKind()) - stageOf(y.GetKind()); d != 0 {
			return d
		}
		return strings.Compare(IDOf(x).String(), IDOf(y).String())
	})
	var groups [][]*unstructured.Unstructured
	for i, o := range sorted {
		if i == 0 || stageOf(o.GetKind()) != stageOf(sorted[i-1].GetKind()) {
			groups = append(groups, nil)
		}
		groups[len(groups)-1] = append(groups[len(groups)-1], o)
	}
	return groups
}

// ReverseStages groups entries by stage, the last applied first.
func ReverseStages(entries []v1alpha1.InventoryEntry) [][]v1alpha1.InventoryEntry {
	stage := func(e v1alpha1.InventoryEntry) int {
		id, _ := ParseObjectID(e.ID)
		return stageOf(id.Kind)
	}
	sorted := slices.Clone(entries)
	slices.SortStableFunc(sorted, func(x, y v1alpha1.InventoryEntry) int { return stage(y) - stage(x) })
	var groups [][]v1alpha1.InventoryEntry
	for i, e := range sorted {
		if i == 0 || stage(e) != stage(sorted[i-1]) {
			groups = append(groups, nil)
		}
		groups[len(groups)-1] = append(groups[len(groups)-1], e)
	}
	return groups
}
