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
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/fieldmanager"
	"github.com/kubeop/kubeop/delivery/fingerprint"
	"github.com/kubeop/kubeop/delivery/quota"
)

// target is one object of a set while it is being applied.
type target struct {
	*run
	// object is what is applied: the manifest without the fields that are left to others.
	object *unstructured.Unstructured
	// manifest is the input of the fingerprint: the object, but with the replicas of the source if an autoscaler outside of the set owns
	// them. So a change of that number is noticed once the autoscaler is deleted.
	manifest *unstructured.Unstructured
	entry    v1alpha1.InventoryEntry
	// ignored are the fields that rules leave to others once the object exists.
	ignored fieldmanager.Unmanaged
	// live is the metadata of the live object, nil if there is none.
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

// whole returns the complete object to apply: on creation, it includes the ignored fields.
func (t *target) whole() *unstructured.Unstructured {
	if t.live == nil && t.ignored.Manifest != nil {
		return t.ignored.Manifest
	}
	return t.object
}

// digest is the fingerprint of the object without its ignored fields.
func (t *target) digest(manifest *unstructured.Unstructured, live metav1.Object) string {
	if len(t.ignored.Ignored) == 0 {
		return t.set.ByVersion.Of(manifest, live, t.Seal)
	}
	seen := &metav1.ObjectMeta{ResourceVersion: live.GetResourceVersion()}
	for _, f := range live.GetManagedFields() {
		own := f.DeepCopy()
		t.ignored.Release(own)
		seen.ManagedFields = append(seen.ManagedFields, *own)
	}
	return fingerprint.Of(manifest, seen, t.Seal)
}

// replaced reports whether the API server refused a patch because no object with that UID exists any more: a missing object results in a
// conflict, another object in an invalid change of the UID.
func replaced(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	ofUID := func(cause metav1.StatusCause) bool { return cause.Field == "metadata.uid" }
	return apierrors.IsConflict(err) && !quota.Contended(err) || apierrors.IsInvalid(err) && slices.ContainsFunc(status.Status().Details.Causes, ofUID)
}

// precondition is the resourceVersion or the UID that the object must have; otherwise the API server refuses the patch. "" allows any.
type precondition struct{ version, uid string }

// mustNotExist is a resourceVersion that no object has: a patch with it creates an object and never changes one.
var mustNotExist = precondition{version: "1"}

// patch applies the object. The API server returns only its metadata.
func (t *target) patch(ctx context.Context, from precondition) (metav1.Object, error) {
	return t.write(ctx, t.whole(), from)
}

// send applies an object once.
func (t *target) send(ctx context.Context, object *unstructured.Unstructured, from precondition, more ...client.PatchOption) (*metav1.PartialObjectMetadata, error) {
	data, err := json.Marshal(conditioned(object.Object, from))
	if err != nil {
		return nil, fmt.Errorf("encoding: %w", err)
	}
	written := t.reference()
	// Field validation is off: it would only find duplicate keys, because a field that is not in the schema cannot be applied.
	options := append(more, client.FieldOwner(v1alpha1.FieldManager), client.ForceOwnership, client.FieldValidation(metav1.FieldValidationIgnore))
	return written, t.set.Client.Patch(ctx, written, client.RawPatch(types.ApplyPatchType, data), options...)
}

// write applies a version of the object, again while the quota is contended or the kind is not served yet.
func (t *target) write(ctx context.Context, object *unstructured.Unstructured, from precondition) (metav1.Object, error) {
	var written *metav1.PartialObjectMetadata
	err := t.whenServed(ctx, t.object, func() error {
		return quota.Retry(func() (err error) {
			written, err = t.send(ctx, object, from)
			return err
		})
	})
	if OverQuota(err) {
		return nil, &quotaError{err}
	}
	if err != nil {
		return nil, err
	}
	return written, nil
}

// conditioned returns the object with a precondition, and without the fields that only the API server writes. Manifests that were copied
// from a cluster have such fields.
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
