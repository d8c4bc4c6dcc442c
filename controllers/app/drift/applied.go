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
)

// maxPreviews bounds how many objects one pass compares by dry-run.
const maxPreviews = 20

// Applied finds out how the objects of Apps differ that are applied, and not released by Helm.
type Applied struct {
	Applier *apply.Applier

	states subject.Memory[State]
}

// Get returns what is known of the drift of an App.
func (a *Applied) Get(app *v1alpha1.App) *State { return a.states.Get(app) }

// Forget drops what is known of an App.
func (a *Applied) Forget(app *v1alpha1.App) { a.states.Forget(app) }

// Prepare says in a set what is to become of drift: it is left where it is not to be corrected, or where that was done too often in a row.
func (a *Applied) Prepare(s *subject.Subject, writes *record.Writes, set *apply.Set) error {
	rules, err := differ.ReadRules(s.App.Spec.Drift.Ignore)
	if err != nil {
		return step.Stop(v1alpha1.RenderFailedReason, err)
	}
	now := s.Now()
	set.Ignore, set.Floors, set.Fresh = rules, writes.Recent(now), now.Sub(writes.At()) < step.Quiet
	set.Leave = s.App.Spec.DriftMode() != v1alpha1.DriftCorrect || a.Get(s.App).Rest(now) > 0
	return nil
}

// Compare reports what became of drift. What was left is compared with the source, and no state of it twice.
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

// object is what is known of an object that others changed.
type object struct {
	// state is that of the object, and of what the App says, in which it was compared; words say how it differed, "" for not.
	state, words string
	// unclear is why that could not be found out, tries how often in a row, and compared when it was last tried.
	unclear  string
	tries    int
	compared time.Time
}

// due reports whether to compare the object. What was refused is not compared again for a while, whatever changes: events may come all
// the time.
func (o object) due(state string, now time.Time) bool {
	if o.tries > 0 {
		return !now.Before(o.again())
	}
	return o.state != state
}

func (o object) again() time.Time { return o.compared.Add(backoff.Pause(o.tries)) }

// compare remembers how objects differ from the source, and compares some of which it is not known, those that waited longest first.
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

// compareOne finds out by a dry-run how an object differs from the source. Nothing is applied, so that the API server refuses it, for a quota or
// a webhook, is no failure of the App: it is reported, and tried again.
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

// gather brings together what is known of objects that others changed, and has the App reconciled when the rest is due.
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

// stateOf returns a key of an object's state and of the App's settings for drift.
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
