package app

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/apply"
	"github.com/kubeop/kubeop/delivery/backoff"
	"github.com/kubeop/kubeop/delivery/differ"
	"github.com/kubeop/kubeop/delivery/inventory"
	"github.com/kubeop/kubeop/delivery/release"
	"github.com/kubeop/kubeop/delivery/release/cluster"
)

// drift finds out whether others changed objects of the release. Only those that moved since Helm left them are compared,
// and no state of them twice.
func (r *Reconciler) drift(ctx context.Context, s *scope, request release.Request) error {
	mode := s.app.Spec.DriftMode()
	note := step.Note{Condition: v1alpha1.DriftedCondition}
	if mode == v1alpha1.DriftOff {
		s.helm.notes = append(s.helm.notes, note)
		return nil
	}
	floors := s.memory.floors
	if s.memory.late(r.Clock.Now()) {
		floors = nil
	}
	moved, err := r.Applier.Moved(ctx, s.client, namespaced(s.inventory.Entries), floors)
	if err != nil {
		return err
	}
	if pause := r.quarrel(s.memory); len(moved) > 0 && mode == v1alpha1.DriftCorrect && pause > 0 {
		s.memory.driftKey, s.memory.drift, s.again = "", []string{inventory.Names(moved)}, pause
	} else if key := driftKey(s.app, moved); len(moved) > 0 && key != s.memory.driftKey {
		if err := r.compare(ctx, s, request, moved); err != nil {
			return step.Fail(v1alpha1.ApplyFailedReason, err)
		}
		if s.memory.driftKey = key; mode == v1alpha1.DriftCorrect {
			s.memory.driftKey = "" // What was put back and looks the same again was changed again.
		}
	} else if len(moved) == 0 {
		s.memory.driftKey, s.memory.drift = "", nil
	}
	s.helm.notes = append(s.helm.notes, driftNote(s, mode))
	return nil
}

// driftKey stands for the state that the moved objects are in, and for what the app says about drift.
func driftKey(app *v1alpha1.App, moved []v1alpha1.InventoryEntry) string {
	var key strings.Builder
	fmt.Fprintln(&key, app.Generation)
	for _, e := range moved {
		key.WriteString(e.ID + e.Digest + "\n")
	}
	return key.String()
}

// compare has the moved objects compared with the release. Those that do not differ, and those that were put back, are
// recorded as they are now; the others stay recorded as Helm left them.
func (r *Reconciler) compare(ctx context.Context, s *scope, request release.Request, moved []v1alpha1.InventoryEntry) error {
	correct := s.app.Spec.DriftMode() == v1alpha1.DriftCorrect
	refs := make([]cluster.Ref, 0, len(moved))
	for _, e := range moved {
		id, err := inventory.ParseObjectID(e.ID)
		if err != nil {
			return err
		}
		kind := schema.GroupVersionKind{Group: id.Group, Version: e.Version, Kind: id.Kind}
		refs = append(refs, cluster.Ref{GroupVersionKind: kind, Namespace: id.Namespace, Name: id.Name})
	}
	differences, err := r.Releases.Drift(ctx, request, refs, correct)
	if err != nil {
		return err
	}
	drifted := map[string]bool{}
	s.memory.drift = nil
	for _, d := range differences {
		drifted[d.Object] = true
		s.memory.drift = append(s.memory.drift, inWords(d.Object, d.Missing, d.Fields, "the release"))
	}
	now := map[string]string{}
	for _, e := range moved {
		id, _ := inventory.ParseObjectID(e.ID) // It was parsed above.
		if !drifted[id.Kind+"/"+id.Name] {
			now[e.ID] = e.Digest
		}
	}
	for _, d := range differences {
		if o := d.Applied; o != nil && o.Live != nil {
			id := idOf(o.Ref)
			now[id.String()] = apply.StateOf(id, o.Live)
		}
	}
	entries := slices.Clone(s.inventory.Entries)
	for i := range entries {
		if state, ok := now[entries[i].ID]; ok {
			entries[i].Digest = state
		}
	}
	recorded := recordedRevision(s)
	s.memory.release, s.memory.revision, s.memory.content, s.memory.entries = releaseName(s.app), recorded.revision, recorded.content, entries
	s.inventory = v1alpha1.Inventory{Entries: entries}
	if correct && len(differences) > 0 {
		s.memory.putBack(describe(s.memory.drift), r.Clock.Now())
	}
	return nil
}

// idOf is an object of a release as the inventory names it.
func idOf(ref cluster.Ref) inventory.ObjectID {
	return inventory.ObjectID{Namespace: ref.Namespace, Name: ref.Name, Group: ref.Group, Kind: ref.Kind}
}

// patient is how many corrections in a row are made at once.
const patient = 3

// quarrel returns how long to rest before the next correction: after a few in a row, longer each time. Somebody may be
// changing the very same field in turn, and such a quarrel is for people to end. A quarter of an hour of peace, and it is
// forgotten.
func (r *Reconciler) quarrel(m *remembered) time.Duration {
	past := r.Clock.Now().Sub(m.correctedAt)
	if past > 3*backoff.Last {
		m.corrections = 0
	}
	if m.corrections < patient {
		return 0
	}
	return backoff.Pause(m.corrections-patient+1) - past
}

// putBack remembers that something was put back.
func (m *remembered) putBack(what string, now time.Time) {
	m.corrected, m.drift = "put back: "+what, nil
	m.corrections++
	m.correctedAt = now
}

// driftNote is the condition Drifted. That something was put back stays told until something else is.
func driftNote(s *scope, mode v1alpha1.DriftMode) step.Note {
	note := step.Note{Condition: v1alpha1.DriftedCondition, Status: "False", Reason: v1alpha1.NoDriftDetectedReason}
	was := conditions.Get(s.app, v1alpha1.DriftedCondition)
	switch {
	case s.memory.corrected != "":
		s.memory.corrected = s.Mask(s.memory.corrected) // As the status will have it, so that it is known to be told.
		note.Reason, note.Message, note.Event = v1alpha1.DriftCorrectedReason, s.memory.corrected, "Normal"
	case len(s.memory.drift) > 0:
		note.Status, note.Reason, note.Message, note.Event = "True", v1alpha1.DriftDetectedReason, s.memory.deviations(), "Warning"
		if mode == v1alpha1.DriftCorrect {
			note.Message = fmt.Sprintf("changed again after it was put back %s; somebody else keeps changing it: %s", times(s.memory.corrections), note.Message)
		}
	case len(s.memory.unclear) > 0 || s.memory.uncompared > 0:
		note.Status, note.Reason, note.Message, note.Event = "Unknown", v1alpha1.NotComparedReason, s.memory.deviations(), "Warning"
	case was != nil && was.Reason == v1alpha1.DriftCorrectedReason && was.ObservedGeneration == s.app.Generation:
		note.Reason, note.Message = was.Reason, was.Message
	}
	return note
}

// inWords says how an object differs from what its author has.
func inWords(object string, missing bool, fields []differ.Change, author string) string {
	if missing {
		return object + " is gone"
	}
	var told []string
	for _, f := range fields {
		switch {
		case f.Have == "":
			told = append(told, fmt.Sprintf("%s is gone, %s says %s", f.Path, author, f.Want))
		case f.Want == "":
			told = append(told, fmt.Sprintf("%s is %s, %s has none", f.Path, f.Have, author))
		default:
			told = append(told, fmt.Sprintf("%s is %s, %s says %s", f.Path, f.Have, author, f.Want))
		}
	}
	return object + ": " + strings.Join(told, ", ")
}

// maxDifferences bounds how many objects a message names.
const maxDifferences = 5

func describe(differences []string) string {
	if more := len(differences) - maxDifferences; more > 0 {
		differences = append(slices.Clone(differences[:maxDifferences]), fmt.Sprintf("and %d objects more", more))
	}
	return strings.Join(differences, "; ")
}
