package app

import (
	"context"
	"fmt"
	"time"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/apply"
	"github.com/kubeop/kubeop/delivery/own"
)

// apply applies the objects and deletes what left the source. What is recorded grows before it shrinks, so that nothing
// that was applied is ever forgotten.
func (r *Reconciler) apply(ctx context.Context, s *scope) error {
	ctx, cancel := context.WithTimeout(ctx, s.app.Spec.Within())
	defer cancel()
	recorded := s.inventory.Entries
	result, err := r.Applier.Apply(ctx, apply.Set{
		Client: s.client, Objects: s.objects, Recorded: recorded,
		Before: func(ctx context.Context, entries []v1alpha1.InventoryEntry) error {
			s.inventory = v1alpha1.Inventory{Entries: entries}
			return step.Checkpoint(ctx)
		},
	})
	stale := apply.Stale(recorded, result.Entries)
	s.inventory = apply.Inventory(result.Entries, stale)
	if err != nil {
		return step.Refused(v1alpha1.ApplyFailedReason, err)
	}
	if len(result.Written) > 0 {
		s.unhealthySince = nil
	}
	if s.app.Spec.Prunes() {
		left, err := apply.Prune(ctx, s.client, stale, ownerLabels(s.owner))
		s.inventory = apply.Inventory(result.Entries, left)
		if err != nil {
			return step.Fail(v1alpha1.PruneFailedReason, fmt.Errorf("deleting what left the source: %w", err))
		}
		if len(left) > 0 {
			return step.Wait(v1alpha1.ProgressingReason, time.Second, "waits for %s to be gone", apply.Names(left))
		}
	}
	s.applied = true
	return nil
}

func ownerLabels(o own.Owner) map[string]string {
	return map[string]string{v1alpha1.TenantLabel: o.Tenant, v1alpha1.ProjectLabel: o.Project, v1alpha1.AppLabel: o.App}
}
