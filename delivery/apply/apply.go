// Package apply brings a set of objects into the cluster with server-side apply, and deletes objects that left the set.
//
// The inventory records for each object a digest of the manifest and of the fields owned after the write. While the manifest and, according
// to the metadata watch, the owned fields are unchanged, the object is neither read nor written: a change or removal of one of our fields
// takes it from our field manager, which changes the digest. Fields that people add with kubectl count too, and are removed again; fields
// that controllers add stay.
package apply

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/digest"
	"github.com/kubeop/kubeop/delivery/inventory"
	"github.com/kubeop/kubeop/delivery/metadata"
)

// applyConcurrency is how many objects of one rank are applied at once.
const applyConcurrency = 4

// Applier applies sets of objects.
type Applier struct {
	Live metadata.Watch
	// Seal hashes the recorded digests of manifests with a secret, so that a reader cannot guess the content and compare digests. With nil,
	// digests are recorded plainly.
	Seal digest.Seal
}

// Apply applies the set, rank by rank. If an object fails, only the objects that cannot exist without it wait. The errors are joined, each
// an *ObjectError. The result is valid also with an error.
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
	return r.result, inventory.JoinErrors(r.failed)
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

// announce records the unrecorded objects of the set before any of them is written.
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

// keepAll keeps the recorded entries of a set that was not begun.
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
	slots := make(chan struct{}, applyConcurrency)
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

// one applies an object, unless it is unchanged since the last apply, and records it.
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
			// Without a digest, the next pass applies it again.
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
