// Package record keeps what an App made from being forgotten: between a pass and the status that reports it, between two passes, and
// between two processes.
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

// Recorder knows the inventory of each App, also where its status does not report it yet. Of a Helm App the release knows it.
type Recorder struct {
	Journal *journal.Journal
	// Seal is that of the digests in the inventories.
	Seal digest.Seal

	unreported subject.Memory[unreported]
	writes     subject.Memory[Writes]
}

// unreported is the inventory that the last pass left and the status does not report, as a pass that only waits is quiet; nil for none.
type unreported struct {
	inventory *v1alpha1.Inventory
}

// Load returns the inventory with which a pass begins. With an error, the returned inventory is incomplete.
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

// Recorded returns what the App's status reports, and what an earlier process began to make and did not come to report.
func (r *Recorder) Recorded(ctx context.Context, app *v1alpha1.App) (v1alpha1.Inventory, error) {
	reported := v1alpha1.Inventory{Entries: fingerprint.Sealed(app.Status.Inventory.Entries, r.Seal)}
	begun, err := r.Journal.Of(ctx, app.UID)
	if more := inventory.Without(begun, reported.Entries); len(more) > 0 {
		reported = inventory.Join(reported.Entries, more)
	}
	return reported, err
}

// Announce records those of the entries that are new before their objects are made. Where the journal is full, the scope has to have recorded
// them: they are written into the status.
func (r *Recorder) Announce(ctx context.Context, app *v1alpha1.App, before, entries []v1alpha1.InventoryEntry) error {
	err := r.Journal.Record(ctx, app.UID, inventory.Without(entries, before))
	if errors.Is(err, journal.ErrFull) {
		return step.Checkpoint(ctx)
	}
	return err
}

// Keep has the next pass go on from the inventory of this one where the status does not report it.
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

// Drop forgets what the last pass left: the App is being removed, and its status reports what is left of it.
func (r *Recorder) Drop(app *v1alpha1.App) { r.unreported.Get(app).inventory = nil }

// Writes returns the versions in which an App's objects were last written.
func (r *Recorder) Writes(app *v1alpha1.App) *Writes { return r.writes.Get(app) }

// Forget drops all that is known of an App.
func (r *Recorder) Forget(app *v1alpha1.App) {
	r.writes.Forget(app)
	r.unreported.Forget(app)
	r.Journal.Forget(app.UID)
}
