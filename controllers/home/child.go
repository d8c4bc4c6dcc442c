package home

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/finalizer"
)

// DeleteChild deletes an object in the home of an owner that is being deleted: a Project of a Tenant, or an App of a Project. setPolicy
// sets the deletion policy that the child must have before it is deleted, and reports whether it changed the policy. If the owner's
// finalizers are removed by force, so are the child's.
func DeleteChild(ctx context.Context, c client.Client, owner, child client.Object, setPolicy func() bool) error {
	before := child.DeepCopyObject().(client.Object)
	if finalizer.Forced(owner) && child.GetDeletionTimestamp() != nil && !finalizer.Forced(child) {
		annotations := child.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[v1alpha1.ForceRemovalAnnotation] = child.GetName()
		child.SetAnnotations(annotations)
		if err := c.Patch(ctx, child, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("forcing the removal: %w", err)
		} else if err != nil {
			return nil
		}
		before = child.DeepCopyObject().(client.Object)
	}
	if setPolicy() {
		if err := c.Patch(ctx, child, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("setting the deletion policy: %w", err)
		} else if err != nil {
			return nil
		}
	}
	if child.GetDeletionTimestamp() != nil {
		return nil
	}
	return client.IgnoreNotFound(c.Delete(ctx, child))
}
