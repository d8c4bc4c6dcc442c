// Package prune deletes the objects that an App no longer delivers (garbage collection). Protected objects wait until a person confirms
// their deletion, and claims under the policy Retain stay even then.
package prune

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/app/subject"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/command"
	"github.com/kubeop/kubeop/delivery/finalizer"
	"github.com/kubeop/kubeop/delivery/garbage"
	"github.com/kubeop/kubeop/delivery/inventory"
	"github.com/kubeop/kubeop/delivery/metadata"
)

// Pruner deletes objects of Apps.
type Pruner struct {
	Client client.Client
	// Direct reads as the operator, without the cache.
	Direct client.Reader
	Live   metadata.Watch
	Events events.EventRecorder

	held subject.Memory[Held]
}

// Set is the set of objects that left the source or the chart of an App.
type Set struct {
	// Revision is the revision of the source. A confirmation is valid for one revision and one list of objects.
	Revision string
	Stale    []v1alpha1.InventoryEntry
	// Wanted returns which other App takes an object over; "" for none.
	Wanted func(context.Context, inventory.ObjectID) (string, error)
	// Left names what the objects left, such as "the source". Kept says why some objects are kept without an owner.
	Left, Kept string
	// Claims: objects of the set may be claims or own claims.
	Claims bool
}

// Prune deletes a set. Protected objects are held, and deleted only after a person confirmed exactly this list at this revision. An error
// of package step means that some objects are still being deleted; Removed is valid then, too.
func (p *Pruner) Prune(ctx context.Context, s *subject.Subject, set Set) (garbage.Removed, error) {
	p.HoldNothing(s.App)
	removal := garbage.Removal{
		Live:   p.Live,
		Client: p.Sees(s), Entries: set.Stale, Owner: s.Labels(), Guarded: true, Wanted: set.Wanted,
	}
	if set.Claims {
		retain, err := p.Retains(ctx, s)
		if err != nil {
			return garbage.Removed{Left: set.Stale}, err
		}
		removal.Retain, removal.Dependents = retain, Dependents(s)
	}
	removed, err := p.removeConfirmed(ctx, s, set.Revision, removal)
	p.ReportKept(ctx, s.App, removed.Kept, set.Kept)
	if err != nil {
		return removed, step.Fail(v1alpha1.PruneFailedReason, fmt.Errorf("deleting what left %s: %w", set.Left, Forbidden(err, "")))
	}
	return removed, AwaitGone(s, v1alpha1.ProgressingReason, removed.Leaving)
}

// removeConfirmed deletes the unprotected objects, and then the confirmed ones. It removes the confirmation from the App before it deletes,
// so that one confirmation never causes a second deletion.
func (p *Pruner) removeConfirmed(ctx context.Context, s *subject.Subject, revision string, removal garbage.Removal) (garbage.Removed, error) {
	removed, err := garbage.Remove(ctx, removal)
	held := p.hold(s.App, revision, removed.Held, removal.Retain)
	if err != nil || held.Token == "" || s.App.Annotations[v1alpha1.ConfirmAnnotation] != held.Token {
		return removed, err
	}
	if err := step.Withdraw(ctx, p.Client, s.App, v1alpha1.ConfirmAnnotation); err != nil {
		return removed, err
	}
	removal.Entries, removal.Confirmed = removed.Held, true
	listed, err := garbage.Remove(ctx, removal)
	p.hold(s.App, revision, listed.Held, removal.Retain)
	removed.Left = append(inventory.Without(removed.Left, removed.Held), listed.Left...)
	removed.Held = listed.Held
	removed.Leaving = append(removed.Leaving, listed.Leaving...)
	removed.Wanted = append(removed.Wanted, listed.Wanted...)
	removed.Kept = append(removed.Kept, listed.Kept...)
	return removed, err
}

// Forget drops the state of an App.
func (p *Pruner) Forget(app *v1alpha1.App) { p.held.Forget(app) }

// AwaitGone waits until the objects that are being deleted are gone. The watch wakes the App when one of them is gone.
func AwaitGone(s *subject.Subject, reason string, objects []finalizer.Terminating) error {
	if len(objects) == 0 {
		return nil
	}
	return step.Wait(reason, step.NextLook(s.Waited("gone: "+objects[0].String())), "waits for %s to be gone", step.Few(objects))
}

// ReportKept sends one event about objects that are left in the cluster.
func (p *Pruner) ReportKept(ctx context.Context, app *v1alpha1.App, kept []v1alpha1.InventoryEntry, why string) {
	if len(kept) == 0 {
		return
	}
	message := fmt.Sprintf("left %s, which %s: kubeop no longer looks after them", inventory.Names(kept), why)
	p.Events.Eventf(app, nil, corev1.EventTypeNormal, v1alpha1.KeptReason, "Prune", "%s", message)
	ctrl.LoggerFrom(ctx).Info("Objects are kept", "objects", inventory.Names(kept), "why", why)
}

// Forbidden adds to an error about objects that the deployer may not delete who may do so and the command, for the first of them. further is
// one more solution.
func Forbidden(err error, further string) error {
	return overruled(err, command.Delete, ", or let the project do so: what is cluster-scoped by "+command.OfTenant("spec.clusterKinds")+further)
}

// FinalizersForbidden adds to an error about objects whose finalizers the deployer may not remove who may do so and the command, for the
// first of them.
func FinalizersForbidden(err error) error { return overruled(err, command.TakeOffFinalizers, "") }

// overruled adds to an error about forbidden acts the sentence by which administrators do it themselves.
func overruled(err error, sentence func(command.Who, string, metav1.Object) string, further string) error {
	for _, one := range inventory.Split(err) {
		about := new(inventory.ObjectError)
		if apierrors.IsForbidden(one) && errors.As(one, &about) {
			object := &metav1.ObjectMeta{Namespace: about.ID.Namespace, Name: about.ID.Name}
			return fmt.Errorf("%w; %s%s", err, sentence(command.Administrator, command.Resource(about.ID.GroupKind()), object), further)
		}
	}
	return err
}

// Sees returns the deployer's client, extended: cluster-scoped objects that the deployer may not read are read as the operator. So kubeop
// notices that such an object is gone or belongs to another owner, and forgets it.
func (p *Pruner) Sees(s *subject.Subject) client.Client { return seeing{s.Client, p.Direct} }

type seeing struct {
	client.Client
	operator client.Reader
}

// Get implements client.Reader.
func (c seeing) Get(ctx context.Context, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	err := c.Client.Get(ctx, key, into, opts...)
	if key.Namespace != "" || !apierrors.IsForbidden(err) {
		return err
	}
	if seen := c.operator.Get(ctx, key, into, opts...); !apierrors.IsForbidden(seen) {
		return seen
	}
	return err
}
