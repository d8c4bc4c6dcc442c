package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/apply"
	"github.com/kubeop/kubeop/delivery/backoff"
	"github.com/kubeop/kubeop/delivery/differ"
	"github.com/kubeop/kubeop/delivery/inventory"
	"github.com/kubeop/kubeop/delivery/mask"
)

// driftSet says in a set what is to become of drift: it is left as it is where it is not to be put back, or where that was
// done too often in a row.
func (r *Reconciler) driftSet(s *scope, set *apply.Set) error {
	rules, err := differ.ReadRules(s.app.Spec.Drift.Ignore)
	if err != nil {
		return step.Stop(v1alpha1.RenderFailedReason, err)
	}
	now := r.Clock.Now()
	set.Ignore, set.Floors, set.Fresh = rules, s.memory.recent(now), now.Sub(s.memory.written) < patience
	set.Leave = s.app.Spec.DriftMode() != v1alpha1.DriftCorrect || r.quarrel(s.memory) > 0
	return nil
}

// deviations tells what became of drift in an app that is not Helm's. What was left is compared with the source, and no
// state of it twice.
func (r *Reconciler) deviations(ctx context.Context, s *scope, result apply.Result) error {
	mode, m := s.app.Spec.DriftMode(), s.memory
	known := m.deviating
	m.deviating, m.unclear, m.uncompared = nil, nil, 0
	switch {
	case mode == v1alpha1.DriftOff:
		s.helm.notes = append(s.helm.notes, step.Note{Condition: v1alpha1.DriftedCondition})
		return nil
	case mode == v1alpha1.DriftWarn:
		if err := r.deviates(ctx, s, known, result.Moved); err != nil {
			return step.Fail(v1alpha1.ApplyFailedReason, err)
		}
	case len(result.Corrected) > 0:
		m.putBack(inventory.Names(result.Corrected), r.Clock.Now())
	case len(result.Moved) > 0:
		m.drift = []string{inventory.Names(entriesOf(result.Moved))}
		s.soon(max(r.quarrel(m), backoff.First))
	default:
		m.drift = nil
	}
	s.helm.notes = append(s.helm.notes, driftNote(s, mode))
	return nil
}

// maxPreviews bounds how many objects one pass compares.
const maxPreviews = 20

// deviating is what is known of an object that others changed.
type deviating struct {
	// state is that of the object, and of what the app says, in which it was compared; words say how it differed, "" for not.
	state, words string
	// unclear is why that could not be found out, tries how often in a row, and asked when last.
	unclear string
	tries   int
	asked   time.Time
}

// due reports whether to compare the object. What was refused is not asked again for a while, whatever changes: events may come
// all the time.
func (d deviating) due(state string, now time.Time) bool {
	if d.tries > 0 {
		return !now.Before(d.again())
	}
	return d.state != state
}

func (d deviating) again() time.Time { return d.asked.Add(backoff.Pause(d.tries)) }

// deviates remembers how objects differ from the source, and compares some of which it is not known, those that waited
// longest first.
func (r *Reconciler) deviates(ctx context.Context, s *scope, known map[string]deviating, moved []apply.Deviation) error {
	now, m := r.Clock.Now(), s.memory
	var due []apply.Deviation
	m.deviating = map[string]deviating{}
	for _, d := range moved {
		was := known[d.Entry.ID]
		m.deviating[d.Entry.ID] = was
		if was.due(stateOf(s.app, d), now) {
			due = append(due, d)
		}
	}
	slices.SortStableFunc(due, func(x, y apply.Deviation) int { return known[x.Entry.ID].asked.Compare(known[y.Entry.ID].asked) })
	for _, d := range due[:min(len(due), maxPreviews)] {
		is, err := r.compareOne(ctx, s, d)
		if err != nil {
			return err
		}
		m.deviating[d.Entry.ID] = is
	}
	s.gather(moved, now)
	return nil
}

// compareOne asks how an object differs from the source. Nothing is applied, so that the API server refuses to say it, for a
// quota or a webhook, is no failure of the app: it is told, and asked again.
func (r *Reconciler) compareOne(ctx context.Context, s *scope, d apply.Deviation) (deviating, error) {
	is := deviating{state: stateOf(s.app, d), asked: r.Clock.Now()}
	live, corrected, err := r.Applier.Preview(ctx, s.client, d)
	name := d.Manifest.GetKind() + "/" + d.Manifest.GetName()
	switch {
	case errors.Is(err, context.Canceled): // The operator is stopping.
		return is, err
	case err != nil:
		is.unclear, is.tries = s.quoted(err.Error()), s.memory.deviating[d.Entry.ID].tries+1
	case live == nil:
		is.words = inWords(name, true, nil, "")
	default:
		if fields := differ.Compare(corrected, live, mask.Of(s.sensitive)); len(fields) > 0 {
			is.words = inWords(name, false, fields, "the source")
		}
	}
	return is, nil
}

// gather brings together what is known of objects that others changed, and has the app looked at when the rest is due.
func (s *scope) gather(moved []apply.Deviation, now time.Time) {
	m := s.memory
	m.drift = nil
	for _, d := range moved {
		switch is := m.deviating[d.Entry.ID]; {
		case is.tries > 0:
			m.unclear = append(m.unclear, is.unclear)
			s.soon(max(is.again().Sub(now), patience))
		case is.due(stateOf(s.app, d), now):
			m.uncompared++
			s.soon(patience)
		case is.words != "":
			m.drift = append(m.drift, is.words)
		}
	}
}

// stateOf stands for the state that an object is in, and for what the app says about drift.
func stateOf(app *v1alpha1.App, d apply.Deviation) string {
	return fmt.Sprintf("%d %s", app.Generation, d.Entry.Digest)
}

// deviations tells how objects differ, and of how many that is not known.
func (m *remembered) deviations() string {
	told := describe(slices.Concat(m.drift, m.unclear))
	if m.uncompared == 0 {
		return told
	}
	if told != "" {
		told += "; "
	}
	return fmt.Sprintf("%s%d changed objects are not compared yet", told, m.uncompared)
}

func entriesOf(deviations []apply.Deviation) []v1alpha1.InventoryEntry {
	var entries []v1alpha1.InventoryEntry
	for _, d := range deviations {
		entries = append(entries, d.Entry)
	}
	return entries
}
