package drift

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/app/record"
	"github.com/kubeop/kubeop/controllers/app/subject"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/apply"
	"github.com/kubeop/kubeop/delivery/backoff"
	"github.com/kubeop/kubeop/delivery/differ"
	"github.com/kubeop/kubeop/delivery/inventory"
	"github.com/kubeop/kubeop/delivery/mask"
	"github.com/kubeop/kubeop/delivery/render/workload"
)

// maxPreviews is how many objects one Reconcile compares with a dry-run.
const maxPreviews = 20

// Applied finds drift of the objects of Apps, except Helm Apps.
type Applied struct {
	Applier *apply.Applier

	states subject.Memory[State]
}

// Get returns the drift state of an App.
func (a *Applied) Get(app *v1alpha1.App) *State { return a.states.Get(app) }

// Forget drops the drift state of an App.
func (a *Applied) Forget(app *v1alpha1.App) { a.states.Forget(app) }

// Prepare sets in an apply.Set what an object keeps that exists, and how to handle drift. Drift is left alone if the App does not want corrections, or during the pause after too
// many corrections in a row.
func (a *Applied) Prepare(s *subject.Subject, writes *record.Writes, set *apply.Set) error {
	rules, err := differ.ReadRules(s.App.Spec.Drift.Ignore)
	if err != nil {
		return step.Stop(v1alpha1.RenderFailedReason, err)
	}
	now := s.Now()
	set.Keep = workload.KeepSecrets(s.App)
	set.Ignore, set.Floors, set.Fresh = rules, writes.Recent(now), now.Sub(writes.At()) < step.Quiet
	set.Leave = s.App.Spec.DriftMode() != v1alpha1.DriftCorrect || a.Get(s.App).Rest(now) > 0
	return nil
}

// Compare reports corrected drift. If the App only wants reports, it compares changed objects with the source, each state of them once.
func (a *Applied) Compare(ctx context.Context, s *subject.Subject, result apply.Result) (Report, error) {
	d := a.Get(s.App)
	known := d.objects
	d.objects, d.unclear, d.uncompared = nil, nil, 0
	switch mode := s.App.Spec.DriftMode(); {
	case mode == v1alpha1.DriftOff:
		return None(), nil
	case mode == v1alpha1.DriftWarn:
		if err := a.compare(ctx, s, known, result.Moved); err != nil {
			return Report{}, step.Fail(v1alpha1.ApplyFailedReason, err)
		}
	case len(result.Corrected) > 0:
		d.Corrected(inventory.Names(result.Corrected), s.Now())
	case len(result.Moved) > 0:
		d.found = []string{inventory.Names(entriesOf(result.Moved))}
		s.LookAgain(max(d.Rest(s.Now()), backoff.First))
	default:
		d.found = nil
	}
	return d.Report(s), nil
}

// object is the result of the last comparison of a changed object.
type object struct {
	// state identifies the state of the object, and the App's settings, at the comparison. words say how the object differed; "" if it did
	// not.
	state, words string
	// unclear is why the comparison failed, tries how often it failed in a row, and compared when it was last tried.
	unclear  string
	tries    int
	compared time.Time
}

// due reports whether to compare the object. A failed comparison is repeated only after a backoff, even if the object changes, because
// objects may change all the time.
func (o object) due(state string, now time.Time) bool {
	if o.tries > 0 {
		return !now.Before(o.again())
	}
	return o.state != state
}

func (o object) again() time.Time { return o.compared.Add(backoff.Pause(o.tries)) }

// compare keeps the known results for changed objects, and compares up to maxPreviews of the others, those that waited longest first.
func (a *Applied) compare(ctx context.Context, s *subject.Subject, known map[string]object, moved []apply.Deviation) error {
	d := a.Get(s.App)
	var due []apply.Deviation
	d.objects = map[string]object{}
	for _, m := range moved {
		before := known[m.Entry.ID]
		d.objects[m.Entry.ID] = before
		if before.due(stateOf(s.App, m), s.Now()) {
			due = append(due, m)
		}
	}
	slices.SortStableFunc(due, func(x, y apply.Deviation) int { return known[x.Entry.ID].compared.Compare(known[y.Entry.ID].compared) })
	for _, m := range due[:min(len(due), maxPreviews)] {
		now, err := a.compareOne(ctx, s, m)
		if err != nil {
			return err
		}
		d.objects[m.Entry.ID] = now
	}
	d.gather(s, moved)
	return nil
}

// compareOne compares an object with the source by a dry-run. If the API server refuses the dry-run, because of a quota or a webhook, the
// App does not fail: the refusal is reported, and the comparison is tried again.
func (a *Applied) compareOne(ctx context.Context, s *subject.Subject, m apply.Deviation) (object, error) {
	now := object{state: stateOf(s.App, m), compared: s.Now()}
	live, corrected, err := a.Applier.Preview(ctx, s.Client, m)
	name := m.Manifest.GetKind() + "/" + m.Manifest.GetName()
	switch {
	case errors.Is(err, context.Canceled): // The operator is stopping.
		return now, err
	case err != nil:
		now.unclear, now.tries = s.Quote(err.Error()), a.Get(s.App).objects[m.Entry.ID].tries+1
	case live == nil:
		now.words = Describe(name, true, nil, "")
	default:
		if fields := differ.Compare(corrected, live, mask.Of(s.Sensitive())); len(fields) > 0 {
			now.words = Describe(name, false, fields, "the source")
		}
	}
	return now, nil
}

// gather collects the results for all changed objects, and schedules a Reconcile for those that are still to be compared.
func (d *State) gather(s *subject.Subject, moved []apply.Deviation) {
	d.found = nil
	for _, m := range moved {
		switch o := d.objects[m.Entry.ID]; {
		case o.tries > 0:
			d.unclear = append(d.unclear, o.unclear)
			s.LookAgain(max(o.again().Sub(s.Now()), step.Quiet))
		case o.due(stateOf(s.App, m), s.Now()):
			d.uncompared++
			s.LookAgain(step.Quiet)
		case o.words != "":
			d.found = append(d.found, o.words)
		}
	}
}

// stateOf identifies the state of an object and the App's settings for drift.
func stateOf(app *v1alpha1.App, m apply.Deviation) string {
	return fmt.Sprintf("%d %s", app.Generation, m.Entry.Digest)
}

func entriesOf(deviations []apply.Deviation) []v1alpha1.InventoryEntry {
	var entries []v1alpha1.InventoryEntry
	for _, d := range deviations {
		entries = append(entries, d.Entry)
	}
	return entries
}
