// Package health says, from one look, whether objects do what they are there for, and names the culprit where they do
// not. It never waits.
package health

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/inventory"
)

// Verdict is the health of a set of objects. Its lines are "Kind/name: why"; they quote what containers and controllers
// wrote, hidden as far as Explainer.Mask hides it. The same situation has the same words at each look.
type Verdict struct {
	// Failed are the objects in trouble that waiting alone is not expected to mend: a crash, an image that is not there, a
	// quota, a Job that failed.
	Failed []string
	// Final reports that Kubernetes itself gave up on one of the Failed: a Job or Pod that failed, a Deployment past its
	// progress deadline, an object that calls itself stalled. What else failed is still being tried, such as a container
	// that crashes until its database is there.
	Final bool
	// Waiting are the objects that are not there yet, each with what it waits for.
	Waiting []string
	// Pending are the objects that the watch has not seen in the version that was asked for. They are neither well nor
	// unwell: look again when the watch brings them. Should that take long, look with Explainer.Late.
	Pending []string
}

// Healthy reports whether every object is.
func (v Verdict) Healthy() bool { return len(v.Failed)+len(v.Waiting)+len(v.Pending) == 0 }

// String names the culprits, failures first, at most three. What is merely not seen yet is named where there is nothing
// else to say.
func (v Verdict) String() string {
	all := append(slices.Clone(v.Failed), v.Waiting...)
	if len(all) == 0 {
		all = v.Pending
	}
	if len(all) > 3 {
		all = append(all[:3:3], fmt.Sprintf("and %d more", len(all)-3))
	}
	return strings.Join(all, "; ")
}

// Ref names an object to look at.
type Ref struct {
	Kind schema.GroupVersionKind
	Key  client.ObjectKey
	// Floor is a resourceVersion that must have been seen, so that nothing is judged by its state before the last write.
	// Empty: any version will do.
	Floor string
	// unsure is a Service of unknown type: there is something to judge only if the watch shows a load balancer.
	unsure bool
}

func (r Ref) String() string { return r.Kind.Kind + "/" + r.Key.Name }

var (
	services = schema.GroupKind{Kind: "Service"}
	jobs     = schema.GroupKind{Group: "batch", Kind: "Job"}
)

// Refs names the objects that there is more to say of than that they are there: by their kind, or because there are
// expressions for it.
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

// RefsOf is Refs where only the record of the objects is at hand. IDs that kubeop did not write are left out.
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

// inert are kinds whose presence is all there is to their health; reading them would tell nothing. Many Ingress
// controllers never write a status.
var inert = map[schema.GroupKind]bool{
	{Kind: "ConfigMap"}: true, {Kind: "Secret"}: true, {Kind: "ServiceAccount"}: true,
	{Group: "rbac.authorization.k8s.io", Kind: "Role"}:        true,
	{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}: true,
	{Group: "networking.k8s.io", Kind: "Ingress"}:             true,
	{Group: "coordination.k8s.io", Kind: "Lease"}:             true,
}

// HasStatus reports whether there is more to the health of a kind than that an object is there.
func HasStatus(kind schema.GroupVersionKind) bool { return !inert[kind.GroupKind()] }

func isLoadBalancer(service *unstructured.Unstructured) bool {
	kind, _, _ := unstructured.NestedString(service.Object, "spec", "type")
	return kind == string(corev1.ServiceTypeLoadBalancer)
}
