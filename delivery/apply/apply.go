// Package apply brings a set of objects into the cluster with server-side apply and takes out what left the set.
//
// What is recorded of an object, in the inventory, is a digest of the manifest and of the fields owned afterwards. While
// the manifest and, by the metadata watch, the owned fields are still the same, the object is neither read nor written:
// whoever changes or removes one of our fields takes it from our field manager, which changes the digest. Fields that
// people add with kubectl count too, and are taken back; those that other controllers add are theirs.
package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/differ"
	"github.com/kubeop/kubeop/delivery/digest"
	"github.com/kubeop/kubeop/delivery/inventory"
)

// concurrency is how many objects of one rank are applied at once.
const concurrency = 4

// Live returns the metadata of an object by a watch: nil when there is none, false when the kind is not watched.
type Live func(context.Context, schema.GroupVersionKind, types.NamespacedName) (metav1.Object, bool, error)

// Applier applies sets of objects.
type Applier struct {
	Live Live
	// Seal has the digests of manifests recorded so that nobody can tell by them what a manifest holds; nil leaves them as they are.
	Seal digest.Seal
}

// Set is what one owner wants to be there, and what it recorded the last time.
type Set struct {
	Client  client.Client
	Objects []*unstructured.Unstructured
	// Recorded are Sealed.
	Recorded []v1alpha1.InventoryEntry
	// Before, where it is set, is called with what has to be recorded before objects that were not recorded yet are
	// written: the process may end at any moment, and what it made must not be forgotten.
	Before func(context.Context, []v1alpha1.InventoryEntry) error
	// Force deletes an object that refuses a change for good, and makes it anew; never one that holds data.
	Force bool
	// TakeOwnership takes over objects that exist and that nobody owns; never a cluster-scoped one.
	TakeOwnership bool
	// Yields says whether the app of that name, of the same project, has given up an object that carries its label. Nil: no.
	Yields func(id inventory.ObjectID, app string) bool
	// Floors are the resourceVersions, by ID, in which objects were written a moment ago, as of Result.Written. What a watch shows
	// in an older one has not seen that; Result.Unseen says when to look again.
	Floors map[string]string
	// Fresh says that Floors are of this very moment: what the watch does not show at all has not arrived there, rather than
	// been deleted since.
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
	// Unseen: an object was written a moment ago, by Floors, and the watch shows none. That is looked at again in a moment: it
	// may also have been deleted since.
	Unseen bool
	// Moved are recorded objects that others changed and that were left so; Corrected those that were put back.
	Moved     []Deviation
	Corrected []v1alpha1.InventoryEntry
}

// Apply applies the set, rank by rank. An object that fails holds up nothing but what cannot be without it. The errors
// are joined, each an *ObjectError. The result is valid also with an error.
func (a *Applier) Apply(ctx context.Context, set Set) (Result, error) {
	r := newRun(a, set)
	if err := r.announce(ctx); err != nil {
		r.keepAll()
		return r.result, err
	}
	for _, rank := range inventory.Stages(set.Objects) {
		r.all(ctx, rank)
	}
	r.result.sort()
	return r.result, r.errors()
}

// run is one application of a set.
type run struct {
	*Applier
	set      Set
	recorded map[string]v1alpha1.InventoryEntry
	// definitions are the kinds that CustomResourceDefinitions of the set define.
	definitions definitions
	scalers     scalers

	mu     sync.Mutex
	result Result
	failed map[inventory.ObjectID]error
}

func newRun(a *Applier, set Set) *run {
	r := &run{
		Applier: a, set: set, recorded: map[string]v1alpha1.InventoryEntry{}, result: Result{Written: map[string]string{}},
		definitions: definitionsOf(set.Objects), scalers: scalersOf(set.Objects), failed: map[inventory.ObjectID]error{},
	}
	for _, e := range set.Recorded {
		r.recorded[e.ID] = e
	}
	return r
}

// announce has the objects recorded that were not.
func (r *run) announce(ctx context.Context) error {
	if r.set.Before == nil {
		return nil
	}
	var unrecorded []v1alpha1.InventoryEntry
	for _, o := range r.set.Objects {
		id := inventory.IDOf(o).String()
		if _, known := r.recorded[id]; !known {
			unrecorded = append(unrecorded, v1alpha1.InventoryEntry{ID: id, Version: o.GroupVersionKind().Version})
		}
	}
	if len(unrecorded) == 0 {
		return nil
	}
	if err := r.set.Before(ctx, inventory.Join(r.set.Recorded, unrecorded).Entries); err != nil {
		return fmt.Errorf("recording what will be applied: %w", err)
	}
	return nil
}

// keepAll leaves the objects of a set that was not begun recorded as they were.
func (r *run) keepAll() {
	for _, o := range r.set.Objects {
		if entry, known := r.recorded[inventory.IDOf(o).String()]; known {
			r.result.Entries = append(r.result.Entries, entry)
		}
	}
	r.result.Entries = inventory.Join(r.result.Entries, nil).Entries
}

// all applies the objects of one rank at the same time.
func (r *run) all(ctx context.Context, objects []*unstructured.Unstructured) {
	slots := make(chan struct{}, concurrency)
	var work sync.WaitGroup
	for _, o := range objects {
		slots <- struct{}{}
		work.Go(func() {
			defer func() { <-slots }()
			r.one(ctx, o)
		})
	}
	work.Wait()
}

// one applies an object unless it is as it was left, and records it.
func (r *run) one(ctx context.Context, o *unstructured.Unstructured) {
	id := inventory.IDOf(o)
	entry, known := r.recorded[id.String()]
	if err := r.blocked(ctx, o); err != nil {
		r.fail(id, err)
		if known {
			r.record(entry)
		}
		return
	}
	t := &target{run: r, object: o, entry: entry, ours: entry.Digest != ""}
	written, err := t.apply(ctx)
	switch {
	case err != nil:
		r.fail(id, err)
		if t.perhapsThere(err) {
			// Without a digest it is tried again.
			r.record(v1alpha1.InventoryEntry{ID: id.String(), Version: o.GroupVersionKind().Version})
		}
	case written == nil:
		r.record(entry)
	default:
		now := v1alpha1.InventoryEntry{ID: id.String(), Version: o.GroupVersionKind().Version, Digest: t.digest(t.manifest, written)}
		r.record(now)
		r.wrote(id, written.GetResourceVersion())
		t.corrected(now, written)
	}
}

func (r *run) unseen() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.result.Unseen = true
}

func (r *run) record(entry v1alpha1.InventoryEntry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.result.Entries = append(r.result.Entries, entry)
}

func (r *run) wrote(id inventory.ObjectID, version string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.result.Written[id.String()] = version
}

func (r *run) fail(id inventory.ObjectID, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed[id] = err
}

func (r *run) failure(id inventory.ObjectID) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed[id]
}

// errors joins what failed, in the order of kinds and names: the same failures always make the same message.
func (r *run) errors() error {
	if len(r.failed) == 0 {
		return nil
	}
	joined := make(failures, 0, len(r.failed))
	for id, err := range r.failed {
		joined = append(joined, &inventory.ObjectError{ID: id, Err: err})
	}
	slices.SortFunc(joined, func(x, y error) int { return strings.Compare(x.Error(), y.Error()) })
	return joined
}

// failures are joined errors of which the message tells the first few.
type failures []error

// maxTold is how many failed objects a message names.
const maxTold = 10

func (f failures) Error() string {
	told := make([]string, 0, maxTold+1)
	for i, err := range f {
		if i == maxTold {
			told = append(told, fmt.Sprintf("and %d objects more", len(f)-maxTold))
			break
		}
		told = append(told, err.Error())
	}
	return strings.Join(told, "\n")
}

func (f failures) Unwrap() []error { return f }

// refused reports whether the API server answered that it did not take the object.
func refused(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code >= 400 && status.Status().Code < 500
}
