package garbage

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
	"github.com/kubeop/kubeop/delivery/metadata"
)

// maxTries limits how often the deletion of an object is retried because someone else wrote the object meanwhile.
const maxTries = 5

// remove deletes one object and returns the outcome. If the API server no longer serves the recorded version, the object may still exist,
// so remove tries a version that is served.
func (r *Removal) remove(ctx context.Context, id inventory.ObjectID, e *v1alpha1.InventoryEntry) (result, error) {
	became, err := r.removeAs(ctx, id, e)
	if !metadata.Unserved(err) {
		return became, err
	}
	meta.MaybeResetRESTMapper(r.Client.RESTMapper())
	if became, err = r.removeAs(ctx, id, e); metadata.Unserved(err) {
		err = fmt.Errorf("the API server does not serve %s at present: %w", id.Versioned(e.Version).GroupVersion(), err)
	}
	return became, err
}

// removeAs deletes one object in the version in which it seems to be served.
func (r *Removal) removeAs(ctx context.Context, id inventory.ObjectID, e *v1alpha1.InventoryEntry) (result, error) {
	kind, key := metadata.ServedAs(r.Client, id.Versioned(e.Version)), client.ObjectKey{Namespace: id.Namespace, Name: id.Name}
	live, known, err := r.Live(ctx, kind, key)
	if unlisted(err) {
		live, known, err = nil, false, nil
	}
	blind := !known || id.IsSecret() // The watch has no labels of Secrets.
	switch {
	case err != nil:
		return result{outcome: failed}, err
	case live != nil && !blind:
	case r.holds(e) && (!known || live != nil):
		return result{outcome: held}, nil
	default: // The object may have been created a moment ago.
		live, err = metadata.Read(ctx, r.Client, kind, key)
	}
	if live == nil || err != nil {
		return result{outcome: gone}, err
	}
	became, err := r.settle(ctx, kind, *e, live)
	switch {
	case became.outcome != held:
	case blind: // Record the answer, so that the next pass needs no request.
		e.Policy = v1alpha1.PolicyConfirm
	case MayOwnClaims(kind.GroupKind()) && max(inventory.KindPolicy(id), inventory.AnnotatedPolicy(live)) == "":
		e.Policy = v1alpha1.PolicyClaims
	}
	return became, err
}

// settle decides about an object and acts on the decision. It deletes exactly the state that it decided about. If the object changed in
// between, for example because another app took it over, it decides again.
func (r *Removal) settle(ctx context.Context, kind schema.GroupVersionKind, e v1alpha1.InventoryEntry, live metav1.Object) (result, error) {
	id := inventory.ObjectID{Namespace: live.GetNamespace(), Name: live.GetName(), Group: kind.Group, Kind: kind.Kind}
	for range maxTries {
		became, err := r.decide(ctx, id, e, live)
		if became.outcome != toDelete || err != nil {
			return became, err
		}
		became, live, err = r.execute(ctx, id, kind, live)
		if became.outcome != toDelete || err != nil {
			return became, err
		}
	}
	return result{outcome: failed}, metadata.Changing("deleted")
}

// unlisted reports whether a watch cannot see a kind because the API server does not list it. Each object can still be read, so that it can
// be deleted.
func unlisted(err error) bool {
	var why interface{ Unlisted() bool }
	return errors.As(err, &why) && why.Unlisted()
}

// lingering are kinds whose objects stay for some time after their deletion without a finalizer.
var lingering = map[schema.GroupKind]bool{
	{Kind: "Pod"}: true, {Kind: "Namespace"}: true, {Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: true,
}

// execute deletes an object in the state that was decided about. If the object changed in between, it returns the new state and toDelete.
func (r *Removal) execute(ctx context.Context, id inventory.ObjectID, kind schema.GroupVersionKind, was metav1.Object) (result, metav1.Object, error) {
	err := r.delete(ctx, id, kind, was)
	switch {
	case metadata.Missing(err):
		return result{outcome: gone}, nil, nil
	case err != nil && !apierrors.IsConflict(err):
		return result{outcome: failed}, nil, err
	case err == nil && len(was.GetFinalizers()) > 0:
		return terminating(id, was), nil, nil
	case err == nil && !r.Foreground && !lingering[kind.GroupKind()]:
		return result{outcome: gone}, nil, nil // The deleted state had no finalizers, so nothing kept the object.
	}
	deleted := err == nil
	live, err := metadata.Read(ctx, r.Client, kind, client.ObjectKey{Namespace: id.Namespace, Name: id.Name})
	switch {
	case live == nil || err != nil:
		return result{outcome: gone}, nil, err
	case deleted && live.GetUID() == was.GetUID():
		return terminating(id, live), nil, nil
	}
	return result{outcome: toDelete}, live, nil
}

// holds reports whether the record says that an object waits for confirmation. Its kind alone does not: annotations of the object may say that
// it is never deleted.
func (r *Removal) holds(e *v1alpha1.InventoryEntry) bool {
	return r.Guarded && !r.Confirmed && (e.Policy == v1alpha1.PolicyConfirm || e.Policy == v1alpha1.PolicyClaims)
}

// decide says what to do with an object in its present state.
func (r *Removal) decide(ctx context.Context, id inventory.ObjectID, e v1alpha1.InventoryEntry, live metav1.Object) (result, error) {
	policy := inventory.PolicyOf(id, e, live)
	switch {
	case !r.owns(live):
		return result{outcome: gone}, nil
	case live.GetDeletionTimestamp() != nil:
		return terminating(id, live), nil
	case r.Guarded && policy == v1alpha1.PolicyDisabled:
		return result{outcome: kept}, nil
	case r.Guarded && policy == v1alpha1.PolicyConfirm && !r.Confirmed:
		return result{outcome: held}, nil
	}
	if takes, err := r.takesData(ctx, id, live); takes || err != nil {
		return result{outcome: held}, err
	}
	if r.Wanted == nil {
		return result{outcome: toDelete}, nil
	}
	by, err := r.Wanted(ctx, id)
	if by == "" || err != nil {
		return result{outcome: toDelete}, err
	}
	return result{outcome: wanted, wanted: fmt.Sprintf("%s/%s for %s", id.Kind, id.Name, by)}, nil
}

func terminating(id inventory.ObjectID, o metav1.Object) result {
	return result{outcome: leaving, terminating: finalizer.Of(id.Kind, o)}
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
