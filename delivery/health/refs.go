package health

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/inventory"
)

var (
	services = schema.GroupKind{Kind: "Service"}
	jobs     = schema.GroupKind{Group: "batch", Kind: "Job"}
)

// Refs returns the objects whose health is more than their existence: because of their kind, or because there are expressions for it.
func Refs(objects []*unstructured.Unstructured, checks *Checks) []Ref {
	var refs []Ref
	for _, o := range objects {
		kind := o.GroupVersionKind()
		checked := checks.of(kind.GroupKind()) != nil
		if kind.GroupKind() == services && !isLoadBalancer(o) && !checked {
			continue
		}
		if HasStatus(kind) || checked {
			refs = append(refs, Ref{Kind: kind, Key: client.ObjectKeyFromObject(o)})
		}
	}
	return refs
}

// RefsOf is Refs for callers that have only the record of the objects. IDs that kubeop did not write are left out.
func RefsOf(entries []v1alpha1.InventoryEntry, checks *Checks) []Ref {
	var refs []Ref
	for _, entry := range entries {
		id, err := inventory.ParseObjectID(entry.ID)
		if err != nil {
			continue
		}
		kind := schema.GroupVersionKind{Group: id.Group, Version: entry.Version, Kind: id.Kind}
		if HasStatus(kind) || checks.of(kind.GroupKind()) != nil {
			key := client.ObjectKey{Namespace: id.Namespace, Name: id.Name}
			refs = append(refs, Ref{Kind: kind, Key: key, unsure: kind.GroupKind() == services})
		}
	}
	return refs
}

// WithoutJobs leaves out Jobs.
func WithoutJobs(refs []Ref) []Ref {
	return slices.DeleteFunc(slices.Clone(refs), func(r Ref) bool { return r.Kind.GroupKind() == jobs })
}

// withoutStatus are kinds that are healthy if they exist; their status is not read. Many Ingress controllers never write a status.
var withoutStatus = map[schema.GroupKind]bool{
	{Kind: "ConfigMap"}: true, {Kind: "Secret"}: true, {Kind: "ServiceAccount"}: true,
	{Group: "rbac.authorization.k8s.io", Kind: "Role"}:        true,
	{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}: true,
	{Group: "networking.k8s.io", Kind: "Ingress"}:             true,
	{Group: "coordination.k8s.io", Kind: "Lease"}:             true,
}

// HasStatus reports whether the health of a kind needs more than the existence of the object.
func HasStatus(kind schema.GroupVersionKind) bool { return !withoutStatus[kind.GroupKind()] }
