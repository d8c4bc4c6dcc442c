package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/fieldmanager"
	"github.com/kubeop/kubeop/delivery/fingerprint"
)

// target is one object of a set on its way into the cluster.
type target struct {
	*run
	// object is what is applied: the manifest without the fields that are left to others.
	object *unstructured.Unstructured
	// manifest is what the fingerprint is of: the object, and for replicas that an autoscaler outside of the set owns the number in the
	// source, so that a change of it is noticed when the autoscaler is gone.
	manifest *unstructured.Unstructured
	entry    v1alpha1.InventoryEntry
	// ignored are the fields that rules leave to others once the object is there.
	ignored fieldmanager.Unmanaged
	// live is the metadata of the object that is there, nil for none.
	live metav1.Object
	// ours: this owner applied the object before.
	ours bool
}

func (t *target) kind() schema.GroupVersionKind { return t.object.GroupVersionKind() }
func (t *target) key() types.NamespacedName     { return client.ObjectKeyFromObject(t.object) }

func (t *target) reference() *metav1.PartialObjectMetadata {
	reference := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: t.object.GetNamespace(), Name: t.object.GetName()}}
	reference.SetGroupVersionKind(t.kind())
	return reference
}

// whole returns the complete object to apply: when it is created, with its ignored fields.
func (t *target) whole() *unstructured.Unstructured {
	if t.live == nil && t.ignored.Manifest != nil {
		return t.ignored.Manifest
	}
	return t.object
}

// digest is the fingerprint of the object without its ignored fields.
func (t *target) digest(manifest *unstructured.Unstructured, live metav1.Object) string {
	if len(t.ignored.Ignored) == 0 {
		return fingerprint.Of(manifest, live, t.Seal)
	}
	seen := &metav1.ObjectMeta{ResourceVersion: live.GetResourceVersion()}
	for _, f := range live.GetManagedFields() {
		own := f.DeepCopy()
		t.ignored.Release(own)
		seen.ManagedFields = append(seen.ManagedFields, *own)
	}
	return fingerprint.Of(manifest, seen, t.Seal)
}

// replaced reports whether the API server refused a patch because the object with that UID is gone: a missing object is a conflict, another
// one an invalid change of its UID.
func replaced(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	ofUID := func(cause metav1.StatusCause) bool { return cause.Field == "metadata.uid" }
	return apierrors.IsConflict(err) && !ofQuota(err) || apierrors.IsInvalid(err) && slices.ContainsFunc(status.Status().Details.Causes, ofUID)
}

// precondition is the resourceVersion or the UID that the object must have, or the API server refuses; "" for any.
type precondition struct{ version, uid string }

// mustNotExist names a resourceVersion that no object has: with it an object is created and never changed.
var mustNotExist = precondition{version: "1"}

// patch applies the object. Only metadata is answered.
func (t *target) patch(ctx context.Context, from precondition) (metav1.Object, error) {
	data, err := json.Marshal(conditioned(t.whole().Object, from))
	if err != nil {
		return nil, fmt.Errorf("encoding: %w", err)
	}
	var written *metav1.PartialObjectMetadata
	write := func() error {
		written = t.reference()
		// Without field validation, which would only look for keys that are there twice: what is not in the schema cannot be applied.
		return t.set.Client.Patch(ctx, written, client.RawPatch(types.ApplyPatchType, data),
			client.FieldOwner(v1alpha1.FieldManager), client.ForceOwnership, client.FieldValidation(metav1.FieldValidationIgnore))
	}
	err = t.whenServed(ctx, t.object, func() error { return retry.OnError(retry.DefaultBackoff, ofQuota, write) })
	if OverQuota(err) {
		return nil, &quotaError{err}
	}
	if err != nil {
		return nil, err
	}
	return written, nil
}

// conditioned returns the object with a precondition, and without the fields that only the API server writes, which manifests that were
// copied from a cluster have.
func conditioned(object map[string]any, from precondition) map[string]any {
	object = maps.Clone(object)
	metadata, _ := object["metadata"].(map[string]any)
	metadata = maps.Clone(metadata)
	for _, field := range []string{"resourceVersion", "uid", "creationTimestamp", "generation", "managedFields", "selfLink"} {
		delete(metadata, field)
	}
	if from.version != "" {
		metadata["resourceVersion"] = from.version
	}
	if from.uid != "" {
		metadata["uid"] = from.uid
	}
	object["metadata"] = metadata
	return object
}

// ofQuota reports whether a conflict is about the namespace's quota, because other objects were counted at the same time. It is retried at
// once.
func ofQuota(err error) bool {
	var status apierrors.APIStatus
	return apierrors.IsConflict(err) && errors.As(err, &status) && status.Status().Details != nil && status.Status().Details.Kind == "resourcequotas"
}
