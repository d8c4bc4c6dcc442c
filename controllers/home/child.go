package home

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/finalizer"
)

// DeleteChild deletes what lives in the home of an owner that is being deleted: a Project of a Tenant, or an App of a Project. Where the
// owner's finalizers are taken off by force, so are the child's. setPolicy gives the child the deletion policy that it has to have first, and
// reports whether it had another one.
func DeleteChild(ctx context.Context, c client.Client, owner, child client.Object, setPolicy func() bool) error {
	before := child.DeepCopyObject().(client.Object)
	if finalizer.Forced(owner) && child.GetDeletionTimestamp() != nil && !finalizer.Forced(child) {
		annotations := child.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[v1alpha1.ForceRemovalAnnotation] = child.GetName()
		child.SetAnnotations(annotations)
		if err := c.Patch(ctx, child, client.MergeFrom(before)); err != nil {
			return client.IgnoreNotFound(err)
		}
		before = child.DeepCopyObject().(client.Object)
	}
	if setPolicy() {
		if err := c.Patch(ctx, child, client.MergeFrom(before)); err != nil {
			return client.IgnoreNotFound(err)
		}
	}
	if child.GetDeletionTimestamp() != nil {
		return nil
	}
	return client.IgnoreNotFound(c.Delete(ctx, child))
}
