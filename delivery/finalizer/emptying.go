package finalizer

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Emptying deletes from a namespace, before the namespace is deleted, what would hold its deletion: pods, which may take long to end, and
// objects with finalizers. The deployer's rights are deleted with the namespace, and after that nobody could do so.
type Emptying struct {
	// Client has the deployer's rights.
	Client    client.Client
	Namespace string
	// Kinds are the kinds of which objects may exist there.
	Kinds []schema.GroupResource
	// Kill deletes terminating pods without waiting for them.
	Kill bool
	// Force removes finalizers from objects that are being deleted, see TakeOff.
	Force bool
}

// Emptied is the result of an Emptying.
type Emptied struct {
	// Left are the objects that still exist.
	Left []Terminating
	// Killed are the pods that were deleted without waiting. Freed says which finalizers were removed from which objects.
	Killed, Freed []string
}

// page is how many objects are listed at once.
const page = 500

// Run deletes the objects that are not being deleted yet, and returns what is left. It does not delete claims: the caller has decided about
// them. Kinds that the deployer may not list are skipped.
func (e Emptying) Run(ctx context.Context) (Emptied, error) {
	var done Emptied
	for _, resource := range e.Kinds {
		kind, err := e.Client.RESTMapper().KindFor(resource.WithVersion(""))
		if meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return done, fmt.Errorf("finding the kind of %s: %w", resource, err)
		}
		if err := e.each(ctx, kind, func(o *metav1.PartialObjectMetadata) error { return e.remove(ctx, kind, o, &done) }); err != nil {
			return done, err
		}
	}
	return done, nil
}

// KillPods deletes terminating pods without waiting for them, and names them.
func (e Emptying) KillPods(ctx context.Context) ([]string, error) {
	var done Emptied
	err := e.each(ctx, podKind, func(o *metav1.PartialObjectMetadata) error {
		if o.DeletionTimestamp == nil {
			return nil
		}
		return e.kill(ctx, o, &done)
	})
	return done.Killed, err
}

// each calls f with every object of a kind. If the deployer may not list the kind, or the kind does not exist, there are none.
func (e Emptying) each(ctx context.Context, kind schema.GroupVersionKind, f func(*metav1.PartialObjectMetadata) error) error {
	next := ""
	for {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		err := e.Client.List(ctx, list, client.InNamespace(e.Namespace), client.Limit(page), client.Continue(next))
		switch {
		case apierrors.IsForbidden(err), apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err):
			return nil
		case err != nil:
			return fmt.Errorf("listing each %s in namespace %s: %w", kind.Kind, e.Namespace, err)
		}
		for i := range list.Items {
			if err := f(&list.Items[i]); err != nil {
				return err
			}
		}
		if next = list.Continue; next == "" {
			return nil
		}
	}
}

func (e Emptying) remove(ctx context.Context, kind schema.GroupVersionKind, o *metav1.PartialObjectMetadata, done *Emptied) error {
	leaving := o.DeletionTimestamp != nil
	switch {
	case kind != podKind && len(o.Finalizers) == 0, kind == claimKind && !leaving:
		return nil
	case !leaving:
		if err := e.delete(ctx, kind, o); err != nil {
			return err
		}
	case e.Force && len(o.Finalizers) > 0:
		taken, err := TakeOff(ctx, e.Client, kind, o)
		if err != nil && !apierrors.IsConflict(err) { // An object that changed meanwhile is handled by the next call.
			return err
		}
		if taken != "" {
			done.Freed = append(done.Freed, taken)
		}
	case e.Kill && kind == podKind && len(o.Finalizers) == 0:
		if err := e.kill(ctx, o, done); err != nil {
			return err
		}
	}
	done.Left = append(done.Left, leftOf(kind, o))
	return nil
}

// leftOf describes an object that still exists. Until is set only for a pod without finalizers, which the kubelet ends at that time.
func leftOf(kind schema.GroupVersionKind, o *metav1.PartialObjectMetadata) Terminating {
	left := Of(kind.Kind, o)
	if o.DeletionTimestamp != nil && len(o.Finalizers) == 0 && o.DeletionGracePeriodSeconds != nil {
		left.Until = o.DeletionTimestamp.Time
	}
	return left
}

func (e Emptying) delete(ctx context.Context, kind schema.GroupVersionKind, o *metav1.PartialObjectMetadata, options ...client.DeleteOption) error {
	uid := o.UID
	target := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name}}
	target.SetGroupVersionKind(kind)
	options = append(options, client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if err := e.Client.Delete(ctx, target, options...); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("deleting %s/%s: %w", kind.Kind, o.Name, err)
	}
	return nil
}

func (e Emptying) kill(ctx context.Context, pod *metav1.PartialObjectMetadata, done *Emptied) error {
	if err := e.delete(ctx, podKind, pod, client.GracePeriodSeconds(0)); err != nil {
		return err
	}
	done.Killed = append(done.Killed, pod.Name)
	return nil
}
