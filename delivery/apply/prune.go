package apply

import (
	"context"
	"errors"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/inventory"
)

// Removal is what leaves its owner.
type Removal struct {
	Client  client.Client
	Entries []v1alpha1.InventoryEntry
	// Owner are labels; an object that does not carry every one of them is no longer the owner's, and let go.
	Owner map[string]string
	// Guarded has what is protected from deletion stay; Confirmed lets go ahead what waits for confirmation.
	Guarded, Confirmed bool
	// Retain has claims that hold data, and what owns some, stay though it is confirmed.
	Retain bool
	// Dependents know what owns claims. Nil: that is not asked for.
	Dependents *Dependents
	// Foreground has an object stay until what it owns is gone.
	Foreground bool
	// Wanted says who else declares an object, or may do so; "" for nobody. It is left for them, and recorded until they
	// have it. Nil is nobody. It is called at the same time for several objects.
	Wanted func(context.Context, inventory.ObjectID) (string, error)
}

// Removed is what came of a Removal.
type Removed struct {
	// Left is what remains recorded: all that is in none of the others, which failed, and what the next three list.
	Left []v1alpha1.InventoryEntry
	// Leaving says of what is being deleted what it waits for, Held names what waits for confirmation, and Wanted what is
	// left for others, with their names.
	Leaving []string
	Held    []v1alpha1.InventoryEntry
	Wanted  []string
	// Kept is what is never deleted. It is no longer recorded.
	Kept []v1alpha1.InventoryEntry
}

// fate is what becomes of one object.
type fate int

const (
	gone fate = iota // or no longer the owner's
	toDelete
	failed
	leaving
	held
	wanted
	kept
)

// Prune deletes the objects of the entries whatever protects them, where they still carry every label of owner, and
// returns the entries of those that are not gone yet.
func (a *Applier) Prune(ctx context.Context, c client.Client, entries []v1alpha1.InventoryEntry, owner map[string]string) ([]v1alpha1.InventoryEntry, error) {
	removed, err := a.Remove(ctx, Removal{Client: c, Entries: entries, Owner: owner})
	return removed.Left, err
}

// Remove deletes objects in reverse order of their application. A delete that failed is tried again the next time, one
// that is under way is waited for, at no cost where a watch sees it. What is held costs nothing either. The result is valid
// also with an error.
func (a *Applier) Remove(ctx context.Context, r Removal) (Removed, error) {
	var removed Removed
	var errs []error
	for _, rank := range inventory.ReverseStages(r.Entries) {
		fates, notes, failures := a.removeAll(ctx, &r, rank)
		for i, e := range rank {
			removed.add(e, fates[i], notes[i])
		}
		errs = append(errs, failures...)
	}
	return removed, errors.Join(errs...)
}

func (r *Removed) add(e v1alpha1.InventoryEntry, f fate, note string) {
	switch f {
	case leaving:
		r.Leaving = append(r.Leaving, note)
	case held:
		r.Held = append(r.Held, e)
	case wanted:
		r.Wanted = append(r.Wanted, note)
	case kept:
		r.Kept = append(r.Kept, e)
	}
	if f != gone && f != kept {
		r.Left = append(r.Left, e)
	}
}

// removeAll deletes the objects of one rank at the same time.
func (a *Applier) removeAll(ctx context.Context, r *Removal, rank []v1alpha1.InventoryEntry) ([]fate, []string, []error) {
	fates, notes, errs := make([]fate, len(rank)), make([]string, len(rank)), make([]error, len(rank))
	slots := make(chan struct{}, concurrency)
	var work sync.WaitGroup
	for i, e := range rank {
		slots <- struct{}{}
		work.Go(func() {
			defer func() { <-slots }()
			id, err := inventory.ParseObjectID(e.ID)
			if err != nil {
				fates[i], errs[i] = failed, err
				return
			}
			fates[i], notes[i], err = a.remove(ctx, r, id, &rank[i])
			if err != nil {
				fates[i] = failed
			}
			errs[i] = inventory.ErrorAbout(id, err)
		})
	}
	work.Wait()
	return fates, notes, errs
}
