package step

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// release takes the finalizer off obj, which lets it be gone. It reports false where it was gone already: a cache is a little late. Only
// metadata is sent and answered, because obj may be large, and is not read any more.
func (r *Runner) release(ctx context.Context, obj Object) (bool, error) {
	controllerutil.RemoveFinalizer(obj, v1alpha1.Finalizer)
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": obj.GetUID(), "finalizers": obj.GetFinalizers()}})
	if err != nil {
		return false, fmt.Errorf("encoding the finalizers: %w", err)
	}
	kind, err := apiutil.GVKForObject(obj, r.Client.Scheme())
	if err != nil {
		return false, fmt.Errorf("taking the finalizer off: %w", err)
	}
	about := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: obj.GetNamespace(), Name: obj.GetName()}}
	about.SetGroupVersionKind(kind)
	// Read-your-writes would need an informer of metadata, beside the one of the objects.
	err = r.Client.Patch(ctx, about, client.RawPatch(types.MergePatchType, patch), client.DisableReadYourWritesConsistency)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("taking the finalizer off: %w", err)
	}
	r.failing.Delete(obj.GetUID())
	r.meant.Delete(obj.GetUID())
	r.held.Delete(obj.GetUID())
	oversized.Delete(labelsOf(obj))
	return err == nil, nil
}

// hold adds the finalizer before the first step makes anything.
func (r *Runner) hold(ctx context.Context, obj Object) error {
	before := obj.DeepCopyObject().(Object)
	if !controllerutil.AddFinalizer(obj, v1alpha1.Finalizer) {
		return nil
	}
	if err := r.Client.Patch(ctx, obj, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("adding the finalizer: %w", err)
	}
	return nil
}
