package apply

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeop/kubeop/delivery/inventory"
)

// blocked returns why an object is not applied: an object that it cannot exist without failed, or its kind is not served yet. A Deployment is
// not blocked by its ConfigMap, because its pods wait for that themselves.
func (r *run) blocked(ctx context.Context, o *unstructured.Unstructured) error {
	for _, need := range r.needs(o) {
		if err := r.failure(need); err != nil {
			return &blockedBy{need, err}
		}
	}
	return r.served(ctx, o.GroupVersionKind())
}

// blockedBy is the error of an object that was not tried because another one failed. The other's failure decides whether a retry helps.
type blockedBy struct {
	id  inventory.ObjectID
	err error
}

func (e *blockedBy) Error() string { return fmt.Sprintf("waits for %s/%s", e.id.Kind, e.id.Name) }
func (e *blockedBy) Unwrap() error { return e.err }

// needs returns the objects of the set that o needs to be accepted, or to do no harm: its namespace, the definition of its kind, the role
// of a binding, and the Services that admission webhooks call.
func (r *run) needs(o *unstructured.Unstructured) []inventory.ObjectID {
	var needs []inventory.ObjectID
	if o.GetNamespace() != "" {
		needs = append(needs, inventory.ObjectID{Name: o.GetNamespace(), Kind: "Namespace"})
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

func roleOf(binding *unstructured.Unstructured) inventory.ObjectID {
	kind, _, _ := unstructured.NestedString(binding.Object, "roleRef", "kind")
	name, _, _ := unstructured.NestedString(binding.Object, "roleRef", "name")
	role := inventory.ObjectID{Name: name, Group: rbacv1.GroupName, Kind: kind}
	if kind == "Role" {
		role.Namespace = binding.GetNamespace()
	}
	return role
}

func servicesOf(configuration *unstructured.Unstructured) []inventory.ObjectID {
	var services []inventory.ObjectID
	webhooks, _, _ := unstructured.NestedSlice(configuration.Object, "webhooks")
	for _, w := range webhooks {
		webhook, _ := w.(map[string]any)
		namespace, _, _ := unstructured.NestedString(webhook, "clientConfig", "service", "namespace")
		name, _, _ := unstructured.NestedString(webhook, "clientConfig", "service", "name")
		services = append(services, inventory.ObjectID{Namespace: namespace, Name: name, Kind: "Service"})
	}
	return services
}
