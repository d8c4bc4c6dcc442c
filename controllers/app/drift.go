package app

import (
	"context"
	"fmt"
	"strings"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/app/drift"
	"github.com/kubeop/kubeop/controllers/app/revision"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/inventory"
	"github.com/kubeop/kubeop/delivery/release"
	"github.com/kubeop/kubeop/delivery/release/cluster"
)

// findDrift finds drift of the objects of a release, and corrects it if the App says so. It compares only objects that changed since Helm
// wrote them, and compares each state of them once.
func (r *releaser) findDrift(ctx context.Context, s *scope, request release.Request) error {
	mode, state := s.App.Spec.DriftMode(), r.drift.Get(s.App)
	if mode == v1alpha1.DriftOff {
		s.drift = drift.None()
		return nil
	}
	written := s.writes.Unsettled()
	if s.writes.Shown(s.Now()) {
		written = nil
	}
	moved, err := r.applier.Moved(ctx, s.Client, s.judged(s.inventory.Entries), written)
	if err != nil {
		return err
	}
	key := driftKey(s.App, moved)
	switch rest := state.Rest(s.Now()); {
	case len(moved) == 0:
		state.Found("", nil)
	case mode == v1alpha1.DriftCorrect && rest > 0:
		state.Found("", []string{inventory.Names(moved)})
		s.LookAgain(rest)
	case !state.Compared(key):
		if err := r.compare(ctx, s, request, moved); err != nil {
			return step.Fail(v1alpha1.ApplyFailedReason, err)
		}
	}
	s.drift = state.Report(s.Subject)
	return nil
}

// driftKey identifies the state of the changed objects together with the App's settings for drift.
func driftKey(app *v1alpha1.App, moved []v1alpha1.InventoryEntry) string {
	var key strings.Builder
	fmt.Fprintln(&key, app.Generation)
	for _, e := range moved {
		key.WriteString(e.ID + e.Digest + "\n")
	}
	return key.String()
}

// compare compares the changed objects with the release. It records the present state of objects that do not differ and of corrected ones.
// Objects that still differ stay recorded in the state that Helm wrote.
func (r *releaser) compare(ctx context.Context, s *scope, request release.Request, moved []v1alpha1.InventoryEntry) error {
	correct := s.App.Spec.DriftMode() == v1alpha1.DriftCorrect
	refs := make([]cluster.Ref, 0, len(moved))
	for _, e := range moved {
		ref, err := revision.RefOf(e)
		if err != nil {
			return err
		}
		refs = append(refs, ref)
	}
	differences, err := r.engine.Drift(ctx, request, refs, correct)
	if err != nil {
		return err
	}
	var words []string
	for _, d := range differences {
		words = append(words, drift.Describe(d.Object, d.Missing, d.Fields, "the release"))
	}
	s.recordEntries(revision.StatesAfter(s.inventory.Entries, moved, differences))
	state, key := r.drift.Get(s.App), driftKey(s.App, moved)
	if correct {
		key = "" // Clear the key: if the objects return to the state we just corrected, someone changed them again.
	}
	state.Found(key, words)
	if correct && len(differences) > 0 {
		state.Corrected(step.Few(words), s.Now())
	}
	return nil
}
