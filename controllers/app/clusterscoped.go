package app

import (
	"context"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/app/prune"
	"github.com/kubeop/kubeop/controllers/app/record"
	"github.com/kubeop/kubeop/delivery/inventory"
)

// pruneClusterScoped deletes the cluster-scoped objects that left the chart and that Helm's upgrade did not delete: objects that the
// project may no longer delete, and CustomResourceDefinitions, which wait for confirmation. It is the last step, so that no other step
// waits for these deletions.
func (r *releaser) pruneClusterScoped(ctx context.Context, s *scope) error {
	var stale []v1alpha1.InventoryEntry
	for _, e := range record.Outside(s.inventory.Entries, s.App.Namespace) {
		if e.Stale {
			stale = append(stale, e)
		}
	}
	if len(stale) == 0 {
		s.held = r.pruner.HoldNothing(s.App)
		return nil
	}
	removed, err := r.pruner.Prune(ctx, s.Subject, prune.Set{
		Revision: s.found.Revision, Stale: stale, Wanted: r.transfers.Search(s.Subject, "").Wanted,
		Left: "the chart", Kept: "are protected from deletion",
	})
	s.inventory, s.held = inventory.Join(inventory.Without(s.inventory.Entries, stale), removed.Left), r.pruner.Held(s.App)
	if m := s.release.memory; m.of(s.App) {
		m.entries = s.inventory.Entries
	}
	return err
}
