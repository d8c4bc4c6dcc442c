package apply

import (
	"context"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ranks orders kinds by what needs what: a rank is applied when the one before it was tried. Kinds that are not named
// come between configuration and workloads, because custom resources are mostly read by workloads.
var ranks = map[string]int{
	"Namespace": 0, "CustomResourceDefinition": 0,

	"ServiceAccount": 1, "Role": 1, "ClusterRole": 1, "ResourceQuota": 1, "LimitRange": 1, "NetworkPolicy": 1, "Tenant": 1, "Repository": 1,

	// The API server looks at the role when it is asked for a binding.
	"RoleBinding": 2, "ClusterRoleBinding": 2,

	"ConfigMap": 3, "Secret": 3, "PersistentVolumeClaim": 3, "PodDisruptionBudget": 3, "Project": 3,

	"Service": 4, "App": 4,

	"Deployment": 6, "StatefulSet": 6, "DaemonSet": 6, "Job": 6, "CronJob": 6, "Pod": 6, "ReplicaSet": 6,

	"HorizontalPodAutoscaler": 7, "Ingress": 7,

	// What is asked about every write from then on, and is served by what comes before.
	"MutatingWebhookConfiguration": 8, "ValidatingWebhookConfiguration": 8, "ValidatingAdmissionPolicyBinding": 8, "MutatingAdmissionPolicyBinding": 8,
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

// blocked says why an object is not applied: what it cannot be without failed, or is not served yet. What waits by itself
// for what it needs, as a Deployment does for its ConfigMap, waits for nothing here.
func (r *run) blocked(ctx context.Context, o *unstructured.Unstructured) error {
	for _, need := range r.needs(o) {
		if err := r.failure(need); err != nil {
			return &blockedBy{need, err}
		}
	}
	return r.served(ctx, o.GroupVersionKind())
}

// blockedBy is an object that was not tried because of another's failure, which decides whether trying again helps.
type blockedBy struct {
	id  ObjectID
	err error
}

func (e *blockedBy) Error() string { return fmt.Sprintf("waits for %s/%s", e.id.Kind, e.id.Name) }
func (e *blockedBy) Unwrap() error { return e.err }

// needs are the objects, if they are in the set, without which an object is refused or does harm: its namespace, its kind's
// definition, the role of a binding, and the Services that admission webhooks ask.
func (r *run) needs(o *unstructured.Unstructured) []ObjectID {
	var needs []ObjectID
	if o.GetNamespace() != "" {
		needs = append(needs, ObjectID{Name: o.GetNamespace(), Kind: "Namespace"})
	}
	if d := r.definitions[o.GroupVersionKind().GroupKind()]; d != nil {
		needs = append(needs, d.id)
	}
	switch o.GetKind() {
	case "RoleBinding", "ClusterRoleBinding":
		needs = append(needs, roleOf(o))
	case "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration":
		needs = append(needs, servicesOf(o)...)
	}
	return needs
}

func roleOf(binding *unstructured.Unstructured) ObjectID {
	kind, _, _ := unstructured.NestedString(binding.Object, "roleRef", "kind")
	name, _, _ := unstructured.NestedString(binding.Object, "roleRef", "name")
	role := ObjectID{Name: name, Group: rbacv1.GroupName, Kind: kind}
	if kind == "Role" {
		role.Namespace = binding.GetNamespace()
	}
	return role
}

func servicesOf(configuration *unstructured.Unstructured) []ObjectID {
	var services []ObjectID
	webhooks, _, _ := unstructured.NestedSlice(configuration.Object, "webhooks")
	for _, w := range webhooks {
		webhook, _ := w.(map[string]any)
		namespace, _, _ := unstructured.NestedString(webhook, "clientConfig", "service", "namespace")
		name, _, _ := unstructured.NestedString(webhook, "clientConfig", "service", "name")
		services = append(services, ObjectID{Namespace: namespace, Name: name, Kind: "Service"})
	}
	return services
}
