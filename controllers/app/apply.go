package app

import (
	"context"
	"time"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/app/drift"
	"github.com/kubeop/kubeop/controllers/app/handover"
	"github.com/kubeop/kubeop/controllers/app/prune"
	"github.com/kubeop/kubeop/controllers/app/record"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/apply"
	"github.com/kubeop/kubeop/delivery/inventory"
)

// applier applies the objects of Apps, except Helm Apps.
type applier struct {
	engine    *apply.Applier
	inventory *record.Recorder
	transfers *handover.Transfers
	volumes   *handover.Volumes
	pruner    *prune.Pruner
	drift     *drift.Applied
	admitter  *admitter
}

// apply applies the objects and deletes what left the source. New objects are recorded in the inventory before they are written, and
// deleted ones are removed from it afterwards, so that no applied object is ever missing there.
func (a *applier) apply(ctx context.Context, s *scope) error {
	ctx, cancel := context.WithTimeout(ctx, s.App.Spec.Within())
	defer cancel()
	s.outcome.declared = true
	a.transfers.Begin(s.Subject, s.found.Revision)
	empty, err := a.volumes.CarryOver(ctx, s.Subject, s.inventory.Entries)
	if err != nil {
		return err
	}
	s.volumes.Found(empty.Why, empty.Claims)
	recorded := s.inventory.Entries
	set := apply.Set{
		Client: s.Client, Objects: s.objects, Recorded: recorded,
		Force: s.App.Spec.Force, TakeOwnership: s.App.Spec.TakeOwnership, Yields: a.transfers.Yields(ctx, s.Subject),
		Before: func(ctx context.Context, entries []v1alpha1.InventoryEntry) error {
			before := s.inventory.Entries
			s.inventory = v1alpha1.Inventory{Entries: entries}
			return a.inventory.Announce(ctx, s.App, before, entries)
		},
	}
	if err := a.drift.Prepare(s.Subject, s.writes, &set); err != nil {
		return err
	}
	result, err := a.engine.Apply(ctx, set)
	inventory.RecordPolicies(result.Entries, s.objects)
	stale := inventory.Without(recorded, result.Entries)
	s.inventory = inventory.Join(result.Entries, stale)
	if len(result.Written) > 0 {
		s.unhealthySince, s.outcome.wrote = nil, true
		s.writes.Add(result.Entries, result.Written, s.Now())
	}
	if err != nil && !apply.Only(err, apply.ErrQuota) { // Deleted objects free quota.
		a.transfers.AwaitOwners(s.Subject, err)
		return a.notApplied(s, err)
	}
	if result.Unseen {
		s.LookAgain(step.Quiet)
	}
	pruned := a.prune(ctx, s, result.Entries, stale)
	switch {
	case err != nil:
		return a.notApplied(s, err)
	case pruned != nil:
		return pruned
	}
	s.outcome.applied = true
	s.drift, err = a.drift.Compare(ctx, s.Subject, result)
	return err
}

func (a *applier) notApplied(s *scope, err error) error {
	if apply.Only(err, apply.ErrPending) {
		return step.Wait(v1alpha1.ProgressingReason, 2*time.Second, "%w", err)
	}
	return step.Refused(v1alpha1.ApplyFailedReason, a.admitter.explained(s, err), apply.ErrForeign)
}

// prune deletes the objects that left the source, except protected objects and those that other Apps take over.
func (a *applier) prune(ctx context.Context, s *scope, made, stale []v1alpha1.InventoryEntry) error {
	if !s.App.Spec.Prunes() || len(stale) == 0 {
		s.held = a.pruner.HoldNothing(s.App)
		return nil
	}
	search := a.transfers.Search(s.Subject, s.found.Files.Revision)
	removed, err := a.pruner.Prune(ctx, s.Subject, prune.Set{
		Revision: s.found.Revision, Stale: stale, Wanted: search.Wanted, Claims: true,
		Left: "the source", Kept: "are annotated " + v1alpha1.PruneAnnotation + ": " + v1alpha1.PruneDisabled,
	})
	s.inventory, s.held = inventory.Join(made, removed.Left), a.pruner.Held(s.App)
	if err != nil {
		return err
	}
	s.outcome.ceded = a.transfers.Cede(s.Subject, removed.Wanted, search)
	return nil
}

// declare records for the sibling Apps which objects this App declares.
func (a *applier) declare(s *scope) {
	a.transfers.Declare(handover.Pass{
		App: s.App, Objects: s.objects, Rendered: s.outcome.declared, SourceRevision: s.found.Files.Revision,
		Recorded: s.inventory.Entries, Broken: s.outcome.broken, InLine: s.found.InLine, Wrote: s.outcome.wrote,
	})
}

// Forget drops the state of an App.
func (a *applier) Forget(app *v1alpha1.App) {
	a.transfers.Forget(app)
	a.volumes.Forget(app)
	a.pruner.Forget(app)
	a.drift.Forget(app)
}
