package apply

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// Observe records objects that Helm applied, without a request where the kind is watched, and returns those that are not as they were left: one of
// Helm's fields was changed by somebody else, or the object is gone. What was not recorded before is taken as it is.
func (a *Applier) Observe(ctx context.Context, c client.Client, objects []*unstructured.Unstructured, recorded []v1alpha1.InventoryEntry) (entries []v1alpha1.InventoryEntry, drifted []*unstructured.Unstructured, err error) {
	known := map[string]v1alpha1.InventoryEntry{}
	for _, e := range recorded {
		known[e.ID] = e
	}
	for _, o := range objects {
		entry := v1alpha1.InventoryEntry{ID: IDOf(o).String(), Version: o.GroupVersionKind().Version}
		live, err := a.look(ctx, c, o)
		if err != nil {
			return recorded, nil, objectError(IDOf(o), err)
		}
		if live != nil {
			entry.Digest = digestOf(o, live)
		}
		if was, ok := known[entry.ID]; ok && was.Digest != entry.Digest {
			drifted = append(drifted, o)
		}
		entries = append(entries, entry)
	}
	return entries, drifted, nil
}

// Settle records objects from the API server itself, where the watch may not have seen the last write yet. What is gone
// again is recorded without a digest.
func Settle(ctx context.Context, c client.Client, objects []*unstructured.Unstructured) ([]v1alpha1.InventoryEntry, error) {
	var entries []v1alpha1.InventoryEntry
	for _, o := range objects {
		entry := v1alpha1.InventoryEntry{ID: IDOf(o).String(), Version: o.GroupVersionKind().Version}
		live := &metav1.PartialObjectMetadata{}
		live.SetGroupVersionKind(o.GroupVersionKind())
		err := c.Get(ctx, client.ObjectKeyFromObject(o), live)
		if client.IgnoreNotFound(err) != nil {
			return entries, objectError(IDOf(o), err)
		}
		if !apierrors.IsNotFound(err) {
			entry.Digest = digestOf(o, live)
		}
		entries = append(entries, entry)
	}
	return entries, nil
}
