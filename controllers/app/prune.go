package app

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/apply"
	"github.com/kubeop/kubeop/delivery/inventory"
)

// prune deletes what left the source, but for what is protected: that waits for somebody to confirm it.
func (r *Reconciler) prune(ctx context.Context, s *scope, made, stale []v1alpha1.InventoryEntry) error {
	s.hold(nil, false)
	if !s.app.Spec.Prunes() || len(stale) == 0 {
		return nil
	}
	retain, err := r.retains(ctx, s)
	if err != nil {
		return err
	}
	removed, err := r.removeConfirmed(ctx, s, apply.Removal{
		Client: r.sees(s), Entries: stale, Owner: ownerLabels(s.owner), Guarded: true,
		Retain: retain, Dependents: s.dependents(), Wanted: r.wanted(s),
	})
	s.inventory = inventory.Join(made, removed.Left)
	r.tellKept(ctx, s.app, removed.Kept, "are annotated "+v1alpha1.PruneAnnotation+": "+v1alpha1.PruneDisabled)
	if err != nil {
		return step.Fail(v1alpha1.PruneFailedReason, fmt.Errorf("deleting what left the source: %w", forbidden(err, "")))
	}
	if err := r.leaving(s, v1alpha1.ProgressingReason, removed.Leaving); err != nil {
		return err
	}
	r.handOver(s, removed.Wanted)
	return nil
}

// handOver waits for other apps to say or take what they have, and looks again in between. That is no reason not to be
// ready: the others may depend on this app.
func (r *Reconciler) handOver(s *scope, objects []string) {
	if len(objects) == 0 {
		r.claims.await(s.app.Namespace, s.app.Name, false)
		return
	}
	waited := r.Clock.Now().Sub(s.memory.staleSince)
	s.ceded = len(objects)
	s.soon(nextWord(waited, s.hears))
	if waited >= patience {
		s.waiting = objects
	}
}

// leaving waits for objects that are being deleted. The watch wakes the app when one of them is gone.
func (r *Reconciler) leaving(s *scope, reason string, objects []string) error {
	if len(objects) == 0 {
		return nil
	}
	return step.Wait(reason, r.nextLookAt(s, "gone: "+objects[0]), "waits for %s to be gone", describe(objects))
}

// nextLookAt is when to look again at what is waited for.
func (r *Reconciler) nextLookAt(s *scope, what string) time.Duration {
	now := r.Clock.Now()
	return nextLook(now.Sub(s.memory.began(what, now)))
}

// tellKept tells once that objects were let go of.
func (r *Reconciler) tellKept(ctx context.Context, app *v1alpha1.App, kept []v1alpha1.InventoryEntry, why string) {
	if len(kept) == 0 {
		return
	}
	message := fmt.Sprintf("left %s, which %s: kubeop no longer looks after them", inventory.Names(kept), why)
	r.Steps.Events.Eventf(app, nil, corev1.EventTypeNormal, v1alpha1.KeptReason, "Prune", "%s", message)
	ctrl.LoggerFrom(ctx).Info("Objects are kept", "objects", inventory.Names(kept), "why", why)
}

// maxHeld bounds how many objects the status names.
const maxHeld = 20

// retained ends what is said of a claim that no confirmation takes.
const retained = ", and claimDeletionPolicy is Retain: nothing deletes it before that is Delete"

// inHold says of objects why they are not deleted.
func inHold(entries []v1alpha1.InventoryEntry, retain bool) []string {
	ending := ""
	if retain {
		ending = retained
	}
	var out []string
	for _, e := range entries {
		id, err := inventory.ParseObjectID(e.ID)
		if err != nil {
			continue
		}
		why := "is annotated " + v1alpha1.PruneAnnotation + ": " + v1alpha1.PruneConfirm
		switch {
		case id.Kind == "PersistentVolumeClaim":
			why = "holds data" + ending
		case id.Kind == "Namespace" || id.Kind == "CustomResourceDefinition":
			why = "takes everything of it along"
		case e.Policy == v1alpha1.PolicyClaims:
			why = "owns claims that hold data and would go with it" + ending
		}
		out = append(out, fmt.Sprintf("%s %s: %s", id.Kind, id.Name, why))
	}
	return out
}
