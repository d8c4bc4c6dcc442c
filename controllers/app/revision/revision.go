// Package revision describes the objects of a deployed revision of a release as entries of an inventory.
package revision

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/fingerprint"
	"github.com/kubeop/kubeop/delivery/inventory"
	"github.com/kubeop/kubeop/delivery/release/cluster"
)

// IDOf returns the inventory ID of an object of a release.
func IDOf(ref cluster.Ref) inventory.ObjectID {
	return inventory.ObjectID{Namespace: ref.Namespace, Name: ref.Name, Group: ref.Group, Kind: ref.Kind}
}

// RefOf returns the reference of a release to an object of the inventory.
func RefOf(e v1alpha1.InventoryEntry) (cluster.Ref, error) {
	id, err := inventory.ParseObjectID(e.ID)
	kind := schema.GroupVersionKind{Group: id.Group, Version: e.Version, Kind: id.Kind}
	return cluster.Ref{GroupVersionKind: kind, Namespace: id.Namespace, Name: id.Name}, err
}

// StatesAfter returns the entries with the states of the objects after a comparison with the release. moved are the objects that were
// compared, with valid IDs. Entries of objects that still differ keep their former state, and so do those of objects that a watch shows as gone
// and that the comparison found: they were created meanwhile.
func StatesAfter(entries, moved []v1alpha1.InventoryEntry, differences []cluster.Difference) []v1alpha1.InventoryEntry {
	differs, now := map[string]bool{}, map[string]string{}
	for _, d := range differences {
		differs[d.Object] = true
	}
	for _, e := range moved {
		if id, err := inventory.ParseObjectID(e.ID); err == nil && e.Digest != "" && !differs[id.Kind+"/"+id.Name] {
			now[e.ID] = e.Digest
		}
	}
	for _, d := range differences {
		if o := d.Applied; o != nil && o.Live != nil {
			id := IDOf(o.Ref)
			now[id.String()] = fingerprint.StateOf(id, o.Live)
		}
	}
	entries = slices.Clone(entries)
	for i := range entries {
		if state, ok := now[entries[i].ID]; ok {
			entries[i].Digest = state
		}
	}
	return entries
}

// WithShared returns the entries of a deployed revision with those of its shared objects. before are the recorded entries of shared objects;
// those that the revision does not have are marked stale.
func WithShared(entries, before []v1alpha1.InventoryEntry, now []cluster.Shared) []v1alpha1.InventoryEntry {
	at := map[string]int{}
	for i, e := range entries {
		at[e.ID] = i
	}
	for _, o := range now {
		id := IDOf(o.Ref).String()
		i, ok := at[id]
		if !ok {
			i = len(entries)
			entries = append(entries, v1alpha1.InventoryEntry{ID: id, Version: o.Version})
		}
		if o.Kept {
			entries[i].Policy = v1alpha1.PolicyDisabled
		}
	}
	stale := inventory.Without(before, entries)
	for i := range stale {
		stale[i].Stale = true
	}
	return inventory.Join(entries, stale).Entries
}
