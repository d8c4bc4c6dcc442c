package app

import (
	"context"
	"time"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/apply"
	"github.com/kubeop/kubeop/delivery/inventory"
	"github.com/kubeop/kubeop/delivery/own"
)

// apply applies the objects and deletes what left the source. What is recorded grows before it shrinks, so that nothing
// that was applied is ever forgotten.
func (r *Reconciler) apply(ctx context.Context, s *scope) error {
	ctx, cancel := context.WithTimeout(ctx, s.app.Spec.Within())
	defer cancel()
	s.declared = true
	s.memory.delivers(aboutOf(s.app), s.revision, r.Clock.Now())
	if err := r.carryOver(ctx, s); err != nil {
		return err
	}
	recorded := s.inventory.Entries
	set := apply.Set{
		Client: s.client, Objects: s.objects, Recorded: recorded,
		Force: s.app.Spec.Force, TakeOwnership: s.app.Spec.TakeOwnership, Yields: r.yields(ctx, s),
		Before: func(ctx context.Context, entries []v1alpha1.InventoryEntry) error { return r.announce(ctx, s, entries) },
	}
	if err := r.driftSet(s, &set); err != nil {
		return err
	}
	result, err := r.Applier.Apply(ctx, set)
	inventory.RecordPolicies(result.Entries, s.objects)
	stale := inventory.Without(recorded, result.Entries)
	s.inventory = inventory.Join(result.Entries, stale)
	if len(result.Written) > 0 {
		s.unhealthySince, s.wrote = nil, true
		s.memory.writes(result, r.Clock.Now())
	}
	// Two apps that each want what the other has both have to let go first, and what goes gives the quota room.
	if err != nil && !apply.Only(err, apply.ErrContested, apply.ErrQuota) {
		return r.notApplied(s, err)
	}
	if result.Unseen {
		s.soon(patience)
	}
	pruned := r.prune(ctx, s, result.Entries, stale)
	if err != nil {
		return r.notApplied(s, err)
	}
	if pruned != nil {
		return pruned
	}
	s.applied = true
	return r.deviations(ctx, s, result)
}

func (r *Reconciler) notApplied(s *scope, err error) error {
	if apply.Only(err, apply.ErrPending) {
		return step.Wait(v1alpha1.ProgressingReason, 2*time.Second, "%w", err)
	}
	return step.Refused(v1alpha1.ApplyFailedReason, r.lowered(s, err), apply.ErrForeign)
}

func ownerLabels(o own.Owner) map[string]string {
	return map[string]string{v1alpha1.TenantLabel: o.Tenant, v1alpha1.ProjectLabel: o.Project, v1alpha1.AppLabel: o.App}
}
