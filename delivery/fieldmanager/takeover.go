package fieldmanager

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// restored reports whether a backup tool restored an object of this API: then kubeop did not apply it, and the tool owns all its fields,
// including fields that were removed in Git since. In objects of other kinds, some fields may belong to a controller.
func restored(o *unstructured.Unstructured, seen metav1.Object) bool {
	return o.GroupVersionKind().Group == v1alpha1.GroupVersion.Group && !Applied(seen)
}

// TakeBack makes kubeop the manager of fields that people changed by hand, so that the next apply removes those that are not in the
// manifest. It also releases the unmanaged fields, so that the next apply keeps them. Only managedFields are written.
func TakeBack(ctx context.Context, c client.Client, o *unstructured.Unstructured, seen metav1.Object, left Unmanaged) error {
	manual, release := sets.New[string](), false
	for _, f := range seen.GetManagedFields() {
		if EditedByHand(f) {
			manual.Insert(f.Manager)
		}
		release = left.Release(f.DeepCopy()) || release
	}
	if manual.Len() == 0 && !release && !restored(o, seen) {
		return nil
	}
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		return rewriteOwners(ctx, c, o, func(live *metav1.PartialObjectMetadata) (bool, error) {
			if live.UID != seen.GetUID() {
				return false, nil
			}
			if restored(o, live) {
				manual.Insert(managers(live)...)
			}
			// This takes what they wrote, not what they applied, nor a status.
			if err := csaupgrade.UpgradeManagedFields(live, manual, v1alpha1.FieldManager); err != nil {
				return false, err
			}
			for i := range live.ManagedFields {
				left.Release(&live.ManagedFields[i])
			}
			return true, nil
		})
	})
	if err != nil {
		return fmt.Errorf("changing the owners of its fields: %w", err)
	}
	return nil
}

// managers are those of the fields of an object.
func managers(o metav1.Object) []string {
	var names []string
	for _, f := range o.GetManagedFields() {
		names = append(names, f.Manager)
	}
	return names
}

// rewriteOwners replaces the managedFields of the live object by the result of settle. settle returns false if another object has replaced
// the one that was seen. The object is read first, because caches hold only some of its managedFields, and the patch replaces all.
func rewriteOwners(ctx context.Context, c client.Client, o *unstructured.Unstructured, settle func(*metav1.PartialObjectMetadata) (bool, error)) error {
	live := &metav1.PartialObjectMetadata{}
	live.SetGroupVersionKind(o.GroupVersionKind())
	if err := c.Get(ctx, client.ObjectKeyFromObject(o), live); err != nil {
		return client.IgnoreNotFound(err)
	}
	if same, err := settle(live); !same || err != nil {
		return err
	}
	patch, err := json.Marshal([]map[string]any{
		{"op": "replace", "path": "/metadata/managedFields", "value": live.ManagedFields},
		{"op": "replace", "path": "/metadata/resourceVersion", "value": live.ResourceVersion},
	})
	if err != nil {
		return err
	}
	return c.Patch(ctx, live, client.RawPatch(types.JSONPatchType, patch))
}
