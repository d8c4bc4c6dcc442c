package app

import (
	"context"

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

// deviates remembers how objects differ from the source.
func (r *Reconciler) deviates(ctx context.Context, s *scope, moved []apply.Deviation) error {
	key := driftKey(s.app, entriesOf(moved))
	if key == s.memory.driftKey {
		return nil
	}
	var found []string
	for _, d := range moved {
		live, corrected, err := r.Applier.Preview(ctx, s.client, d)
		if err != nil {
			return err
		}
		name := d.Manifest.GetKind() + "/" + d.Manifest.GetName()
		if live == nil {
			found = append(found, inWords(name, true, nil, ""))
		} else if fields := differ.Compare(corrected, live, maskOf(s.sensitive)); len(fields) > 0 {
			found = append(found, inWords(name, false, fields, "the source"))
		}
	}
	s.memory.driftKey, s.memory.drift = key, found
	return nil
}

func entriesOf(deviations []apply.Deviation) []v1alpha1.InventoryEntry {
	var entries []v1alpha1.InventoryEntry
	for _, d := range deviations {
		entries = append(entries, d.Entry)
	}
	return entries
}
