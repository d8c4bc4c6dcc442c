package app

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/app/record"
	"github.com/kubeop/kubeop/controllers/app/revision"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/apply"
	"github.com/kubeop/kubeop/delivery/digest"
	"github.com/kubeop/kubeop/delivery/inventory"
	"github.com/kubeop/kubeop/delivery/release"
	"github.com/kubeop/kubeop/delivery/release/cluster"
)

// releaseFacts are the facts of a Helm App's release.
type releaseFacts struct {
	// outcome is the result of the engine; nil before the engine was called.
	outcome *release.Outcome
	// accepted: the action that the annotation forceAt or resetAt requests has begun.
	accepted bool
	// notes are the conditions Remediated and TestSuccess.
	notes []step.Note
	// proven: health checks and tests have passed for the deployed revision.
	proven bool
	// memory is the state that earlier Reconciles left.
	memory *releaseMemory
	// seal is for the digests in the status.
	seal digest.Seal
}

// releaseMemory holds the objects of a release's revision until the status lists them.
type releaseMemory struct {
	name     string
	deployed deployed
	entries  []v1alpha1.InventoryEntry
	// ended is the end of the action about which the last event was sent.
	ended time.Time
}

// deployed is a deployed revision of a release. After an uninstall and a new install, revision numbers repeat; content distinguishes such
// revisions.
type deployed struct {
	revision int
	content  string
}

// of reports whether the memory is about the App's present release.
func (m *releaseMemory) of(app *v1alpha1.App) bool {
	return m.deployed.revision != 0 && m.name == app.ReleaseName()
}

// reported clears the memory if the status lists the same objects.
func (m *releaseMemory) reported(app *v1alpha1.App) {
	was := app.Status.Release
	if was != nil && was.Name == m.name && (deployed{was.Deployed, was.Content}) == m.deployed && slices.Equal(app.Status.Inventory.Entries, m.entries) {
		*m = releaseMemory{ended: m.ended}
	}
}

// recordedRevision returns the revision of the release to which the recorded objects belong.
func (s *scope) recordedRevision() deployed {
	if m := s.release.memory; m.of(s.App) {
		return m.deployed
	}
	if was := s.App.Status.Release; was != nil && was.Name == s.App.ReleaseName() {
		return s.release.deployedOf(was)
	}
	return deployed{}
}

// recordedEntries returns the objects of that revision.
func (s *scope) recordedEntries() []v1alpha1.InventoryEntry {
	if m := s.release.memory; m.of(s.App) {
		return m.entries
	}
	return s.inventory.Entries
}

// recordEntries replaces the recorded objects of that revision, with new states.
func (s *scope) recordEntries(entries []v1alpha1.InventoryEntry) {
	m, recorded := s.release.memory, s.recordedRevision()
	m.name, m.deployed, m.entries = s.App.ReleaseName(), recorded, entries
	s.inventory = v1alpha1.Inventory{Entries: entries}
}

// recordObjects records the objects that the last action left in the inventory.
func (r *releaser) recordObjects(ctx context.Context, s *scope, outcome release.Outcome) error {
	s.inventory = v1alpha1.Inventory{Entries: s.recordedEntries()}
	now := deployed{outcome.Deployed.Revision, outcome.Deployed.Content}
	if now == s.recordedRevision() {
		return nil
	}
	left := make([]apply.Left, 0, len(outcome.Deployed.Objects))
	versions := map[string]string{}
	add := func(o cluster.Applied) {
		id := revision.IDOf(o.Ref)
		left = append(left, apply.Left{ID: id, Version: o.Version, Live: o.Live})
		if o.Live != nil {
			versions[id.String()] = o.Live.GetResourceVersion()
		}
	}
	for _, o := range outcome.Deployed.Objects {
		if o.Namespace != s.App.Namespace {
			continue // Objects outside the namespace are Shared.
		}
		add(o)
	}
	if s.OfPlatform() {
		for _, o := range outcome.Deployed.Shared {
			add(o.Applied)
		}
	}
	entries, err := r.applier.Record(ctx, s.Client, left, s.inventory.Entries)
	if err != nil {
		return fmt.Errorf("recording the objects of release %s: %w", outcome.Release.Name, err)
	}
	outside := record.Outside(s.inventory.Entries, s.App.Namespace)
	if outcome.Deployed.Content == "" { // A person deployed the revision, so its shared objects are unknown.
		entries = inventory.Join(inventory.Without(entries, outside), outside).Entries
	} else {
		entries = revision.WithShared(entries, outside, outcome.Deployed.Shared)
	}
	m := s.release.memory
	m.name, m.deployed, m.entries = outcome.Release.Name, now, entries
	s.writes.Released(versions, s.Now())
	s.inventory, s.unhealthySince = v1alpha1.Inventory{Entries: entries}, nil
	return nil
}

// why returns an event with the reason why an action began, if the reason is not obvious.
func (f *releaseFacts) why() []step.Note {
	o := f.outcome
	if o == nil || o.Why == "" || !o.Ended.After(f.memory.ended) {
		return nil
	}
	f.memory.ended = o.Ended
	return []step.Note{{Reason: v1alpha1.ProgressingReason, Message: o.Why, Event: "Normal"}}
}

func (f *releaseFacts) record(app *v1alpha1.App) {
	status := &app.Status
	if f.accepted {
		status.LastHandledForceAt, status.LastHandledResetAt = app.Annotations[meta.ForceRequestAnnotation], app.Annotations[v1alpha1.ResetAnnotation]
	}
	if f.outcome == nil {
		return
	}
	status.Failures, status.NextRetryAt = int64(f.outcome.Retry.Attempts), nil
	if at := f.outcome.Retry.At; !at.IsZero() {
		status.NextRetryAt = &metav1.Time{Time: at}
	}
	status.History = revision.History(revision.Sealed(status.History, f.seal), f.outcome.Records.Snapshots, f.outcome.Records.Statuses)
	if f.outcome.Release.Name == "" {
		status.Release = nil
		return
	}
	status.Release = f.newest(status)
}

// newest describes the newest revision. The engine does not always read its chart; the history then has the chart.
func (f *releaseFacts) newest(status *v1alpha1.AppStatus) *v1alpha1.ReleaseStatus {
	info := f.outcome.Release
	now := &v1alpha1.ReleaseStatus{
		Name: info.Name, Revision: info.Revision, Status: info.Status, Chart: info.Chart, AppVersion: info.AppVersion,
		Deployed: f.outcome.Deployed.Revision, Content: f.outcome.Deployed.Content,
		Proven: f.proven || f.provenBefore(status, deployed{f.outcome.Deployed.Revision, f.outcome.Deployed.Content}),
	}
	for _, snapshot := range status.History {
		if snapshot.Revision == info.Revision && now.Chart == "" {
			now.Chart, now.AppVersion = snapshot.Chart+"-"+snapshot.ChartVersion, snapshot.AppVersion
		}
	}
	return now
}

// deployedOf returns the deployed revision that a status reports.
func (f *releaseFacts) deployedOf(reported *v1alpha1.ReleaseStatus) deployed {
	return deployed{reported.Deployed, f.seal.Of(reported.Content)}
}

// provenBefore reports whether the status says that a deployed revision passed its checks.
func (f *releaseFacts) provenBefore(status *v1alpha1.AppStatus, d deployed) bool {
	was := status.Release
	return was != nil && was.Proven && f.deployedOf(was) == d
}
