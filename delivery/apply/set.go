package apply

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/differ"
	"github.com/kubeop/kubeop/delivery/fieldmanager"
	"github.com/kubeop/kubeop/delivery/inventory"
)

// Set is what one owner wants to be there, and what it recorded the last time.
type Set struct {
	Client  client.Client
	Objects []*unstructured.Unstructured
	// Recorded are Sealed.
	Recorded []v1alpha1.InventoryEntry
	// Before, if set, is called with what has to be recorded before objects without a record are written: the process may be killed at any
	// time, and the objects that it made must not be lost.
	Before func(context.Context, []v1alpha1.InventoryEntry) error
	// Force deletes an object that refuses a change for good, and makes it anew; never one that holds data.
	Force bool
	// TakeOwnership adopts existing objects without an owner; never a cluster-scoped one.
	TakeOwnership bool
	// Yields says whether the app of that name, of the same project, has given up an object that carries its label. Nil: no.
	Yields func(id inventory.ObjectID, app string) bool
	// Floors are the resourceVersions, by ID, in which objects were written just now, as of Result.Written. If a watch shows an older one,
	// it has not received the write yet; Result.Unseen says when to look again.
	Floors map[string]string
	// Fresh says that Floors were written just now: an object that the watch does not show has not arrived there, rather than been deleted
	// since.
	Fresh bool
	// Leave leaves objects as others changed them, while their manifests are the same.
	Leave bool
	// Ignore says which fields others may change.
	Ignore differ.Rules
}

// Result is what came of a Set.
type Result struct {
	// Entries records every object that is now there, or was before and could not be applied, sorted.
	Entries []v1alpha1.InventoryEntry
	// Written are the resourceVersions of the objects that were written, by ID; those that needed nothing are not among them.
	Written map[string]string
	// Unseen: according to Floors an object was written just now, but the watch shows none. The caller looks again soon, because it may
	// also have been deleted since.
	Unseen bool
	// Moved are recorded objects that others changed and that were left so; Corrected those that were put back.
	Moved     []Deviation
	Corrected []v1alpha1.InventoryEntry
}

// Deviation is a recorded object that others changed while its manifest stayed the same.
type Deviation struct {
	// Entry names the object; its digest is of its present state.
	Entry v1alpha1.InventoryEntry
	// Manifest is what was applied, without the unmanaged fields.
	Manifest *unstructured.Unstructured
	// unmanaged are the fields that are left to others.
	unmanaged fieldmanager.Unmanaged
}

// sort sorts all lists by ID.
func (r *Result) sort() {
	r.Entries = inventory.Join(r.Entries, nil).Entries
	r.Corrected = inventory.Join(r.Corrected, nil).Entries
	slices.SortFunc(r.Moved, func(x, y Deviation) int { return strings.Compare(x.Entry.ID, y.Entry.ID) })
}
