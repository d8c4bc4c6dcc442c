// Package garbage deletes recorded objects of an owner that left their source (garbage collection), in the reverse order of applying. It
// keeps objects that are protected, that wait for confirmation, whose claims with data would be deleted with them, or that have another
// owner now.
package garbage

import (
	"context"
	"errors"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/finalizer"
	"github.com/kubeop/kubeop/delivery/inventory"
	"github.com/kubeop/kubeop/delivery/metadata"
)

// Removal is a set of recorded objects to be deleted.
type Removal struct {
	Client client.Client
	// Live is the metadata watch. Objects that it does not cover are read from the API server.
	Live    metadata.Watch
	Entries []v1alpha1.InventoryEntry
	// Owner are labels. An object that lacks one of them now has another owner: it stays, and is no longer recorded.
	Owner map[string]string
	// Guarded keeps objects that are protected from deletion; Confirmed deletes those that wait for confirmation.
	Guarded, Confirmed bool
	// Retain keeps claims that hold data, and the objects that own such claims, although the deletion is confirmed.
	Retain bool
	// Dependents finds the objects that own claims. With nil, claims are not checked.
	Dependents *Dependents
	// Foreground deletes in the foreground: an object stays until its dependents are gone.
	Foreground bool
	// Wanted returns the name of another app that declares an object, or may do so; "" for none. The object is left to that app, and stays
	// recorded until that app has applied it. With nil, no object is left. It is called concurrently.
	Wanted func(context.Context, inventory.ObjectID) (string, error)
}

// Removed is the outcome of a Removal.
type Removed struct {
	// Left is what remains recorded: the objects that could not be deleted, and those of the next three lists.
	Left []v1alpha1.InventoryEntry
	// Leaving are the objects that are being deleted, Held are those that wait for confirmation, and Wanted names those that are left for
	// other apps.
	Leaving []finalizer.Terminating
	Held    []v1alpha1.InventoryEntry
	Wanted  []string
	// Kept are objects that are never deleted. They are no longer recorded.
	Kept []v1alpha1.InventoryEntry
}

// result is the outcome for one object: terminating says why a leaving object still exists, and wanted names the app that declares it.
type result struct {
	outcome
	terminating finalizer.Terminating
	wanted      string
}

type outcome int

const (
	gone outcome = iota // Or the object has another owner.
	toDelete
	failed
	leaving
	held
	wanted
	kept
)

// Delete deletes the objects of the entries whatever their policy, if they still carry all labels of owner, and returns the entries of
// those that still exist.
func Delete(ctx context.Context, c client.Client, watch metadata.Watch, entries []v1alpha1.InventoryEntry, owner map[string]string) ([]v1alpha1.InventoryEntry, error) {
	removed, err := Remove(ctx, Removal{Client: c, Live: watch, Entries: entries, Owner: owner})
	return removed.Left, err
}

// Remove deletes objects in the reverse order of their application, and waits for none: call it again with Left. It costs no request for an
// object if the watch or the record has enough information. The result is valid also with an error.
func Remove(ctx context.Context, r Removal) (Removed, error) {
	var removed Removed
	var errs []error
	for _, stage := range inventory.ReverseStages(r.Entries) {
		results, failures := r.removeAll(ctx, stage)
		for i, e := range stage {
			removed.add(e, results[i])
		}
		errs = append(errs, failures...)
	}
	return removed, errors.Join(errs...)
}

func (r *Removed) add(e v1alpha1.InventoryEntry, became result) {
	switch became.outcome {
	case leaving:
		r.Leaving = append(r.Leaving, became.terminating)
	case held:
		r.Held = append(r.Held, e)
	case wanted:
		r.Wanted = append(r.Wanted, became.wanted)
	case kept:
		r.Kept = append(r.Kept, e)
	}
	if became.outcome != gone && became.outcome != kept {
		r.Left = append(r.Left, e)
	}
}

// removeAll deletes the objects of one stage concurrently.
func (r *Removal) removeAll(ctx context.Context, stage []v1alpha1.InventoryEntry) ([]result, []error) {
	results, errs := make([]result, len(stage)), make([]error, len(stage))
	slots := make(chan struct{}, concurrency)
	var work sync.WaitGroup
	for i, e := range stage {
		slots <- struct{}{}
		work.Go(func() {
			defer func() { <-slots }()
			id, err := inventory.ParseObjectID(e.ID)
			if err != nil {
				results[i].outcome, errs[i] = failed, err
				return
			}
			results[i], err = r.remove(ctx, id, &stage[i])
			if err != nil {
				results[i].outcome = failed
			}
			errs[i] = inventory.ErrorAbout(id, err)
		})
	}
	work.Wait()
	return results, errs
}

// concurrency is how many objects of one stage are deleted at once.
const concurrency = 4
