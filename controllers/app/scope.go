package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/refusal"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/apply"
	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/delivery/digest"
	"github.com/kubeop/kubeop/delivery/fetch/folder"
	"github.com/kubeop/kubeop/delivery/inventory"
	"github.com/kubeop/kubeop/delivery/journal"
	"github.com/kubeop/kubeop/delivery/mask"
	"github.com/kubeop/kubeop/delivery/own"
	"github.com/kubeop/kubeop/delivery/release"
	"github.com/kubeop/kubeop/delivery/release/charts"
)

// scope holds the facts of one Reconcile.
type scope struct {
	app *v1alpha1.App
	// memory is what the last Reconciles of this process left.
	memory *remembered
	// owner and client are set by resolve: whose the app is, and the deployer's client.
	owner  own.Owner
	client client.Client
	// clusterKinds are what the app may hold beside namespaced objects, set by resolve.
	clusterKinds []string
	// limits are what administrators allow each app of the tenant, set by resolve.
	limits budget.App
	// storeBytes and renderedBytes are the tenant's bounds of these names, set by resolve.
	storeBytes, renderedBytes int64
	// rendered is what the app delivers by renderedBytes, as far as this process counted it.
	rendered int64
	// folder, source, chart and revision are set by fetch: the app's own folder where the spec refers to it, what a Git app
	// is made from, the chart of a Helm app, and what they are together.
	folder   *folder.Folder
	source   fetched
	chart    charts.Chart
	revision string
	// reads are what the last build of a Git app read of a commit, and what a chart there is made from; nil if that is not known.
	reads folder.Reads
	// objects and values are set by render; values only for a Helm app, whose objects are in the inventory.
	objects []*unstructured.Unstructured
	values  map[string]any
	// sensitive is what Secrets hold that values were taken from, and what was decrypted; no message may show it.
	sensitive []string
	// inventory and applied are set by apply and release; applied once the revision is in the cluster as a whole.
	inventory v1alpha1.Inventory
	applied   bool
	// told is set once the status tells what is recorded.
	told bool
	// wrote is set when apply wrote objects.
	wrote bool
	// declared is set when objects are all that the source declares. ceded counts objects that left it and are left for
	// other apps; waiting names them when that lasts.
	declared bool
	ceded    int
	waiting  []string
	// hears is how long siblings may still take to say what they declare.
	hears time.Duration
	// held are the objects that left the source and wait for somebody to confirm their deletion, set by apply.
	held []string
	// heldToken is what confirms it, "" where nothing is held.
	heldToken string
	// unhealthySince is set by health.
	unhealthySince *metav1.Time

	// again is when to look again though all is well, 0 for at the interval.
	again time.Duration

	// hooks are set by preHooks, and hooksPlanned with them: those of the revision at hand. forced: one was made again
	// because somebody asked for it.
	hooks        []*hookRun
	hooksPlanned bool
	forced       bool
	// done is set when every step has succeeded.
	done  bool
	image imageFacts
	// stale is set by fetch when the source could not be asked; what is delivered is then what it answered last. kept: that is not
	// at hand either, so what runs is only looked at.
	stale staleFacts
	kept  bool
	helm  helmFacts
	data  dataFacts
	// current are the condition Current and its event; none while it is not known whether a newer version is refused.
	current []step.Note
}

// helmFacts are the facts of a Helm app's release.
type helmFacts struct {
	// outcome is what the engine found, nil before it was asked.
	outcome *release.Outcome
	// accepted: what the annotations forceAt and resetAt ask for has begun.
	accepted bool
	// notes are the conditions Remediated and Drifted, the latter of any app.
	notes []step.Note
	// proven is set when health and tests found the deployed revision good.
	proven bool
	// seal is the Reconciler's.
	seal digest.Seal
}

func newScope(app *v1alpha1.App, m *memory, seal digest.Seal) *scope {
	s := &scope{helm: helmFacts{seal: seal}, app: app, memory: m.of(app), inventory: app.Status.Inventory, unhealthySince: app.Status.UnhealthySince, held: app.Status.Held, heldToken: app.Status.HeldToken}
	s.memory.told(app)
	if kept := s.memory.inventory; kept != nil {
		s.inventory = *kept
	}
	if s.unhealthySince != nil && s.unhealthySince.Time.Before(s.memory.written) {
		s.unhealthySince = nil
	}
	return s
}

// recall takes up what an earlier process began to make. Of a Helm app the release tells it.
func (r *Reconciler) recall(ctx context.Context, s *scope) (err error) {
	if s.app.Spec.Helm == nil && s.memory.inventory == nil {
		s.inventory, err = r.recorded(ctx, s.app)
	}
	return err
}

// recorded returns what the app's status tells that it made, and what an earlier process began to make and did not come to tell.
func (r *Reconciler) recorded(ctx context.Context, app *v1alpha1.App) (v1alpha1.Inventory, error) {
	told := v1alpha1.Inventory{Entries: apply.Sealed(app.Status.Inventory.Entries, r.Seal)}
	begun, err := r.Journal.Of(ctx, app.UID)
	if untold := inventory.Without(begun, told.Entries); len(untold) > 0 {
		told = inventory.Join(told.Entries, untold)
	}
	return told, err
}

// announce has entries that are new recorded before their objects are made.
func (r *Reconciler) announce(ctx context.Context, s *scope, entries []v1alpha1.InventoryEntry) error {
	err := r.Journal.Record(ctx, s.app.UID, inventory.Without(entries, s.inventory.Entries))
	s.inventory = v1alpha1.Inventory{Entries: entries}
	if errors.Is(err, journal.ErrFull) {
		return step.Checkpoint(ctx)
	}
	return err
}

// StatusWritten implements step.Notified: what is recorded is in the status.
func (s *scope) StatusWritten() { s.told = true }

// keep has the next pass go on from this one's inventory, where the status does not tell it.
func (r *Reconciler) keep(s *scope) {
	s.memory.inventory = nil
	if s.app.Spec.Helm != nil || s.app.Spec.Suspend {
		return
	}
	if !s.told {
		kept := s.inventory
		s.memory.inventory = &kept
		return
	}
	r.Journal.Forget(s.app.UID)
}

// Record writes the facts into the status.
func (s *scope) Record() {
	status := &s.app.Status
	status.Inventory = s.inventory
	status.UnhealthySince = s.unhealthySince
	status.Held, status.HeldToken = s.held[:min(len(s.held), maxHeld)], s.heldToken
	if s.done {
		status.ObservedTree = s.app.Annotations[v1alpha1.TreeAnnotation]
	}
	if s.rendered > 0 && s.brought() {
		status.RenderedBytes = s.rendered
	}
	if s.revision != "" {
		status.LastAttemptedRevision, status.SourceDigest = s.revision, s.source.digest
	}
	if s.applied {
		status.LastAppliedRevision = s.revision
	}
	s.image.record(s.app)
	s.recordHooks()
	s.helm.record(s.app)
}

// brought reports whether this pass brought something into the cluster that the status does not tell yet. Only then it tells the size:
// an operator that begins to count writes no status for it alone.
func (s *scope) brought() bool {
	if o := s.helm.outcome; o != nil {
		was := s.app.Status.Release
		return was == nil || was.Revision != o.Release.Revision
	}
	return s.wrote || s.applied && s.app.Status.LastAppliedRevision != s.revision
}

func (h *helmFacts) record(app *v1alpha1.App) {
	status := &app.Status
	if h.accepted {
		status.LastHandledForceAt, status.LastHandledResetAt = app.Annotations[forceAnnotation], app.Annotations[resetAnnotation]
	}
	if h.outcome == nil {
		return
	}
	status.Failures, status.NextRetryAt = int64(h.outcome.Attempts), nil
	if at := h.outcome.RetryAt; !at.IsZero() {
		status.NextRetryAt = &metav1.Time{Time: at}
	}
	status.History = historyOf(sealedHistory(status.History, h.seal), h.outcome)
	if h.outcome.Release.Name == "" {
		status.Release = nil
		return
	}
	status.Release = h.release(status)
}

// release describes the newest revision. What the engine did not have to read is in the history.
func (h *helmFacts) release(status *v1alpha1.AppStatus) *v1alpha1.ReleaseStatus {
	info := h.outcome.Release
	now := &v1alpha1.ReleaseStatus{
		Name: info.Name, Revision: info.Revision, Status: info.Status, Chart: info.Chart, AppVersion: info.AppVersion,
		Deployed: h.outcome.Deployed, Content: h.outcome.Content,
		Proven: h.proven || h.provenBefore(status, known{h.outcome.Deployed, h.outcome.Content}),
	}
	for _, snapshot := range status.History {
		if snapshot.Revision == info.Revision && now.Chart == "" {
			now.Chart, now.AppVersion = snapshot.Chart+"-"+snapshot.ChartVersion, snapshot.AppVersion
		}
	}
	return now
}

// known is a deployed revision of a release, told from one of the same number after another installation by its content.
type known struct {
	revision int
	content  string
}

// knownOf is the deployed revision that a status tells.
func (h *helmFacts) knownOf(told *v1alpha1.ReleaseStatus) known {
	return known{told.Deployed, h.seal.Of(told.Content)}
}

// provenBefore reports whether a deployed revision is recorded to be good.
func (h *helmFacts) provenBefore(status *v1alpha1.AppStatus, k known) bool {
	was := status.Release
	return was != nil && was.Proven && h.knownOf(was) == k
}

// sealedHistory is a recorded history whose digests are sealed.
func sealedHistory(recorded []v1alpha1.ReleaseSnapshot, seal digest.Seal) []v1alpha1.ReleaseSnapshot {
	sealed := slices.Clone(recorded)
	for i := range sealed {
		sealed[i].Digest, sealed[i].ValuesDigest = seal.Of(sealed[i].Digest), seal.Of(sealed[i].ValuesDigest)
	}
	return sealed
}

// historyOf brings the recorded history to what Helm keeps, newest first.
func historyOf(recorded []v1alpha1.ReleaseSnapshot, outcome *release.Outcome) []v1alpha1.ReleaseSnapshot {
	known := map[int]v1alpha1.ReleaseSnapshot{}
	for _, snapshot := range slices.Concat(recorded, outcome.History) {
		known[snapshot.Revision] = snapshot
	}
	var history []v1alpha1.ReleaseSnapshot
	for revision, state := range outcome.Revisions {
		if snapshot, ok := known[revision]; ok {
			snapshot.Status = state
			history = append(history, snapshot)
		}
	}
	slices.SortFunc(history, func(a, b v1alpha1.ReleaseSnapshot) int { return b.Revision - a.Revision })
	return history
}

// Summary is Ready's message.
func (s *scope) Summary() string {
	summary := s.delivery()
	if c := conditions.Get(s.app, v1alpha1.SourceReadyCondition); c != nil && c.Status == metav1.ConditionFalse {
		summary += fmt.Sprintf("; its source cannot be asked: %s, see condition %s", c.Reason, c.Type)
	}
	for _, h := range s.hooks {
		if h.passedOver() {
			summary += fmt.Sprintf("; %s failed and was passed over", h)
		}
	}
	return summary
}

func (s *scope) delivery() string {
	if r := s.app.Status.Release; (s.helm.outcome != nil || s.kept) && r != nil {
		return fmt.Sprintf("Release %s, revision %d of chart %s, is healthy", r.Name, r.Revision, r.Chart) + s.inHold("the chart")
	}
	revision := s.revision
	if s.kept {
		revision = s.app.Status.LastAppliedRevision
	}
	summary := fmt.Sprintf("Applied revision %s: %d objects, healthy", revision, len(s.inventory.Entries)-len(s.held)-s.ceded)
	if len(s.waiting) > 0 {
		summary += "; no longer declared and left for others: " + describe(s.waiting)
	}
	return summary + s.inHold("the source")
}

// inHold says how many objects wait for confirmation, or stay whatever is confirmed.
func (s *scope) inHold(left string) string {
	switch n := len(s.held); n {
	case 0:
		return ""
	case s.retained():
		return fmt.Sprintf("; %d more left %s and stay, as status.held says", n, left)
	}
	return fmt.Sprintf("; %d more left %s and wait, as status.held says. To delete them: kubectl annotate app %s -n %s --overwrite %s=%s",
		len(s.held), left, s.app.Name, s.app.Namespace, v1alpha1.ConfirmAnnotation, s.heldToken)
}

// Notes are the conditions beside the steps', and the event that tells why an action was begun where that is not plain.
func (s *scope) Notes() []step.Note {
	notes := slices.Concat(s.imageNotes(), s.hookNotes(), s.helm.notes, s.dataNotes(), s.current)
	if o := s.helm.outcome; o != nil && o.Why != "" && o.Ended.After(s.memory.ended) {
		s.memory.ended = o.Ended
		notes = append(notes, step.Note{Reason: v1alpha1.ProgressingReason, Message: o.Why, Event: "Normal"})
	}
	return notes
}

// Heading says in front of Ready's message that a newer version of the app is refused.
func (s *scope) Heading() string { return refusal.Heading(s.app, s.current) }

// Mask hides in a message what is sensitive.
func (s *scope) Mask(text string) string { return mask.Of(s.sensitive)(text) }

// soon has the app looked at again after a while though all is well.
func (s *scope) soon(after time.Duration) {
	if s.again == 0 || after < s.again {
		s.again = after
	}
}

// Again is when to look again though all is well.
func (s *scope) Again() time.Duration { return s.again }

// Details are Helm's last words about a failed action.
func (s *scope) Details() string {
	if s.helm.outcome == nil {
		return ""
	}
	return strings.Join(s.helm.outcome.Log, "\n")
}
