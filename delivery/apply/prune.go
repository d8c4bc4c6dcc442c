package apply

import (
	"context"
	"errors"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// Stale returns the recorded entries that are not among the kept ones.
func Stale(recorded, kept []v1alpha1.InventoryEntry) []v1alpha1.InventoryEntry {
	ids := map[string]bool{}
	for _, e := range kept {
		ids[e.ID] = true
	}
	var stale []v1alpha1.InventoryEntry
	for _, e := range recorded {
		if !ids[e.ID] {
			stale = append(stale, e)
		}
	}
	return stale
}

// Prune deletes the objects of the entries in reverse order of their application, where they still carry every label of
// owner, and returns the entries of those that are not gone yet: a delete that failed is tried again, one that is under
// way is waited for. An object that is no longer ours is let go.
func Prune(ctx context.Context, c client.Client, entries []v1alpha1.InventoryEntry, owner map[string]string) ([]v1alpha1.InventoryEntry, error) {
	var left []v1alpha1.InventoryEntry
	var errs []error
	for _, e := range backwards(entries) {
		gone, err := remove(ctx, c, e, owner)
		if !gone {
			left = append(left, e)
		}
		errs = append(errs, err)
	}
	return left, errors.Join(errs...)
}

func backwards(entries []v1alpha1.InventoryEntry) []v1alpha1.InventoryEntry {
	sorted := slices.Clone(entries)
	slices.SortStableFunc(sorted, func(x, y v1alpha1.InventoryEntry) int {
		a, _ := ParseObjectID(x.ID)
		b, _ := ParseObjectID(y.ID)
		return rankOf(b.Kind) - rankOf(a.Kind)
	})
	return sorted
}

// remove deletes one object and reports whether it is gone.
func remove(ctx context.Context, c client.Client, e v1alpha1.InventoryEntry, owner map[string]string) (bool, error) {
	id, err := ParseObjectID(e.ID)
	if err != nil {
		return false, err
	}
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(schema.GroupVersionKind{Group: id.Group, Version: e.Version, Kind: id.Kind})
	key := client.ObjectKey{Namespace: id.Namespace, Name: id.Name}
	if gone, err := look(ctx, c, key, object); gone || err != nil {
		return gone, objectError(id, err)
	}
	for label, value := range owner {
		if object.Labels[label] != value {
			return true, nil
		}
	}
	if object.DeletionTimestamp.IsZero() {
		uid := object.UID
		err := c.Delete(ctx, object, client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground))
		if client.IgnoreNotFound(err) != nil {
			return false, objectError(id, err)
		}
	}
	gone, err := look(ctx, c, key, object)
	return gone, objectError(id, err)
}

// look reads an object's metadata and reports whether there is none; a kind that is no longer served holds nothing.
func look(ctx context.Context, c client.Client, key client.ObjectKey, object *metav1.PartialObjectMetadata) (bool, error) {
	err := c.Get(ctx, key, object)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return true, nil
	}
	return false, err
}

func objectError(id ObjectID, err error) error {
	if err == nil {
		return nil
	}
	return &ObjectError{ID: id, Err: err}
}
