package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// Removal is what leaves its owner.
type Removal struct {
	Client  client.Client
	Entries []v1alpha1.InventoryEntry
	// Owner are labels; an object that does not carry every one of them is no longer the owner's, and let go.
	Owner map[string]string
	// Guarded has what is protected from deletion stay; Confirmed lets go ahead what waits for confirmation.
	Guarded, Confirmed bool
	// Foreground has an object stay until what it owns is gone.
	Foreground bool
	// Wanted says who else declares an object, or may do so; "" for nobody. It is left for them, and recorded until they
	// have it. Nil is nobody. It is called at the same time for several objects.
	Wanted func(context.Context, ObjectID) (string, error)
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
	condemned
	failed
	leaving
	held
	wanted
	kept
)

// Stale returns the recorded entries that are not among the kept ones.
func Stale(recorded, kept []v1alpha1.InventoryEntry) []v1alpha1.InventoryEntry {
	ids := map[string]bool{}
	for _, e := range kept {
		ids[e.ID] = true
	}
	var stale []v1alpha1.InventoryEntry
	for _, e := range recorded {
		if !ids[e.ID] {
			stale = append(stale, e)
		}
	}
	return stale
}

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
	for _, rank := range backwards(r.Entries) {
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
		e.Policy = v1alpha1.PolicyConfirm // The next look need not ask the live object.
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
			id, err := ParseObjectID(e.ID)
			if err != nil {
				fates[i], errs[i] = failed, err
				return
			}
			fates[i], notes[i], err = a.remove(ctx, r, id, e)
			if err != nil {
				fates[i] = failed
			}
			errs[i] = objectError(id, err)
		})
	}
	work.Wait()
	return fates, notes, errs
}

// backwards groups entries by rank, the last applied first.
func backwards(entries []v1alpha1.InventoryEntry) [][]v1alpha1.InventoryEntry {
	rank := func(e v1alpha1.InventoryEntry) int {
		id, _ := ParseObjectID(e.ID)
		return rankOf(id.Kind)
	}
	sorted := slices.Clone(entries)
	slices.SortStableFunc(sorted, func(x, y v1alpha1.InventoryEntry) int { return rank(y) - rank(x) })
	var groups [][]v1alpha1.InventoryEntry
	for i, e := range sorted {
		if i == 0 || rank(e) != rank(sorted[i-1]) {
			groups = append(groups, nil)
		}
		groups[len(groups)-1] = append(groups[len(groups)-1], e)
	}
	return groups
}

// maxLooks bounds how often an object that others write meanwhile is looked at again.
const maxLooks = 5

// remove deletes one object and says what became of it. What is decided about is what is deleted: where it changed in
// between, such as by another app that took it over, it is looked at again.
func (a *Applier) remove(ctx context.Context, r *Removal, id ObjectID, e v1alpha1.InventoryEntry) (fate, string, error) {
	kind, key := servedAs(r.Client, id.kind(e.Version)), client.ObjectKey{Namespace: id.Namespace, Name: id.Name}
	live, known, err := a.Live(ctx, kind, key)
	switch {
	case err != nil:
		return failed, "", err
	case known && live != nil && !id.isSecret(): // Of a Secret the watch knows no labels.
	case r.holds(id, e) && (!known || live != nil):
		return held, "", nil
	default: // It may have been made a moment ago.
		live, err = ask(ctx, r.Client, kind, key)
	}
	for range maxLooks {
		if live == nil || err != nil {
			return gone, "", err
		}
		f, note, err := r.decide(ctx, id, e, live)
		if f != condemned || err != nil {
			return f, note, err
		}
		f, note, live, err = r.execute(ctx, id, kind, live)
		if f != condemned || err != nil {
			return f, note, err
		}
	}
	return failed, "", errors.New("it changes all the time, so it could not be deleted")
}

// servedAs returns the kind in a version that is served: an object stays when the version it was recorded in goes.
func servedAs(c client.Client, kind schema.GroupVersionKind) schema.GroupVersionKind {
	if _, err := c.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version); !meta.IsNoMatchError(err) {
		return kind
	}
	mapping, err := c.RESTMapper().RESTMapping(kind.GroupKind())
	if err != nil {
		return kind // Whoever asks next is told why.
	}
	return mapping.GroupVersionKind
}

// lingering are kinds of which an object stays a while without a finalizer that was seen before.
var lingering = map[schema.GroupKind]bool{
	{Kind: "Pod"}: true, {Kind: "Namespace"}: true, {Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: true,
}

// execute deletes an object as it was looked at. One that changed in between is returned as it is now, still condemned.
func (r *Removal) execute(ctx context.Context, id ObjectID, kind schema.GroupVersionKind, was metav1.Object) (fate, string, metav1.Object, error) {
	err := r.delete(ctx, id, kind, was)
	switch {
	case err != nil && !apierrors.IsConflict(err):
		return gone, "", nil, client.IgnoreNotFound(err)
	case err == nil && len(was.GetFinalizers()) > 0:
		return leaving, stays(id, was), nil, nil
	case err == nil && !r.Foreground && !lingering[kind.GroupKind()]:
		return gone, "", nil, nil // It was deleted in a version without finalizers.
	}
	deleted := err == nil
	live, err := ask(ctx, r.Client, kind, client.ObjectKey{Namespace: id.Namespace, Name: id.Name})
	switch {
	case live == nil || err != nil:
		return gone, "", nil, err
	case deleted && live.GetUID() == was.GetUID():
		return leaving, stays(id, live), nil, nil
	}
	return condemned, "", live, nil
}

// holds reports whether an object waits for confirmation whatever it looks like now.
func (r *Removal) holds(id ObjectID, e v1alpha1.InventoryEntry) bool {
	return r.Guarded && !r.Confirmed && protection(id, e, nil) == v1alpha1.PolicyConfirm
}

// decide says what is to become of an object that is there, as it is.
func (r *Removal) decide(ctx context.Context, id ObjectID, e v1alpha1.InventoryEntry, live metav1.Object) (fate, string, error) {
	policy := protection(id, e, live)
	switch {
	case !r.owns(live):
		return gone, "", nil
	case live.GetDeletionTimestamp() != nil:
		return leaving, stays(id, live), nil
	case r.Guarded && policy == v1alpha1.PolicyDisabled:
		return kept, "", nil
	case r.Guarded && policy == v1alpha1.PolicyConfirm && !r.Confirmed:
		return held, "", nil
	case r.Wanted == nil:
		return condemned, "", nil
	}
	by, err := r.Wanted(ctx, id)
	if by == "" || err != nil {
		return condemned, "", err
	}
	return wanted, fmt.Sprintf("%s/%s for %s", id.Kind, id.Name, by), nil
}

func (r *Removal) owns(live metav1.Object) bool {
	for label, value := range r.Owner {
		if live.GetLabels()[label] != value {
			return false
		}
	}
	return true
}

func (r *Removal) delete(ctx context.Context, id ObjectID, kind schema.GroupVersionKind, live metav1.Object) error {
	propagation := metav1.DeletePropagationBackground
	if r.Foreground {
		propagation = metav1.DeletePropagationForeground
	}
	uid, version := live.GetUID(), live.GetResourceVersion()
	object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: id.Namespace, Name: id.Name}}
	object.SetGroupVersionKind(kind)
	return r.Client.Delete(ctx, object, client.Preconditions{UID: &uid, ResourceVersion: &version}, client.PropagationPolicy(propagation))
}

// stays says why an object that was deleted is still there.
func stays(id ObjectID, live metav1.Object) string {
	name := id.Kind + "/" + id.Name
	finalizers := live.GetFinalizers()
	switch {
	case len(finalizers) == 0:
		return name
	case len(finalizers) == 1 && finalizers[0] == metav1.FinalizerDeleteDependents:
		return name + ", until what it owns is gone"
	}
	return fmt.Sprintf("%s, which the finalizer %s holds", name, strings.Join(finalizers, ", "))
}

// look reads an object's metadata and reports whether there is none; a kind that is no longer served holds nothing.
func look(ctx context.Context, c client.Client, key client.ObjectKey, object *metav1.PartialObjectMetadata) (bool, error) {
	err := c.Get(ctx, key, object)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return true, nil
	}
	return false, err
}

func objectError(id ObjectID, err error) error {
	if err == nil {
		return nil
	}
	return &ObjectError{ID: id, Err: err}
}
