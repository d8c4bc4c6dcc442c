package app

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/app/drift"
	"github.com/kubeop/kubeop/controllers/app/handover"
	"github.com/kubeop/kubeop/controllers/app/hook"
	"github.com/kubeop/kubeop/controllers/app/prune"
	"github.com/kubeop/kubeop/controllers/app/record"
	"github.com/kubeop/kubeop/controllers/app/source"
	"github.com/kubeop/kubeop/controllers/app/subject"
	"github.com/kubeop/kubeop/controllers/refusal"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/jobs"
)

// scope holds the facts of one Reconcile.
type scope struct {
	*subject.Subject
	// found is what the source was found to be.
	found source.Found
	// objects and values are set by render. values is set only for a Helm App; its objects are in the inventory.
	objects []*unstructured.Unstructured
	values  map[string]any
	// admitted is what was found out when the objects were checked.
	admitted admission
	// inventory is what is recorded, and writes are the versions in which it was written.
	inventory v1alpha1.Inventory
	writes    *record.Writes
	// unhealthySince is set by assess.
	unhealthySince *metav1.Time
	// held are the objects that left the source and wait for a person to confirm their deletion.
	held    prune.Held
	hooks   hook.Plan
	release releaseFacts
	volumes volumeFacts
	drift   drift.Report
	outcome outcome
	// current is whether a newer version is refused.
	current refusal.Report
}

// outcome is how far the Reconcile came.
type outcome struct {
	// declared: objects are all that the source declares. wrote: apply wrote objects. applied: the revision is in the cluster as a whole.
	declared, wrote, applied bool
	// done: every step has succeeded.
	done bool
	// ceded are objects that left the source and are left for other Apps.
	ceded handover.Ceded
	// noted: the notes of this Reconcile are taken. reported: the status has all that is recorded.
	noted, reported bool
}

// volumeFacts are the facts about claims.
type volumeFacts struct {
	// retained are StatefulSets that are delivered so that they keep their claims, and lastRetained those of which an event was last sent.
	retained     []string
	lastRetained *string
	// empty says which volumes start empty though a claim for them is left, "" for none.
	empty string
}

// StatusWritten implements step.Notified: the status has what is recorded.
func (s *scope) StatusWritten() {
	s.outcome.reported = true
	if s.outcome.noted {
		s.drift.Reported()
	}
}

// Record writes the facts into the status.
func (s *scope) Record() {
	status := &s.App.Status
	status.Inventory = s.inventory
	status.UnhealthySince = s.unhealthySince
	s.held.Record(status)
	status.Refused = s.current.Masked(s.Mask)
	if s.outcome.done {
		status.ObservedTree = s.App.Annotations[v1alpha1.TreeAnnotation]
	}
	if s.admitted.bytes > 0 && s.brought() {
		status.RenderedBytes = s.admitted.bytes
	}
	if filled := s.admitted.filled; filled != nil {
		status.Filled = *filled
	}
	s.found.Record(s.App)
	if s.outcome.applied {
		status.LastAppliedRevision = s.found.Revision
	}
	s.hooks.Record(s.App, s.outcome.done)
	s.release.record(s.App)
}

// brought reports whether this Reconcile brought something into the cluster that the status does not report yet. Only then it reports the size: an
// operator that begins to count writes no status for it alone.
func (s *scope) brought() bool {
	if o := s.release.outcome; o != nil {
		was := s.App.Status.Release
		return was == nil || was.Revision != o.Release.Revision
	}
	return s.outcome.wrote || s.outcome.applied && s.App.Status.LastAppliedRevision != s.found.Revision
}

// Summary is Ready's message.
func (s *scope) Summary() string {
	summary := s.delivery()
	if c := conditions.Get(s.App, v1alpha1.SourceReadyCondition); c != nil && c.Status == metav1.ConditionFalse {
		summary += fmt.Sprintf("; its source cannot be fetched: %s, see condition %s", c.Reason, c.Type)
	}
	return summary + s.hooks.Summary()
}

func (s *scope) delivery() string {
	if r := s.App.Status.Release; (s.release.outcome != nil || s.found.Kept) && r != nil {
		return fmt.Sprintf("Release %s, revision %d of chart %s, is healthy", r.Name, r.Revision, r.Chart) + s.held.Summary(s.App, "the chart")
	}
	revision := s.found.Revision
	if s.found.Kept {
		revision = s.App.Status.LastAppliedRevision
	}
	summary := fmt.Sprintf("Applied revision %s: %s, healthy", revision, step.Count(len(s.inventory.Entries)-len(s.held.Objects)-s.outcome.ceded.Count, "object"))
	if overdue := s.outcome.ceded.Overdue; len(overdue) > 0 {
		summary += "; no longer declared and left for others: " + step.Few(overdue)
	}
	return summary + s.held.Summary(s.App, "the source")
}

// Notes are the conditions beside the steps', and events of what is reported once.
func (s *scope) Notes() []step.Note {
	s.outcome.noted = true
	return slices.Concat(s.found.Notes(s.App), s.hooks.Notes(s.App), s.release.notes, s.drift.Notes, s.volumeNotes(), s.current.Notes, s.release.why())
}

// volumeNotes report volumes that start empty, and once what was changed for the sake of data.
func (s *scope) volumeNotes() []step.Note {
	var notes []step.Note
	if s.App.Spec.Image != nil {
		empty := step.Note{Condition: v1alpha1.StartedEmptyCondition}
		if s.volumes.empty != "" {
			empty.Status, empty.Reason, empty.Message, empty.Event = metav1.ConditionTrue, v1alpha1.ClaimLeftBehindReason, s.volumes.empty, "Warning"
		}
		notes = append(notes, empty)
	}
	retained := strings.Join(s.volumes.retained, ", ")
	if s.App.Spec.Helm != nil || s.objects == nil || retained == *s.volumes.lastRetained {
		return notes
	}
	if *s.volumes.lastRetained = retained; retained == "" {
		return notes
	}
	return append(notes, step.Note{Reason: v1alpha1.ClaimsRetainedReason, Event: "Warning", Message: fmt.Sprintf(
		"StatefulSet %s is delivered with persistentVolumeClaimRetentionPolicy Retain, for both fields: no claim is deleted without a confirmation; write Retain to end this message", retained)})
}

// Heading says in front of Ready's message that a newer version of the App is refused.
func (s *scope) Heading() string { return s.current.Heading() }

// Details are Helm's last words about a failed action.
func (s *scope) Details() string {
	if s.release.outcome == nil {
		return ""
	}
	return strings.Join(s.release.outcome.Log, "\n")
}

// hookRevision is what the hooks run for: objects, or a chart with its values.
func (s *scope) hookRevision() hook.Revision {
	revision := hook.Revision{Name: s.found.Revision, Delivered: s.objects, Image: jobs.ImageOf(s.objects), Seal: s.release.seal}
	if helm := s.App.Spec.Helm; helm != nil {
		revision.Delivered = []any{s.found.Chart.Digest, releaseName(s.App), s.values, helm.ChartValuesFiles, helm.PostRenderers, helm.CommonMetadata}
	}
	return revision
}

// unhealthyFrom returns since when the App is not healthy: from the status, or the beginning of this check. A time in the future was
// written before the clock was set back; with it the deadline would be hours away.
func (s *scope) unhealthyFrom(began, now time.Time) time.Time {
	if s.unhealthySince == nil || s.unhealthySince.After(now) {
		s.unhealthySince = &metav1.Time{Time: began}
	}
	return s.unhealthySince.Time
}

func always(*v1alpha1.App) bool { return true }

func applied(app *v1alpha1.App) bool { return app.Spec.Type != v1alpha1.AppHelm }

func released(app *v1alpha1.App) bool { return app.Spec.Type == v1alpha1.AppHelm }

func tested(app *v1alpha1.App) bool { return app.Spec.Helm != nil && app.Spec.Helm.Test.Enable }
