package app

import (
	"context"
	"errors"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/apply"
	"github.com/kubeop/kubeop/delivery/differ"
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
	m.unclear = nil
	switch {
	case mode == v1alpha1.DriftOff:
		s.helm.notes = append(s.helm.notes, step.Note{Condition: v1alpha1.DriftedCondition})
		return nil
	case mode == v1alpha1.DriftWarn:
		if err := r.deviates(ctx, s, result.Moved); err != nil {
			return step.Fail(v1alpha1.ApplyFailedReason, err)
		}
	case len(result.Corrected) > 0:
		m.putBack(apply.Names(result.Corrected), r.Clock.Now())
	case len(result.Moved) > 0:
		m.drift = []string{apply.Names(entriesOf(result.Moved))}
		s.soon(max(r.quarrel(m), firstRetry))
	default:
		m.drift = nil
	}
	s.helm.notes = append(s.helm.notes, driftNote(s, mode))
	return nil
}

// deviates remembers how objects differ from the source. Nothing is applied, so that the API server refuses to say it, for a
// quota or a webhook, is no failure of the app: it is told, and asked again.
func (r *Reconciler) deviates(ctx context.Context, s *scope, moved []apply.Deviation) error {
	key := driftKey(s.app, entriesOf(moved))
	if key == s.memory.driftKey {
		return nil
	}
	var found, unclear []string
	mask := maskOf(s.sensitive)
	for _, d := range moved {
		live, corrected, err := r.Applier.Preview(ctx, s.client, d)
		name := d.Manifest.GetKind() + "/" + d.Manifest.GetName()
		switch {
		case errors.Is(err, context.Canceled): // The operator is stopping.
			return err
		case err != nil:
			unclear = append(unclear, s.quoted(err.Error()))
		case live == nil:
			found = append(found, inWords(name, true, nil, ""))
		default:
			if fields := differ.Compare(corrected, live, mask); len(fields) > 0 {
				found = append(found, inWords(name, false, fields, "the source"))
			}
		}
	}
	s.memory.driftKey, s.memory.drift, s.memory.unclear = key, found, unclear
	if len(unclear) > 0 {
		s.memory.driftKey = ""
		s.soon(lastRetry)
	}
	return nil
}

func entriesOf(deviations []apply.Deviation) []v1alpha1.InventoryEntry {
	var entries []v1alpha1.InventoryEntry
	for _, d := range deviations {
		entries = append(entries, d.Entry)
	}
	return entries
}
