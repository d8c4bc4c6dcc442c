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
	"github.com/kubeop/kubeop/controllers/app/history"
	"github.com/kubeop/kubeop/controllers/app/hook"
	"github.com/kubeop/kubeop/controllers/app/notice"
	"github.com/kubeop/kubeop/controllers/app/prune"
	"github.com/kubeop/kubeop/controllers/app/record"
	"github.com/kubeop/kubeop/controllers/app/source"
	"github.com/kubeop/kubeop/controllers/app/subject"
	"github.com/kubeop/kubeop/controllers/refusal"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/few"
	"github.com/kubeop/kubeop/delivery/jobs"
)

// scope holds the facts of one Reconcile.
type scope struct {
	*subject.Subject
	// found is the source that the Reconcile found.
	found source.Found
	// render sets objects and values. values is set only for a Helm App, whose objects are in the inventory.
	objects []*unstructured.Unstructured
	values  map[string]any
	// admitted is the result of the checks of the objects.
	admitted admission
	// inventory lists the recorded objects, and writes has the versions in which they were written.
	inventory v1alpha1.Inventory
	writes    *record.Writes
	// unhealthySince is since when the App is unhealthy, as assess sets it; nil if the App is healthy.
	unhealthySince *metav1.Time
	// held are the objects that left the source and wait for a person to confirm their deletion.
	held    prune.Held
	hooks   hook.Plan
	release releaseFacts
	volumes notice.Volumes
	drift   drift.Report
	outcome outcome
	// current says whether a newer version of the App is refused.
	current refusal.Report
}

// outcome is how far the Reconcile got.
type outcome struct {
	// declared: scope.objects is the complete list of what the source declares. wrote: apply wrote objects. applied: the whole revision is in the cluster.
	declared, wrote, applied bool
	// generation is the generation that the step Applied or Released applied, 0 if it did not succeed; nil if the Reconcile did not get there.
	generation *int64
	// broken: a step other than the health check failed. done: every step succeeded.
	broken, done bool
	// ceded are objects that left the source and that other Apps take over.
	ceded handover.Ceded
	// noted: Notes was called. reported: the status was written with all recorded facts.
	noted, reported bool
	// deliveries are the earlier deliveries and this one.
	deliveries *history.Deliveries
}

// StatusWritten implements step.Notified.
func (s *scope) StatusWritten() {
	s.outcome.reported = true
	s.outcome.deliveries.Written()
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
	if s.outcome.generation != nil {
		status.AppliedGeneration = s.outcome.generation
	}
	s.volumes.Record(s.App)
	s.drift.Record(s.App)
	status.URL, status.ShortRevision = s.App.Spec.URL(), few.ShortRevision(status.LastAppliedRevision)
	s.hooks.Record(s.App, s.outcome.done)
	s.release.record(s.App)
	if !s.found.Kept {
		s.outcome.deliveries.Record(s.Subject, s.source(), s.outcome.done)
	}
}

// source is what this Reconcile delivers, for the history.
func (s *scope) source() history.Source {
	is := history.Source{Revision: s.found.Revision, Author: s.found.Files.Author, Image: s.found.Reference}
	if s.App.Status.Release != nil {
		is.Release = s.App.Status.Release.Revision
	}
	return is
}

// brought reports whether this Reconcile wrote objects or a release that the status does not report yet. Only then Record writes the size,
// so that a restarted operator, which counts anew, does not write every status.
func (s *scope) brought() bool {
	if o := s.release.outcome; o != nil {
		was := s.App.Status.Release
		return was == nil || was.Revision != o.Release.Revision
	}
	return s.outcome.wrote || s.outcome.applied && s.App.Status.LastAppliedRevision != s.found.Revision
}

// Summary is the message of the condition Ready.
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
	summary := fmt.Sprintf("Applied %s, healthy", few.Count(len(s.inventory.Entries)-len(s.held.Objects)-s.outcome.ceded.Count, "object"))
	if overdue := s.outcome.ceded.Overdue; len(overdue) > 0 {
		summary += "; no longer declared and left for others: " + step.Few(overdue)
	}
	return summary + s.held.Summary(s.App, "the source")
}

// Notes returns the conditions that belong to no step, and the events.
func (s *scope) Notes() []step.Note {
	s.outcome.noted = true
	return slices.Concat(s.found.Notes(s.App), s.hooks.Notes(s.App), s.release.notes, s.drift.Notes, s.volumes.Notes(s.App, s.objects != nil), s.current.Notes, s.release.why(),
		[]step.Note{notice.Warning(s.Guardrails, s.admitted.broken)})
}

// Heading is the beginning of Ready's message: that a newer version of the App is refused.
func (s *scope) Heading() string { return s.current.Heading() }

// Details returns Helm's last log lines about a failed action.
func (s *scope) Details() string {
	if s.release.outcome == nil {
		return ""
	}
	return strings.Join(s.release.outcome.Log, "\n")
}

// hookRevision identifies what the hooks run for: the objects, or the chart with its values.
func (s *scope) hookRevision() hook.Revision {
	revision := hook.Revision{Name: s.found.Revision, Delivered: s.objects, Image: jobs.ImageOf(s.objects), Seal: s.release.seal}
	if helm := s.App.Spec.Helm; helm != nil {
		delivered := []any{s.found.Chart.Digest, s.App.ReleaseName(), s.values, helm.ChartValuesFiles, helm.PostRenderers, helm.CommonMetadata}
		if target := s.App.Spec.TargetNamespace; target != "" {
			delivered = append(delivered, target)
		}
		revision.Delivered = delivered
	}
	return revision
}

// judged returns the entries of a release whose health and drift are checked. Objects outside of a tenant's namespace are recorded only to
// be deleted in the end: usually no watch shows them, and each check would be a request. The operator watches what the platform delivers.
func (s *scope) judged(entries []v1alpha1.InventoryEntry) []v1alpha1.InventoryEntry {
	if s.OfPlatform() {
		return slices.DeleteFunc(slices.Clone(entries), func(e v1alpha1.InventoryEntry) bool { return e.Stale })
	}
	return record.Inside(entries, s.App.Namespace)
}

// unhealthyFrom returns since when the App is not healthy: the time in the status, else the beginning of this phase. A time in the future
// is ignored: it was written before the clock was set back, and would delay the deadline.
func (s *scope) unhealthyFrom(began, now time.Time) time.Time {
	if s.unhealthySince == nil || s.unhealthySince.After(now) {
		s.unhealthySince = &metav1.Time{Time: began}
	}
	return s.unhealthySince.Time
}

// The Apps that a step applies to.
func always(*v1alpha1.App) bool       { return true }
func applied(app *v1alpha1.App) bool  { return app.Spec.Type != v1alpha1.AppHelm }
func released(app *v1alpha1.App) bool { return app.Spec.Type == v1alpha1.AppHelm }
func tested(app *v1alpha1.App) bool   { return app.Spec.Helm != nil && app.Spec.Helm.Test.Enable }
