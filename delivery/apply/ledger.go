package apply

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/fingerprint"
	"github.com/kubeop/kubeop/delivery/garbage"
	"github.com/kubeop/kubeop/delivery/inventory"
	"github.com/kubeop/kubeop/delivery/own"
)

// Ledger applies an owner's objects in several steps, and keeps one record of all of them. An entry that was recorded earlier and is not
// applied yet stays recorded, so that a failing step loses nothing.
type Ledger struct {
	applier  *Applier
	client   client.Client
	recorded []v1alpha1.InventoryEntry
	made     []v1alpha1.InventoryEntry
	// byVersion are kinds of objects whose recorded state is the resourceVersion.
	byVersion fingerprint.ByVersion
	// keep keeps what is applied in a Memory; nil without one.
	keep func([]v1alpha1.InventoryEntry)
	// resumed: recorded is from that Memory.
	resumed bool
}

// NewLedger returns a Ledger that continues from the recorded entries.
func NewLedger(a *Applier, c client.Client, recorded v1alpha1.Inventory) *Ledger {
	return &Ledger{applier: a, client: c, recorded: fingerprint.Sealed(recorded.Entries, a.Seal)}
}

// Apply applies objects written as apply configurations (k8s.io/client-go/applyconfigurations) or as unstructured objects.
func (l *Ledger) Apply(ctx context.Context, objects ...any) error {
	set := Set{Client: l.client, Recorded: l.recorded, ByVersion: l.byVersion}
	for _, o := range objects {
		u, err := toUnstructured(o)
		if err != nil {
			return err
		}
		set.Objects = append(set.Objects, u)
	}
	result, err := l.applier.Apply(ctx, set)
	l.made = append(inventory.Without(l.made, result.Entries), result.Entries...)
	return err
}

// Settled returns the object from the watch if it is recorded and unchanged since, and nil otherwise. The caller need not check who owns an
// unchanged object.
func (l *Ledger) Settled(ctx context.Context, object any) (metav1.Object, error) {
	o, err := toUnstructured(object)
	if err != nil {
		return nil, err
	}
	id := inventory.IDOf(o).String()
	at := slices.IndexFunc(l.recorded, func(e v1alpha1.InventoryEntry) bool { return e.ID == id && e.Digest != "" })
	if at < 0 {
		return nil, nil
	}
	live, _, err := l.applier.Live(ctx, o.GroupVersionKind(), client.ObjectKeyFromObject(o))
	if live == nil || err != nil || live.GetDeletionTimestamp() != nil {
		return nil, err
	}
	if !fingerprint.SameState(l.recorded[at].Digest, l.byVersion.Of(o, live, l.applier.Seal)) || !own.SameApp(live.GetLabels(), o.GetLabels()) {
		return nil, nil
	}
	return live, nil
}

// Prune deletes the objects that were recorded and not applied since, if they carry the owner's labels.
func (l *Ledger) Prune(ctx context.Context, owner map[string]string) error {
	left, err := garbage.Delete(ctx, l.client, l.applier.Live, inventory.Without(l.recorded, l.made), owner)
	l.recorded = left
	return err
}

// Remove deletes some of the recorded objects at once, also such that were just applied, if they carry the owner's labels.
func (l *Ledger) Remove(ctx context.Context, owner map[string]string, entries ...v1alpha1.InventoryEntry) error {
	left, err := garbage.Delete(ctx, l.client, l.applier.Live, entries, owner)
	l.recorded, l.made = append(inventory.Without(l.recorded, entries), left...), inventory.Without(l.made, entries)
	return err
}

// Withdraw deletes objects that must not exist, recorded or not, if the watch shows them and they carry the owner's labels. This includes
// objects that an earlier run created but could not record because the process ended.
func (l *Ledger) Withdraw(ctx context.Context, owner map[string]string, objects ...any) error {
	var entries []v1alpha1.InventoryEntry
	for _, object := range objects {
		o, err := toUnstructured(object)
		if err != nil {
			return err
		}
		live, known, err := l.applier.Live(ctx, o.GroupVersionKind(), client.ObjectKeyFromObject(o))
		if err != nil {
			return err
		}
		if live != nil || !known {
			entries = append(entries, v1alpha1.InventoryEntry{ID: inventory.IDOf(o).String(), Version: o.GroupVersionKind().Version})
		}
	}
	return l.Remove(ctx, owner, entries...)
}

// Inventory returns the entries that are recorded now.
func (l *Ledger) Inventory() v1alpha1.Inventory {
	return inventory.Join(l.made, inventory.Without(l.recorded, l.made))
}

// toUnstructured converts an apply configuration to an unstructured object. The result has only the fields that were set.
func toUnstructured(o any) (*unstructured.Unstructured, error) {
	if u, ok := o.(*unstructured.Unstructured); ok {
		return u, nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, fmt.Errorf("reading %T: %w", o, err)
	}
	return &unstructured.Unstructured{Object: content}, nil
}
