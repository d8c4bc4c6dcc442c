package step

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// conflictPause is the pause before the next try after somebody else wrote the object, which the cache may not show yet.
const conflictPause = time.Second

// release removes the finalizer of obj, so that obj is deleted. It reports false if obj was deleted already, which a late cache may not
// show. It sends and receives only metadata, because obj may be large. It fails if obj is outdated, because the list is one field: finalizers
// that others added or removed meanwhile stay as they are.
func (r *Runner) release(ctx context.Context, obj Object) (bool, error) {
	others := slices.DeleteFunc(slices.Clone(obj.GetFinalizers()), func(name string) bool { return name == v1alpha1.Finalizer })
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": obj.GetUID(), "resourceVersion": obj.GetResourceVersion(), "finalizers": others,
	}})
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
	obj.SetFinalizers(others)
	r.failing.Delete(obj.GetUID())
	r.meant.Delete(obj.GetUID())
	r.held.Delete(obj.GetUID())
	oversized.Delete(labelsOf(obj))
	return err == nil, nil
}

// hold adds the finalizer before the first step creates anything. It fails if obj is outdated, as release does.
func (r *Runner) hold(ctx context.Context, obj Object) error {
	before := obj.DeepCopyObject().(Object)
	if !controllerutil.AddFinalizer(obj, v1alpha1.Finalizer) {
		return nil
	}
	if err := r.Client.Patch(ctx, obj, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("adding the finalizer: %w", err)
	}
	return nil
}

// afterFinalizer ends a Reconcile after the finalizer was written, or could not be. After a conflict it is tried again soon.
func afterFinalizer(err error) (ctrl.Result, error) {
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: conflictPause}, nil
	}
	return ctrl.Result{}, client.IgnoreNotFound(err)
}
