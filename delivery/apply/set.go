package apply

import (
	"context"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/differ"
	"github.com/kubeop/kubeop/delivery/fieldmanager"
	"github.com/kubeop/kubeop/delivery/fingerprint"
	"github.com/kubeop/kubeop/delivery/inventory"
)

// Set is the desired objects of one owner, and the entries that it recorded the last time.
type Set struct {
	Client  client.Client
	Objects []*unstructured.Unstructured
	// Recorded are the entries of the last time. Their digests are sealed, see Applier.Seal.
	Recorded []v1alpha1.InventoryEntry
	// Before, if set, is called before unrecorded objects are written, with the entries to record. The process may be killed at any time,
	// and the objects that it created must not be lost.
	Before func(context.Context, []v1alpha1.InventoryEntry) error
	// Force deletes and recreates an object that cannot be changed as requested; never one that holds data.
	Force bool
	// TakeOwnership adopts existing objects without an owner; never a cluster-scoped one.
	TakeOwnership bool
	// Yields says whether the app of that name, of the same project, has given up an object that carries its label. Nil: no.
	Yields func(id inventory.ObjectID, app string) bool
	// Floors are the resourceVersions of the last writes, by ID, as in Result.Written. If a watch shows an older version, it has not
	// received the write yet; Result.Unseen says when to reconcile again.
	Floors map[string]string
	// Fresh says that Floors are from a moment ago. So if the watch does not show an object, the watch is late, and the object was not
	// deleted.
	Fresh bool
	// ByVersion are kinds of objects whose recorded state is the resourceVersion, as it is that of all Secrets.
	ByVersion fingerprint.ByVersion
	// Leave leaves objects as others changed them, while their manifests are the same.
	Leave bool
	// Ignore says which fields others may change.
	Ignore differ.Rules
	// Keep, if set, returns the manifest for an object that exists, with fields as the live object has them that can only be set when it is
	// made.
	Keep func(o *unstructured.Unstructured, live metav1.Object) *unstructured.Unstructured
}

// Result is the outcome of applying a Set.
type Result struct {
	// Entries records, sorted, every object that now exists, or that existed before and could not be applied.
	Entries []v1alpha1.InventoryEntry
	// Written are the resourceVersions of the objects that were written, by ID. Objects that needed no write are not included.
	Written map[string]string
	// Unseen: according to Floors, an object was written just now, but the watch does not show it. The caller reconciles again soon,
	// because the object may also have been deleted since.
	Unseen bool
	// Moved are recorded objects that others changed and that were left as they are; Corrected are those that were corrected.
	Moved     []Deviation
	Corrected []v1alpha1.InventoryEntry
}

// Deviation is a recorded object that others changed while its manifest stayed the same.
type Deviation struct {
	// Entry identifies the object; its digest is of the object's present state.
	Entry v1alpha1.InventoryEntry
	// Manifest is the applied object, without the unmanaged fields.
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
