package namespace

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	core "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// Adopted returns what kubeop applies of a namespace that it adopted: the labels of its owner and, if podSecurity is set, that level.
func Adopted(name string, owner Owner, podSecurity string) *core.NamespaceApplyConfiguration {
	labels := maps.Clone(owner.Labels)
	labels[v1alpha1.AdoptedLabel] = "true"
	if podSecurity != "" {
		maps.Copy(labels, podSecurityLabels(Terms{PodSecurity: podSecurity}))
	}
	return core.Namespace(name).WithLabels(labels)
}

// Adopt labels an existing namespace as the owner's, so that it can be applied. It reports false if there is none, or if kubeop created it.
// Errors: ErrTaken if it belongs to another owner, ErrLeaving, and the API server's.
func Adopt(ctx context.Context, c client.Client, name string, owner Owner) (bool, error) {
	ns, err := read(ctx, c, name)
	switch {
	case ns == nil || err != nil:
		return false, err
	case ns.Labels[v1alpha1.AdoptedLabel] == "false" && owns(owner.Labels, ns):
		return false, nil
	case ns.DeletionTimestamp != nil:
		return false, fmt.Errorf("namespace %s: %w%s", name, ErrLeaving, holds(ns))
	case ns.Labels[v1alpha1.TenantLabel] != "" && !owns(owner.Labels, ns):
		return false, fmt.Errorf("namespace %s: %w", name, ErrTaken)
	}
	if err := c.Apply(ctx, Adopted(name, owner, ""), client.FieldOwner(v1alpha1.FieldManager)); err != nil {
		return false, fmt.Errorf("adopting namespace %s: %w", name, err)
	}
	return true, nil
}

// Leave removes everything that kubeop applied to an adopted namespace, and nothing else. It never creates the namespace again.
func Leave(ctx context.Context, c client.Client, ns *corev1.Namespace) error {
	if err := c.Apply(ctx, core.Namespace(ns.Name).WithUID(ns.UID), client.FieldOwner(v1alpha1.FieldManager), client.ForceOwnership); err != nil {
		return fmt.Errorf("removing kubeop's labels from namespace %s: %w", ns.Name, err)
	}
	return nil
}
