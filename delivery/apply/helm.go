package apply

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/fingerprint"
	"github.com/kubeop/kubeop/delivery/inventory"
	"github.com/kubeop/kubeop/delivery/metadata"
)

// Left is an object as an action of Helm left it.
type Left struct {
	ID inventory.ObjectID
	// Version of its kind.
	Version string
	// Live is the API server's answer to the write; nil if no write was needed.
	Live metav1.Object
}

// Record returns the entries of the objects that an action of Helm left. For an object that the action did not write, it keeps the recorded
// entry or, if there is none, records the live object.
func (a *Applier) Record(ctx context.Context, c client.Client, left []Left, recorded []v1alpha1.InventoryEntry) ([]v1alpha1.InventoryEntry, error) {
	known := map[string]v1alpha1.InventoryEntry{}
	for _, e := range recorded {
		known[e.ID] = e
	}
	entries := make([]v1alpha1.InventoryEntry, 0, len(left))
	for _, l := range left {
		id := l.ID
		entry := v1alpha1.InventoryEntry{ID: id.String(), Version: l.Version}
		switch was, ok := known[entry.ID]; {
		case l.Live != nil:
			entry.Digest = fingerprint.StateOf(id, l.Live)
		case ok && was.Digest != "":
			entry.Digest = was.Digest
		default:
			now, err := a.state(ctx, c, id, entry.Version)
			if err != nil {
				return recorded, inventory.ErrorAbout(id, err)
			}
			entry.Digest = now
		}
		entries = append(entries, entry)
	}
	return inventory.Join(entries, nil).Entries, nil
}

// Moved returns the recorded objects of a Helm release that changed after Helm wrote them: someone else changed one of Helm's fields, or
// the object is gone. Each comes with its present state. Moved makes requests only for kinds without a watch. If a watch shows an object in
// an older version than floors has for its ID, the watch has not received the last write yet.
func (a *Applier) Moved(ctx context.Context, c client.Client, recorded []v1alpha1.InventoryEntry, floors map[string]string) ([]v1alpha1.InventoryEntry, error) {
	var moved []v1alpha1.InventoryEntry
	for _, entry := range recorded {
		id, err := inventory.ParseObjectID(entry.ID)
		if err != nil {
			return nil, err
		}
		live, err := a.Live.Get(ctx, c, id.Versioned(entry.Version), client.ObjectKey{Namespace: id.Namespace, Name: id.Name})
		if err != nil {
			return nil, inventory.ErrorAbout(id, err)
		}
		now := ""
		if live != nil {
			now = fingerprint.StateOf(id, live)
		}
		if !fingerprint.SameState(entry.Digest, now) && !metadata.Behind(live, floors[entry.ID]) {
			entry.Digest = now
			moved = append(moved, entry)
		}
	}
	return moved, nil
}

// state returns the state of an object; "" if the object does not exist.
func (a *Applier) state(ctx context.Context, c client.Client, id inventory.ObjectID, version string) (string, error) {
	live, err := a.Live.Get(ctx, c, id.Versioned(version), client.ObjectKey{Namespace: id.Namespace, Name: id.Name})
	if live == nil || err != nil {
		return "", err
	}
	return fingerprint.StateOf(id, live), nil
}
