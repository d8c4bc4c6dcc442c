package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/differ"
	"github.com/kubeop/kubeop/delivery/fieldmanager"
	"github.com/kubeop/kubeop/delivery/fingerprint"
	"github.com/kubeop/kubeop/delivery/inventory"
	"github.com/kubeop/kubeop/delivery/metadata"
	"github.com/kubeop/kubeop/delivery/own"
)

// moved reports whether someone else changed the object while its manifest stayed the same. An object that another app took over has not
// moved.
func (t *target) moved() bool {
	if t.live != nil && t.live.GetUID() != "" && t.live.GetLabels()[v1alpha1.AppLabel] != t.object.GetLabels()[v1alpha1.AppLabel] {
		return false
	}
	return t.entry.Digest != "" && strings.HasPrefix(t.entry.Digest, fingerprint.OfManifest(t.manifest, t.Seal))
}

// leave reports whether the object's drift is left uncorrected, and adds the object to the result.
func (t *target) leave(c fieldmanager.Unmanaged) bool {
	if !t.set.Leave || !t.moved() {
		return false
	}
	now := t.entry
	if now.Digest = ""; t.live != nil {
		now.Digest = t.digest(t.manifest, t.live)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.result.Moved = append(t.result.Moved, Deviation{Entry: now, Manifest: t.object, unmanaged: c})
	return true
}

// corrected adds a corrected object to the result. If the write did not change the resourceVersion, there was no drift in our fields.
func (t *target) corrected(now v1alpha1.InventoryEntry, written metav1.Object) {
	same := t.live != nil && t.live.GetResourceVersion() == written.GetResourceVersion()
	if same || !t.moved() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.result.Corrected = append(t.result.Corrected, now)
}

// maxPreviews limits how often a comparison is repeated because someone else wrote the object meanwhile.
const maxPreviews = 5

// Preview returns the live object of a deviation (nil if there is none) and the object that applying its manifest would result in. It costs
// two requests.
func (a *Applier) Preview(ctx context.Context, c client.Client, d Deviation) (live, corrected *unstructured.Unstructured, err error) {
	for range maxPreviews {
		live, corrected = emptyLike(d.Manifest), emptyLike(d.Manifest)
		if err = c.Get(ctx, client.ObjectKeyFromObject(d.Manifest), live); metadata.Missing(err) {
			return nil, nil, nil
		}
		if err == nil {
			err = d.dryRun(ctx, c, live, corrected)
		}
		if err != nil {
			return nil, nil, inventory.ErrorAbout(inventory.IDOf(d.Manifest), fmt.Errorf("asking what would change: %w", err))
		}
		// A dry run returns the version that it started from. If that is not the version that was read, someone else's write may cause the
		// difference.
		if live.GetResourceVersion() == corrected.GetResourceVersion() {
			corrected, err = fieldmanager.WithoutManualFields(corrected, d.unmanaged)
			return live, corrected, inventory.ErrorAbout(inventory.IDOf(d.Manifest), err)
		}
	}
	return nil, nil, inventory.ErrorAbout(inventory.IDOf(d.Manifest), metadata.Changing("compared"))
}

// dryRun returns the object as applying the manifest would change it. Ignored fields are applied with their live values: leaving them out
// would remove those that kubeop still owns.
func (d *Deviation) dryRun(ctx context.Context, c client.Client, live, corrected *unstructured.Unstructured) error {
	manifest := d.Manifest
	if d.unmanaged.Manifest != nil {
		others := fieldmanager.Unmanaged{Replicas: d.unmanaged.Replicas, CABundles: d.unmanaged.CABundles}
		manifest = differ.Yielding(others.Without(d.unmanaged.Manifest), live, d.unmanaged.Ignored)
	}
	if !own.PodsLabelled(live) { // It was taken over, and its pods get the labels with the next change: see keepPods.
		manifest = own.WithoutPodLabels(manifest)
	} else if app := own.PodsOf(live); app != "" {
		manifest = own.WithPodsOf(manifest, app)
	}
	data, err := json.Marshal(conditioned(manifest.Object, precondition{}))
	if err != nil {
		return fmt.Errorf("encoding: %w", err)
	}
	return c.Patch(ctx, corrected, client.RawPatch(types.ApplyPatchType, data), client.FieldOwner(v1alpha1.FieldManager), client.ForceOwnership, client.DryRunAll)
}

// emptyLike returns an object of the same kind, namespace and name without content.
func emptyLike(o *unstructured.Unstructured) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(o.GroupVersionKind())
	u.SetNamespace(o.GetNamespace())
	u.SetName(o.GetName())
	return u
}
