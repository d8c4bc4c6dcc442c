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
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// concurrency is how many objects of one rank are applied at once.
const concurrency = 4

// Live returns the metadata of an object by a watch: nil when there is none, false when the kind is not watched.
type Live func(context.Context, schema.GroupVersionKind, types.NamespacedName) (metav1.Object, bool, error)

// Applier applies sets of objects.
type Applier struct {
	Live Live
}

// Set is what one owner wants to be there, and what it recorded the last time.
type Set struct {
	Client   client.Client
	Objects  []*unstructured.Unstructured
	Recorded []v1alpha1.InventoryEntry
	// Before, where it is set, is called with what has to be recorded before objects that were not recorded yet are
	// written: the process may end at any moment, and what it made must not be forgotten.
	Before func(context.Context, []v1alpha1.InventoryEntry) error
}

// Result is what came of a Set.
type Result struct {
	// Entries records every object that is now there, or was before and could not be applied, sorted.
	Entries []v1alpha1.InventoryEntry
	// Written are the objects as the API server returned them; those that needed nothing are not among them.
	Written []*unstructured.Unstructured
}

// ObjectError says which object an error is about.
type ObjectError struct {
	ID  ObjectID
	Err error
}

func (e *ObjectError) Error() string {
	return fmt.Sprintf("%s/%s: %s", e.ID.Kind, e.ID.Name, strings.TrimSpace(e.Err.Error()))
}

// Unwrap returns the error itself.
func (e *ObjectError) Unwrap() error { return e.Err }

// Apply applies the set, rank by rank. An object that fails does not hold up the others of its rank, but no later rank is
// begun; the errors are joined, each an *ObjectError. The result is valid also with an error.
func (a *Applier) Apply(ctx context.Context, set Set) (Result, error) {
	run := &run{Applier: a, set: set, recorded: map[string]v1alpha1.InventoryEntry{}}
	for _, e := range set.Recorded {
		run.recorded[e.ID] = e
	}
	err := run.announce(ctx)
	for _, rank := range byRank(set.Objects) {
		if err != nil {
			run.keep(rank)
			continue
		}
		err = run.all(ctx, rank)
	}
	run.result.Entries = Inventory(run.result.Entries, nil).Entries
	return run.result, err
}

// Split returns the errors that were joined into err; none for nil.
func Split(err error) []error {
	if err == nil {
		return nil
	}
	var joined interface{ Unwrap() []error }
	if errors.As(err, &joined) {
		return joined.Unwrap()
	}
	return []error{err}
}

// run is one application of a set.
type run struct {
	*Applier
	set      Set
	recorded map[string]v1alpha1.InventoryEntry

	mu     sync.Mutex
	result Result
	errs   []error
}

// announce has the objects recorded that were not.
func (r *run) announce(ctx context.Context) error {
	if r.set.Before == nil {
		return nil
	}
	var unrecorded []v1alpha1.InventoryEntry
	for _, o := range r.set.Objects {
		id := IDOf(o).String()
		if _, known := r.recorded[id]; !known {
			unrecorded = append(unrecorded, v1alpha1.InventoryEntry{ID: id, Version: o.GroupVersionKind().Version})
		}
	}
	if len(unrecorded) == 0 {
		return nil
	}
	if err := r.set.Before(ctx, Inventory(r.set.Recorded, unrecorded).Entries); err != nil {
		return fmt.Errorf("recording what will be applied: %w", err)
	}
	return nil
}

// all applies the objects of one rank at the same time.
func (r *run) all(ctx context.Context, objects []*unstructured.Unstructured) error {
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
	return errors.Join(r.errs...)
}

// one applies an object unless it is as it was left, and records it.
func (r *run) one(ctx context.Context, o *unstructured.Unstructured) {
	entry, known := r.recorded[IDOf(o).String()]
	live, err := r.look(ctx, r.set.Client, o)
	if err != nil {
		r.failed(o, err, known)
		return
	}
	if known && live != nil && entry.Digest == digestOf(o, live) {
		r.done(entry, nil)
		return
	}
	if err := contested(o, live); err != nil {
		r.failed(o, err, known)
		return
	}
	if live != nil {
		if err := takeBack(ctx, r.set.Client, o, live); err != nil {
			r.failed(o, err, true)
			return
		}
	}
	written := o.DeepCopy()
	// What is recorded without a digest was perhaps never written.
	ours := entry.Digest != "" || (live != nil && live.GetLabels()[v1alpha1.TenantLabel] != "")
	if err := r.write(ctx, written, ours); err != nil {
		r.failed(o, err, known || !refused(err))
		return
	}
	version := o.GroupVersionKind().Version
	r.done(v1alpha1.InventoryEntry{ID: IDOf(o).String(), Version: version, Digest: digestOf(o, written)}, written)
}

// look returns the metadata of the object that is there, or nil: by the watch, or of a kind that is not watched from the
// API server.
func (a *Applier) look(ctx context.Context, c client.Client, o *unstructured.Unstructured) (metav1.Object, error) {
	live, seen, err := a.Live(ctx, o.GroupVersionKind(), client.ObjectKeyFromObject(o))
	if seen || err != nil {
		return live, err
	}
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(o.GroupVersionKind())
	if gone, err := look(ctx, c, client.ObjectKeyFromObject(o), object); gone || err != nil {
		return nil, err
	}
	return object, nil
}

// write applies o. Fields another manager set are taken over only where the object is ours already: the first apply of an
// object that is somebody else's ends in a conflict that names them, where the two differ in a field.
func (r *run) write(ctx context.Context, o *unstructured.Unstructured, ours bool) error {
	options := []client.ApplyOption{client.FieldOwner(v1alpha1.FieldManager)}
	if ours {
		options = append(options, client.ForceOwnership)
	}
	err := r.set.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(o), options...)
	if apierrors.IsConflict(err) && !ours {
		return fmt.Errorf("the object exists and is not ours; remove it or take it out of the source: %w", err)
	}
	return err
}

// contested refuses an object that belongs to another app, project or tenant.
func contested(o *unstructured.Unstructured, live metav1.Object) error {
	if live == nil {
		return nil
	}
	for _, label := range []string{v1alpha1.TenantLabel, v1alpha1.ProjectLabel, v1alpha1.AppLabel, v1alpha1.RepositoryLabel} {
		theirs, ours := live.GetLabels()[label], o.GetLabels()[label]
		if theirs != ours && theirs != "" {
			return fmt.Errorf("belongs to %s %s already", strings.TrimPrefix(label, v1alpha1.Group+"/"), theirs)
		}
	}
	return nil
}

func (r *run) done(entry v1alpha1.InventoryEntry, written *unstructured.Unstructured) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.result.Entries = append(r.result.Entries, entry)
	if written != nil {
		r.result.Written = append(r.result.Written, written)
	}
}

// failed records the error. An object that may be there, because it was before or because the answer was lost, is
// recorded without a digest, so that it is tried again.
func (r *run) failed(o *unstructured.Unstructured, err error, maybeThere bool) {
	id := IDOf(o)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errs = append(r.errs, &ObjectError{ID: id, Err: err})
	if maybeThere {
		entry := v1alpha1.InventoryEntry{ID: id.String(), Version: o.GroupVersionKind().Version}
		r.result.Entries = append(r.result.Entries, entry)
	}
}

// refused reports whether the API server answered that it did not take the object.
func refused(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code >= 400 && status.Status().Code < 500
}

// keep leaves the objects of a rank that was not begun recorded as they were.
func (r *run) keep(objects []*unstructured.Unstructured) {
	for _, o := range objects {
		if entry, known := r.recorded[IDOf(o).String()]; known {
			r.result.Entries = append(r.result.Entries, entry)
		}
	}
}
