// Package history records what was delivered of an App, when, by whom and how it ended: status.deliveries.
package history

import (
	"slices"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/app/subject"
	"github.com/kubeop/kubeop/controllers/step"
)

// kept is how many deliveries the status has.
const kept = 10

// Keeper keeps the deliveries of Apps between Reconciles. The zero value is empty.
type Keeper struct {
	memory subject.Memory[memory]
}

// memory is what the status was last written with. The cache may still show an older status, from which a delivery would be recorded
// a second time.
type memory struct {
	written []v1alpha1.DeliveryRecord
}

// Forget drops the state of an App.
func (k *Keeper) Forget(app *v1alpha1.App) { k.memory.Forget(app) }

// Begin returns the deliveries for one Reconcile.
func (k *Keeper) Begin(app *v1alpha1.App) *Deliveries {
	d := &Deliveries{memory: k.memory.Get(app), recorded: app.Status.Deliveries}
	if d.memory.written != nil {
		d.recorded = d.memory.written
	}
	return d
}

// Deliveries are those of one App in one Reconcile.
type Deliveries struct {
	memory   *memory
	recorded []v1alpha1.DeliveryRecord
	// failed is the reason of the first step that failed.
	failed string
}

// Source is what is delivered.
type Source struct {
	// Revision is "" while it is not known.
	Revision string
	// Author of the commit of the source, if it has one.
	Author string
	// Image that a policy chose, and Release is the newest revision of a Helm release; 0 for none.
	Image   string
	Release int
}

// Ended notes how a step of the Reconcile ended.
func (d *Deliveries) Ended(err error) {
	if reason, failed := step.Failure(err); failed && d.failed == "" {
		d.failed = reason
	}
}

// Record writes the deliveries into the status. done: every step succeeded.
func (d *Deliveries) Record(s *subject.Subject, source Source, done bool) {
	if now := d.present(s.App, source, s.Now()); now != nil {
		d.recorded = d.with(*now, done && d.failed == "", s.Now())
	}
	s.App.Status.Deliveries = d.recorded
}

// Written remembers the deliveries that the status was written with.
func (d *Deliveries) Written() { d.memory.written = d.recorded }

// present returns the delivery that is under way. It returns nil if the source is not known, or if the newest recorded delivery is the same
// and has succeeded.
func (d *Deliveries) present(app *v1alpha1.App, source Source, now time.Time) *v1alpha1.DeliveryRecord {
	if source.Revision == "" || len(d.recorded) == 0 && wasDelivered(app, source.Revision) {
		return nil
	}
	began := metav1.NewTime(now.Truncate(time.Second))
	is := v1alpha1.DeliveryRecord{
		Revision: source.Revision, Generation: app.Generation, Commit: v1alpha1.CommitOf(source.Revision), Author: source.Author,
		Image: source.Image, Release: source.Release, StartedAt: began, Result: v1alpha1.DeliveryProgressing,
	}
	if declared := app.Annotations[v1alpha1.RevisionAnnotation]; is.Commit == "" || source.Revision == declared {
		is.Commit, is.Author = v1alpha1.CommitOf(declared), app.Annotations[v1alpha1.AuthorAnnotation]
	}
	if len(d.recorded) == 0 || !same(&d.recorded[0], &is) {
		return &is
	}
	last := d.recorded[0]
	if last.Result == v1alpha1.DeliverySucceeded {
		if last.Release >= is.Release {
			return nil
		}
		return &is // The values changed outside of the App.
	}
	last.Release = is.Release
	return &last
}

// wasDelivered reports whether an App without recorded deliveries was delivered before kubeop recorded any.
func wasDelivered(app *v1alpha1.App, revision string) bool {
	return app.Status.LastAppliedRevision == revision && app.Status.ObservedGeneration == app.Generation && conditions.IsReady(app)
}

// same reports whether two deliveries are of the same input.
func same(a, b *v1alpha1.DeliveryRecord) bool {
	return a.Revision == b.Revision && a.Generation == b.Generation && a.Commit == b.Commit && a.Image == b.Image
}

// with returns the recorded deliveries with the present one, as it ended now or goes on.
func (d *Deliveries) with(is v1alpha1.DeliveryRecord, succeeded bool, now time.Time) []v1alpha1.DeliveryRecord {
	earlier := d.recorded
	if len(earlier) > 0 && same(&earlier[0], &is) && earlier[0].Result != v1alpha1.DeliverySucceeded {
		earlier = earlier[1:]
	}
	switch {
	case succeeded:
		is.Result, is.Reason = v1alpha1.DeliverySucceeded, ""
		finish(&is, now)
	case d.failed != "":
		if is.Result != v1alpha1.DeliveryFailed {
			finish(&is, now)
		}
		is.Result, is.Reason = v1alpha1.DeliveryFailed, d.failed
	}
	all := slices.Concat([]v1alpha1.DeliveryRecord{is}, earlier)
	return all[:min(len(all), kept)]
}

func finish(d *v1alpha1.DeliveryRecord, now time.Time) {
	ended := metav1.NewTime(now.Truncate(time.Second))
	d.FinishedAt, d.Duration = &ended, &metav1.Duration{Duration: max(0, ended.Sub(d.StartedAt.Time))}
}
