package apply

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/finalizer"
	"github.com/kubeop/kubeop/delivery/inventory"
)

// maxLooks bounds how often an object that others write meanwhile is looked at again.
const maxLooks = 5

// remove deletes one object and says what became of it. A version that the API server has ceased to serve says nothing
// about the object: it is looked for again in one that is served.
func (a *Applier) remove(ctx context.Context, r *Removal, id inventory.ObjectID, e *v1alpha1.InventoryEntry) (fate, string, error) {
	f, note, err := a.removeAs(ctx, r, id, e)
	if !unserved(err) {
		return f, note, err
	}
	meta.MaybeResetRESTMapper(r.Client.RESTMapper())
	if f, note, err = a.removeAs(ctx, r, id, e); unserved(err) {
		err = fmt.Errorf("the API server does not serve %s at present: %w", id.Versioned(e.Version).GroupVersion(), err)
	}
	return f, note, err
}

// removeAs deletes one object in the version in which it seems to be served. What is decided about is what is deleted: where
// it changed in between, such as by another app that took it over, it is looked at again.
func (a *Applier) removeAs(ctx context.Context, r *Removal, id inventory.ObjectID, e *v1alpha1.InventoryEntry) (fate, string, error) {
	kind, key := servedAs(r.Client, id.Versioned(e.Version)), client.ObjectKey{Namespace: id.Namespace, Name: id.Name}
	live, known, err := a.Live(ctx, kind, key)
	if unlisted(err) {
		live, known, err = nil, false, nil
	}
	blind := !known || id.IsSecret() // Of a Secret the watch knows no labels.
	switch {
	case err != nil:
		return failed, "", err
	case live != nil && !blind:
	case r.holds(e) && (!known || live != nil):
		return held, "", nil
	default: // It may have been made a moment ago.
		live, err = ask(ctx, r.Client, kind, key)
	}
	if live == nil || err != nil {
		return gone, "", err
	}
	f, note, err := r.settle(ctx, kind, *e, live)
	switch {
	case f != held:
	case blind: // The next look need not ask again.
		e.Policy = v1alpha1.PolicyConfirm
	case MayOwn(kind.GroupKind()) && max(inventory.KindPolicy(id), inventory.AnnotatedPolicy(live)) == "":
		e.Policy = v1alpha1.PolicyClaims
	}
	return f, note, err
}

// settle decides about an object and does so, also where it changes meanwhile.
func (r *Removal) settle(ctx context.Context, kind schema.GroupVersionKind, e v1alpha1.InventoryEntry, live metav1.Object) (fate, string, error) {
	id := inventory.ObjectID{Namespace: live.GetNamespace(), Name: live.GetName(), Group: kind.Group, Kind: kind.Kind}
	for range maxLooks {
		f, note, err := r.decide(ctx, id, e, live)
		if f != toDelete || err != nil {
			return f, note, err
		}
		f, note, live, err = r.execute(ctx, id, kind, live)
		if f != toDelete || err != nil {
			return f, note, err
		}
	}
	return failed, "", errors.New("it changes all the time, so it could not be deleted")
}

// unlisted reports whether a watch knows nothing of a kind because the API server does not list it: each object can still be asked
// for, so that it can be removed.
func unlisted(err error) bool {
	var why interface{ Unlisted() bool }
	return errors.As(err, &why) && why.Unlisted()
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

// execute deletes an object as it was looked at. One that changed in between is returned as it is now, still to be deleted.
func (r *Removal) execute(ctx context.Context, id inventory.ObjectID, kind schema.GroupVersionKind, was metav1.Object) (fate, string, metav1.Object, error) {
	err := r.delete(ctx, id, kind, was)
	switch {
	case missing(err):
		return gone, "", nil, nil
	case err != nil && !apierrors.IsConflict(err):
		return failed, "", nil, err
	case err == nil && len(was.GetFinalizers()) > 0:
		return leaving, finalizer.Holds(id.Kind, was), nil, nil
	case err == nil && !r.Foreground && !lingering[kind.GroupKind()]:
		return gone, "", nil, nil // It was deleted in a version without finalizers.
	}
	deleted := err == nil
	live, err := ask(ctx, r.Client, kind, client.ObjectKey{Namespace: id.Namespace, Name: id.Name})
	switch {
	case live == nil || err != nil:
		return gone, "", nil, err
	case deleted && live.GetUID() == was.GetUID():
		return leaving, finalizer.Holds(id.Kind, live), nil, nil
	}
	return toDelete, "", live, nil
}

// holds reports whether it is recorded that an object waits for confirmation. A kind alone does not tell: the object itself
// may say that it is never deleted.
func (r *Removal) holds(e *v1alpha1.InventoryEntry) bool {
	return r.Guarded && !r.Confirmed && (e.Policy == v1alpha1.PolicyConfirm || e.Policy == v1alpha1.PolicyClaims)
}

// decide says what is to become of an object that is there, as it is.
func (r *Removal) decide(ctx context.Context, id inventory.ObjectID, e v1alpha1.InventoryEntry, live metav1.Object) (fate, string, error) {
	policy := inventory.PolicyOf(id, e, live)
	switch {
	case !r.owns(live):
		return gone, "", nil
	case live.GetDeletionTimestamp() != nil:
		return leaving, finalizer.Holds(id.Kind, live), nil
	case r.Guarded && policy == v1alpha1.PolicyDisabled:
		return kept, "", nil
	case r.Guarded && policy == v1alpha1.PolicyConfirm && !r.Confirmed:
		return held, "", nil
	}
	if takes, err := r.takesData(ctx, id, live); takes || err != nil {
		return held, "", err
	}
	if r.Wanted == nil {
		return toDelete, "", nil
	}
	by, err := r.Wanted(ctx, id)
	if by == "" || err != nil {
		return toDelete, "", err
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

func (r *Removal) delete(ctx context.Context, id inventory.ObjectID, kind schema.GroupVersionKind, live metav1.Object) error {
	propagation := metav1.DeletePropagationBackground
	if r.Foreground {
		propagation = metav1.DeletePropagationForeground
	}
	uid, version := live.GetUID(), live.GetResourceVersion()
	object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: id.Namespace, Name: id.Name}}
	object.SetGroupVersionKind(kind)
	return r.Client.Delete(ctx, object, client.Preconditions{UID: &uid, ResourceVersion: &version}, client.PropagationPolicy(propagation))
}
