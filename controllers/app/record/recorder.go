// Package record keeps the inventory of Apps: from a write until the status reports it, between Reconciles, and after a crash.
package record

import (
	"context"
	"errors"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/app/subject"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/digest"
	"github.com/kubeop/kubeop/delivery/fingerprint"
	"github.com/kubeop/kubeop/delivery/inventory"
	"github.com/kubeop/kubeop/delivery/journal"
)

// Recorder holds the inventory of each App, including what the App's status does not report yet. The objects of a Helm App are in the
// release's records.
type Recorder struct {
	Journal *journal.Journal
	// Seal is for the digests in the inventories.
	Seal digest.Seal

	unreported subject.Memory[unreported]
	writes     subject.Memory[Writes]
}

// unreported is the inventory at the end of the last Reconcile, if that wrote no status because it only waits; nil for none.
type unreported struct {
	inventory *v1alpha1.Inventory
}

// Load returns the inventory at the start of a Reconcile. With an error, the returned inventory is incomplete.
func (r *Recorder) Load(ctx context.Context, app *v1alpha1.App) (v1alpha1.Inventory, error) {
	left := r.unreported.Get(app).inventory
	switch {
	case left != nil:
		return *left, nil
	case app.Spec.Helm != nil:
		return app.Status.Inventory, nil
	}
	return r.Recorded(ctx, app)
}

// Recorded returns the inventory in the App's status and in the journal: objects that an earlier process may have created without reporting
// them.
func (r *Recorder) Recorded(ctx context.Context, app *v1alpha1.App) (v1alpha1.Inventory, error) {
	reported := v1alpha1.Inventory{Entries: fingerprint.Sealed(app.Status.Inventory.Entries, r.Seal)}
	begun, err := r.Journal.Of(ctx, app.UID)
	if more := inventory.Without(begun, reported.Entries); len(more) > 0 {
		reported = inventory.Join(reported.Entries, more)
	}
	return reported, err
}

// Announce records new objects in the journal before they are created. If the journal is full, it writes the status instead, to which the
// scope must already have added the objects.
func (r *Recorder) Announce(ctx context.Context, app *v1alpha1.App, before, entries []v1alpha1.InventoryEntry) error {
	err := r.Journal.Record(ctx, app.UID, inventory.Without(entries, before))
	if errors.Is(err, journal.ErrFull) {
		return step.Checkpoint(ctx)
	}
	return err
}

// Keep keeps the inventory for the next Reconcile if the status does not report it.
func (r *Recorder) Keep(app *v1alpha1.App, inventory v1alpha1.Inventory, reported bool) {
	left := r.unreported.Get(app)
	left.inventory = nil
	switch {
	case app.Spec.Helm != nil || app.Spec.Suspend:
	case reported:
		r.Journal.Forget(app.UID)
	default:
		left.inventory = &inventory
	}
}

// Drop drops the kept inventory: the App is being removed, and from then on its status lists what is left.
func (r *Recorder) Drop(app *v1alpha1.App) { r.unreported.Get(app).inventory = nil }

// Writes returns the resourceVersions in which the App's objects were last written.
func (r *Recorder) Writes(app *v1alpha1.App) *Writes { return r.writes.Get(app) }

// Forget drops the state of an App.
func (r *Recorder) Forget(app *v1alpha1.App) {
	r.writes.Forget(app)
	r.unreported.Forget(app)
	r.Journal.Forget(app.UID)
}
