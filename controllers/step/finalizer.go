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

// release removes the finalizer of obj, so that obj is deleted. It reports false if obj was deleted already, which a late cache may not
// show. It sends and receives only metadata, because obj may be large.
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
	// To read its own write, the client would need an informer of metadata in addition to that of the objects.
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

// hold adds the finalizer before the first step creates anything.
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
