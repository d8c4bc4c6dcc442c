package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/differ"
	"github.com/kubeop/kubeop/delivery/inventory"
)

// Deviation is a recorded object that others changed while its manifest is the same.
type Deviation struct {
	// Entry names the object; its digest is of the state that it is in now.
	Entry v1alpha1.InventoryEntry
	// Manifest is what was applied, without what is left to others.
	Manifest *unstructured.Unstructured
	left     ceded
}

// sort brings what was found at the same time into one order.
func (r *Result) sort() {
	r.Entries = inventory.Join(r.Entries, nil).Entries
	r.Corrected = inventory.Join(r.Corrected, nil).Entries
	slices.SortFunc(r.Moved, func(x, y Deviation) int { return strings.Compare(x.Entry.ID, y.Entry.ID) })
}

// moved reports whether others changed the object, its manifest being as it was when it was applied. Another app's object is
// not ours any more.
func (t *target) moved() bool {
	if t.live != nil && t.live.GetUID() != "" && t.live.GetLabels()[v1alpha1.AppLabel] != t.object.GetLabels()[v1alpha1.AppLabel] {
		return false
	}
	return t.entry.Digest != "" && strings.HasPrefix(t.entry.Digest, t.manifestDigest(t.manifest))
}

// leave reports whether the object is left as others changed it, which is told.
func (t *target) leave(c ceded) bool {
	if !t.set.Leave || !t.moved() {
		return false
	}
	now := t.entry
	if now.Digest = ""; t.live != nil {
		now.Digest = t.digest(t.manifest, t.live)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.result.Moved = append(t.result.Moved, Deviation{Entry: now, Manifest: t.object, left: c})
	return true
}

// corrected tells that the object was put back. Where its version is that which was seen, what others changed is none of
// ours.
func (t *target) corrected(now v1alpha1.InventoryEntry, written metav1.Object) {
	same := t.live != nil && t.live.GetResourceVersion() == written.GetResourceVersion()
	if same || !t.moved() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.result.Corrected = append(t.result.Corrected, now)
}

// Preview returns a deviating object as it is, nil when there is none, and as putting it back would make it. It costs two
// requests.
func (a *Applier) Preview(ctx context.Context, c client.Client, d Deviation) (live, corrected *unstructured.Unstructured, err error) {
	for range maxLooks {
		live, corrected = likeness(d.Manifest), likeness(d.Manifest)
		if err = c.Get(ctx, client.ObjectKeyFromObject(d.Manifest), live); missing(err) {
			return nil, nil, nil
		}
		if err == nil {
			err = d.rehearse(ctx, c, live, corrected)
		}
		if err != nil {
			return nil, nil, inventory.ErrorAbout(inventory.IDOf(d.Manifest), fmt.Errorf("asking what would change: %w", err))
		}
		// A dry run answers with the version it began from. Another than the one read would show somebody else's write.
		if live.GetResourceVersion() == corrected.GetResourceVersion() {
			corrected, err = withoutHands(corrected, d.left)
			return live, corrected, inventory.ErrorAbout(inventory.IDOf(d.Manifest), err)
		}
	}
	return nil, nil, inventory.ErrorAbout(inventory.IDOf(d.Manifest), errors.New("it changes all the time, so it could not be compared"))
}

// rehearse asks what applying the manifest would make of the object. What is spared is applied as it is: where it is ours
// still, leaving it out would take it away.
func (d *Deviation) rehearse(ctx context.Context, c client.Client, live, corrected *unstructured.Unstructured) error {
	manifest := d.Manifest
	if d.left.manifest != nil {
		others := ceded{replicas: d.left.replicas, bundles: d.left.bundles}
		manifest = differ.Yielding(others.without(d.left.manifest), live, d.left.paths)
	}
	data, err := json.Marshal(conditioned(manifest.Object, precondition{}))
	if err != nil {
		return fmt.Errorf("encoding: %w", err)
	}
	return c.Patch(ctx, corrected, client.RawPatch(types.ApplyPatchType, data), client.FieldOwner(v1alpha1.FieldManager), client.ForceOwnership, client.DryRunAll)
}

func likeness(o *unstructured.Unstructured) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(o.GroupVersionKind())
	u.SetNamespace(o.GetNamespace())
	u.SetName(o.GetName())
	return u
}
