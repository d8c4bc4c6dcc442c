package apply

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeop/kubeop/delivery/fieldmanager"
	"github.com/kubeop/kubeop/delivery/fingerprint"
	"github.com/kubeop/kubeop/delivery/inventory"
	"github.com/kubeop/kubeop/delivery/metadata"
	"github.com/kubeop/kubeop/delivery/own"
	"github.com/kubeop/kubeop/delivery/quota"
)

// apply writes the object and returns the API server's answer, or nil if there was nothing to write.
func (t *target) apply(ctx context.Context) (metav1.Object, error) {
	var err error
	if t.live, err = t.Live.Get(ctx, t.set.Client, t.kind(), t.key()); err == nil && metadata.Behind(t.live, t.set.Floors[t.entry.ID]) {
		if t.justWritten() {
			if t.live == nil {
				t.unseen()
			}
			return nil, nil
		}
		t.live, err = metadata.Read(ctx, t.set.Client, t.kind(), t.key())
	}
	if err != nil {
		return nil, err
	}
	t.keep()
	unmanaged, err := t.leaveToOthers(ctx)
	if err != nil || unmanaged == nil || t.leave(*unmanaged) {
		return nil, err
	}
	if t.live == nil && (!t.ours || t.shared()) {
		return t.create(ctx, *unmanaged)
	}
	if t.live != nil && inventory.IDOf(t.object).IsSecret() {
		// The watch has only the resourceVersion of a Secret.
		if t.live, err = metadata.Read(ctx, t.set.Client, t.kind(), t.key()); err != nil {
			return nil, err
		}
	}
	return t.update(ctx, *unmanaged)
}

// keep gives the object the fields of the live one that can only be set when it is made.
func (t *target) keep() {
	if t.set.Keep != nil && t.live != nil {
		t.object = t.set.Keep(t.object, t.live)
	}
}

// justWritten reports whether the last write had this manifest and the watch has not shown that write yet.
func (t *target) justWritten() bool {
	if t.live == nil && !t.set.Fresh {
		return false
	}
	c := fieldmanager.Unmanaged{Replicas: t.scalers.scale(t.object), CABundles: fieldmanager.InjectsCABundles(t.object)}
	return strings.HasPrefix(t.entry.Digest, fingerprint.OfManifest(c.Without(t.object), t.Seal))
}

// leaveToOthers removes from the object the fields that other managers own, and returns these fields; nil if the object is still in the
// state that the last apply left.
func (t *target) leaveToOthers(ctx context.Context) (*fieldmanager.Unmanaged, error) {
	c := fieldmanager.Unmanaged{Replicas: t.scalers.scale(t.object), CABundles: fieldmanager.InjectsCABundles(t.object)}
	t.object = c.Without(t.object)
	all, err := t.ignore(ctx, &c)
	if t.manifest = t.object; all || err != nil || t.settled(t.manifest) {
		return nil, err
	}
	if c.Replicas || t.live == nil || !fieldmanager.Scaled(t.live) || !fieldmanager.HasReplicas(t.object) {
		return &c, nil
	}
	// Someone scaled the object. If an autoscaler did, its number of replicas stays.
	scaler := c
	scaler.Replicas = true
	left := scaler.Without(t.object)
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

// ignore removes the fields that the rules ignore from the object, and reports whether these are all fields of an object that was applied.
// In that case its labels may be ignored too. The watch shows no object without labels, so the caller reads the object.
func (t *target) ignore(ctx context.Context, c *fieldmanager.Unmanaged) (all bool, err error) {
	var paths [][]string
	if paths, all = t.set.Ignore.Spared(t.object); len(paths) > 0 {
		t.ignored = fieldmanager.Unmanaged{Ignored: paths, Manifest: t.object}
		c.Ignored, c.Manifest = paths, t.object
		t.object = c.Without(t.object)
	}
	if !all || t.entry.Digest == "" {
		return false, nil
	}
	if t.live == nil {
		t.live, err = metadata.Read(ctx, t.set.Client, t.kind(), t.key())
	}
	return t.live != nil, err
}

// settled reports whether the object is in the state that the last apply of this manifest left. If another app's object replaced it within
// the same second, both may have the same managedFields: only the labels differ.
func (t *target) settled(manifest *unstructured.Unstructured) bool {
	if t.entry.Digest == "" || t.live == nil || !fingerprint.SameState(t.entry.Digest, t.digest(manifest, t.live)) {
		return false
	}
	return inventory.IDOf(manifest).IsSecret() || own.SameApp(t.live.GetLabels(), manifest.GetLabels())
}

// create creates an object that was not recorded, or one that is cluster-scoped: administrators may have replaced an app's cluster-scoped
// object by one without owner labels, which the watch does not show. Create needs no read to find out whether the object exists: the patch
// names a resourceVersion that no object has, so the API server creates the object or answers with a conflict.
func (t *target) create(ctx context.Context, c fieldmanager.Unmanaged) (metav1.Object, error) {
	written, err := t.patch(ctx, mustNotExist)
	if !apierrors.IsConflict(err) || quota.Contended(err) {
		return written, err
	}
	live, asked := metadata.Read(ctx, t.set.Client, t.kind(), t.key())
	if asked != nil || live == nil {
		return nil, errors.Join(err, asked)
	}
	t.live = live
	t.keep()
	return t.update(ctx, c)
}

// update changes an object that exists, or existed the last time. If another object replaced it since the watch reported it, update reads
// that one first: it may have another owner.
func (t *target) update(ctx context.Context, c fieldmanager.Unmanaged) (metav1.Object, error) {
	written, err := t.change(ctx, c)
	if t.live == nil || !replaced(err) {
		return written, err
	}
	live, asked := metadata.Read(ctx, t.set.Client, t.kind(), t.key())
	if asked != nil {
		return nil, errors.Join(err, asked)
	}
	if t.live = live; live == nil {
		return t.patch(ctx, mustNotExist)
	}
	return t.change(ctx, c)
}

// change changes the live object, if it is still the one that was read.
func (t *target) change(ctx context.Context, c fieldmanager.Unmanaged) (metav1.Object, error) {
	if err := t.claim(); err != nil {
		return nil, err
	}
	if t.live != nil && t.live.GetDeletionTimestamp() != nil {
		return nil, fmt.Errorf("waits until the old one is gone, which is being deleted: %w", ErrPending)
	}
	if t.live != nil {
		if err := fieldmanager.TakeBack(ctx, t.set.Client, t.object, t.live, c); err != nil {
			return nil, err
		}
	}
	from := precondition{}
	if t.live != nil {
		from.uid = string(t.live.GetUID())
	}
	object, err := t.keepPods(ctx, from)
	if err != nil {
		return nil, err
	}
	written, err := t.write(ctx, object, from)
	if apierrors.IsInvalid(err) && !replaced(err) {
		return t.recreate(ctx, err)
	}
	return written, err
}

// perhapsThere reports whether the object may exist and belong to this owner although applying it failed: it existed before, or the answer
// was lost.
func (t *target) perhapsThere(err error) bool {
	if errors.Is(err, ErrForeign) || errors.Is(err, ErrContested) {
		return t.entry.Digest != ""
	}
	return t.entry.Digest != "" || t.live != nil || !refused(err)
}
