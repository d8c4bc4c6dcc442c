package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/inventory"
)

// ErrPending says that an object is applied as soon as something under way has ended; nothing is wrong.
var ErrPending = errors.New("is under way")

// ErrQuota says that the namespace's quota has no room for an object.
var ErrQuota = errors.New("the quota has no room")

// quotaError is a refusal by the quota.
type quotaError struct{ error }

func (e *quotaError) Error() string {
	return e.error.Error() + "; raise the quota in project.yaml, or ask for less"
}
func (e *quotaError) Unwrap() error { return e.error }

// Is reports that it is an ErrQuota.
func (e *quotaError) Is(reason error) bool { return reason == ErrQuota }

// OverQuota reports whether the API server refused an object because of a quota, which only its message says.
func OverQuota(err error) bool {
	return errors.Is(err, ErrQuota) || apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota:")
}

// Only reports whether an error of Apply is about nothing but objects that failed for one of the reasons: ErrPending,
// ErrContested, ErrForeign or ErrQuota.
func Only(err error, reasons ...error) bool {
	for _, each := range inventory.Split(err) {
		if !slices.ContainsFunc(reasons, func(reason error) bool { return errors.Is(each, reason) }) {
			return false
		}
	}
	return err != nil
}

// target is one object of a set on its way into the cluster.
type target struct {
	*run
	// object is what is applied: the manifest without the fields that are left to others.
	object *unstructured.Unstructured
	// manifest is what the digest is of: the object, and of replicas that an autoscaler outside of the set has what the
	// source says, so that a change of that is not passed over when the autoscaler is gone.
	manifest *unstructured.Unstructured
	entry    v1alpha1.InventoryEntry
	// spared is what others may change of the object once it is there.
	spared spared
	// live is the object that is there as far as it is known, nil for none.
	live metav1.Object
	// ours: what is there was applied by this owner before.
	ours bool
}

// apply writes the object and returns what the API server says of it, nil when there was nothing to write.
func (t *target) apply(ctx context.Context) (metav1.Object, error) {
	var err error
	if t.live, err = t.look(ctx, t.set.Client, t.kind(), t.key()); err == nil && behind(t.live, t.set.Floors[t.entry.ID]) {
		if t.justWritten() {
			if t.live == nil {
				t.unseen()
			}
			return nil, nil
		}
		t.live, err = ask(ctx, t.set.Client, t.kind(), t.key())
	}
	if err != nil {
		return nil, err
	}
	ceded, err := t.cede(ctx)
	if err != nil || ceded == nil || t.leave(*ceded) {
		return nil, err
	}
	if t.live == nil && (!t.ours || t.shared()) {
		return t.create(ctx, *ceded)
	}
	if t.live != nil && inventory.IDOf(t.object).IsSecret() {
		// Of a Secret the watch knows no more than the version.
		if t.live, err = ask(ctx, t.set.Client, t.kind(), t.key()); err != nil {
			return nil, err
		}
	}
	return t.update(ctx, *ceded)
}

// justWritten reports whether this very manifest is what was written a moment ago, which the watch has not seen yet.
func (t *target) justWritten() bool {
	if t.live == nil && !t.set.Fresh {
		return false
	}
	c := ceded{replicas: t.scalers.scale(t.object), bundles: injected(t.object)}
	return strings.HasPrefix(t.entry.Digest, t.manifestDigest(c.without(t.object)))
}

// cede takes from the object what is left to others, and returns what that is; nil when the object is as it was left.
func (t *target) cede(ctx context.Context) (*ceded, error) {
	c := ceded{replicas: t.scalers.scale(t.object), bundles: injected(t.object)}
	t.object = c.without(t.object)
	all, err := t.spare(ctx, &c)
	if t.manifest = t.object; all || err != nil || t.settled(t.manifest) {
		return nil, err
	}
	if c.replicas || t.live == nil || !scaled(t.live) || !hasReplicas(t.object) {
		return &c, nil
	}
	// Somebody scaled it. With an autoscaler, that stays.
	scaler := c
	scaler.replicas = true
	left := scaler.without(t.object)
	manifest := &unstructured.Unstructured{Object: maps.Clone(left.Object)}
	manifest.Object["replicas"], _, _ = unstructured.NestedFieldNoCopy(t.object.Object, "spec", "replicas")
	if t.settled(manifest) {
		return nil, nil
	}
	found, err := t.scalers.live(ctx, t.set.Client, t.object)
	if err == nil && found {
		c, t.object, t.manifest = scaler, left, manifest
	}
	return &c, err
}

// settled reports whether the object is as it was left when this manifest was applied. What managedFields say of another
// app's object, made in its place within the same second, may be the same: only the labels tell it.
func (t *target) settled(manifest *unstructured.Unstructured) bool {
	if t.entry.Digest == "" || t.live == nil || !sameState(t.entry.Digest, t.digest(manifest, t.live)) {
		return false
	}
	return inventory.IDOf(manifest).IsSecret() || marked(t.live.GetLabels(), manifest.GetLabels())
}

// create makes an object that was not recorded, or that the whole cluster shares: the watch shows none without marks, such as
// administrators put in the place of an app's. That it exists is found out by asking the API server to change it from a
// version that no object has: it then refuses, where it would otherwise make the object. That spares a read.
func (t *target) create(ctx context.Context, c ceded) (metav1.Object, error) {
	written, err := t.patch(ctx, nobodys)
	if !apierrors.IsConflict(err) || ofQuota(err) {
		return written, err
	}
	live, asked := ask(ctx, t.set.Client, t.kind(), t.key())
	if asked != nil || live == nil {
		return nil, errors.Join(err, asked)
	}
	t.live = live
	return t.update(ctx, c)
}

// update changes an object that is there, or was the last time. Where another has taken its place since the watch saw it, that
// one is looked at first: it may be somebody else's.
func (t *target) update(ctx context.Context, c ceded) (metav1.Object, error) {
	written, err := t.change(ctx, c)
	if t.live == nil || !replaced(err) {
		return written, err
	}
	live, asked := ask(ctx, t.set.Client, t.kind(), t.key())
	if asked != nil {
		return nil, errors.Join(err, asked)
	}
	if t.live = live; live == nil {
		return t.patch(ctx, nobodys)
	}
	return t.change(ctx, c)
}

// change changes the object that is there, if it is the one that is known.
func (t *target) change(ctx context.Context, c ceded) (metav1.Object, error) {
	if err := t.claim(); err != nil {
		return nil, err
	}
	if t.live != nil && t.live.GetDeletionTimestamp() != nil {
		return nil, fmt.Errorf("waits until the old one is gone, which is being deleted: %w", ErrPending)
	}
	if t.live != nil {
		if err := takeBack(ctx, t.set.Client, t.object, t.live, c); err != nil {
			return nil, err
		}
	}
	from := precondition{}
	if t.live != nil {
		from.uid = string(t.live.GetUID())
	}
	written, err := t.patch(ctx, from)
	if apierrors.IsInvalid(err) && !replaced(err) {
		return t.recreate(ctx, err)
	}
	return written, err
}

// replaced reports whether the API server says that what is there is not the object that was meant: none is a conflict, and
// another one would be given the UID of the first.
func replaced(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	ofUID := func(cause metav1.StatusCause) bool { return cause.Field == "metadata.uid" }
	return apierrors.IsConflict(err) && !ofQuota(err) || apierrors.IsInvalid(err) && slices.ContainsFunc(status.Status().Details.Causes, ofUID)
}

// precondition is what the object must be, where it is said, or the API server refuses.
type precondition struct{ version, uid string }

// nobodys is the version of no object: with it, an object is made and none is changed.
var nobodys = precondition{version: "1"}

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

// conditioned returns the object with a precondition, and without what only the API server writes: manifests taken from a
// cluster hold that.
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

// perhapsThere reports whether the object may be in the cluster as this owner's though it could not be applied: it was
// before, or the answer was lost.
func (t *target) perhapsThere(err error) bool {
	if errors.Is(err, ErrForeign) || errors.Is(err, ErrContested) {
		return t.entry.Digest != ""
	}
	return t.entry.Digest != "" || t.live != nil || !refused(err)
}

func (t *target) kind() schema.GroupVersionKind { return t.object.GroupVersionKind() }
func (t *target) key() types.NamespacedName     { return client.ObjectKeyFromObject(t.object) }

func (t *target) reference() *metav1.PartialObjectMetadata {
	reference := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: t.object.GetNamespace(), Name: t.object.GetName()}}
	reference.SetGroupVersionKind(t.kind())
	return reference
}

// look returns the metadata of the object that is there, or nil: by the watch, or of a kind that is not watched from the
// API server.
func (a *Applier) look(ctx context.Context, c client.Client, kind schema.GroupVersionKind, key types.NamespacedName) (metav1.Object, error) {
	live, seen, err := a.Live(ctx, kind, key)
	if seen || err != nil {
		return live, err
	}
	return ask(ctx, c, kind, key)
}

// ask returns the metadata of the object that is there, or nil, from the API server.
func ask(ctx context.Context, c client.Client, kind schema.GroupVersionKind, key types.NamespacedName) (metav1.Object, error) {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(kind)
	if gone, err := look(ctx, c, key, object); gone || err != nil {
		return nil, err
	}
	return object, nil
}

// ofQuota reports whether a conflict is about the namespace's quota, which others were counted in at the same moment. It is
// tried again at once.
func ofQuota(err error) bool {
	var status apierrors.APIStatus
	return apierrors.IsConflict(err) && errors.As(err, &status) && status.Status().Details != nil && status.Status().Details.Kind == "resourcequotas"
}

// look reads an object's metadata and reports whether there is none; a kind that is no longer served holds nothing.
func look(ctx context.Context, c client.Client, key client.ObjectKey, object *metav1.PartialObjectMetadata) (bool, error) {
	err := c.Get(ctx, key, object)
	if missing(err) || meta.IsNoMatchError(err) {
		return true, nil
	}
	return false, err
}
