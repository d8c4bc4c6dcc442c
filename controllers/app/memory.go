package app

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/apply"
	"github.com/kubeop/kubeop/delivery/expr"
	"github.com/kubeop/kubeop/delivery/fetch/cache"
	"github.com/kubeop/kubeop/delivery/health"
)

// How long work may go on before the status tells of it, a removal, and the waiting in line when many apps change at once. Most
// end sooner, and a status that the next one replaces at once is a write for nobody.
const (
	patience       = 2 * time.Second
	farewell       = 10 * time.Second
	patienceInLine = 30 * time.Second
)

// memory is what is remembered of apps between two Reconciles. Losing it, as a restart does, costs a few requests.
type memory struct {
	mu   sync.Mutex
	apps map[types.UID]*remembered
}

// remembered is what is remembered of one app. Only its Reconcile uses it, and no app is reconciled twice at once.
type remembered struct {
	// phase is the work that is waited for, and since when.
	phase string
	since time.Time
	// written is when this process last changed the app's objects. What was unhealthy before says nothing of them.
	written time.Time
	// floors are the resourceVersions, by inventory ID, in which the objects were written: what a watch shows in an older
	// one says nothing of them.
	floors map[string]string
	// wrote are the floors of a moment ago, whether they still matter for health or not.
	wrote map[string]string
	// inventory is what the last pass over an app that is not Helm's recorded and the status does not tell yet, as a pass that
	// only waits is quiet; nil for nothing.
	inventory *v1alpha1.Inventory
	// entries record the objects of the given revision of a release, until the status does.
	release  string
	revision int
	content  string
	entries  []v1alpha1.InventoryEntry
	// declared is what the app was made from last, and declaredAt since when; source is the revision of its source then, and
	// staleSince since when both are so: objects that left the source are there no longer than that.
	declared               about
	source                 string
	declaredAt, staleSince time.Time
	// silent are siblings that were found to have said nothing of what they are about.
	silent map[string]silence
	// wokeAt is when siblings that have yet to say what they declare were last woken.
	wokeAt time.Time
	// compiled are the expressions of dependsOn, by their text, and checks those of healthCheckExprs, both of the
	// generation that they were compiled for; answers is what the former said of other objects.
	compiledFor int64
	compiled    map[string]*expr.Expr
	checks      *health.Checks
	answers     map[string]answer
	// inStep: the watches of all that the app was recorded to hold when this process began had their first lists.
	inStep bool
	// hook is the Job of a hook that was last seen running; hooksSeen: what an earlier process left was looked for.
	hook      string
	hooksSeen bool
	// retried is the last reconcile request for which a build was tried again.
	retried string
	// ended is the action whose reason was last told of.
	ended time.Time
	// asked is the question with which the source was last asked for, and follows the source.
	asked   cache.Question
	follows string
	// cause is what the source was last asked for; see causeOf.
	cause string
	// drift is what was found to differ when the objects were in the state that the key stands for.
	driftKey string
	drift    []string
	// deviating is what is known of objects that others changed, by inventory ID, where that is only told. unclear says why it
	// could not be found out of some, and uncompared counts those that wait to be compared.
	deviating  map[string]deviating
	unclear    []string
	uncompared int
	// corrected is what was put back, until the status tells it; corrections counts how often that was in a row, and
	// correctedAt is when it last was.
	corrected   string
	corrections int
	correctedAt time.Time
	image       imageMemory
	// retention is what was last told of StatefulSets that keep their claims against their manifests.
	retention string
	// mounts are claims of claimName that were seen to exist, for the generation that they were looked for.
	mounts    map[string]bool
	mountsFor int64
}

// maxSilent is how many siblings are remembered to have said nothing: apps come and go while the one that waits stays.
const maxSilent = 1000

// silence is what somebody says nothing of, and since when that is known.
type silence struct {
	about about
	since time.Time
}

func (m *memory) of(app *v1alpha1.App) *remembered {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.apps == nil {
		m.apps = map[types.UID]*remembered{}
	}
	r, ok := m.apps[app.UID]
	if !ok {
		r = &remembered{}
		m.apps[app.UID] = r
	}
	return r
}

func (m *memory) forget(app *v1alpha1.App) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.apps, app.UID)
}

// began returns since when the phase lasts.
func (r *remembered) began(phase string, now time.Time) time.Time {
	if r.phase != phase {
		r.phase, r.since = phase, now
	}
	return r.since
}

// settle forgets what matters only while work is under way.
func (r *remembered) settle() { r.phase, r.floors = "", nil }

// lag is how far a watch may be behind what was written.
const lag = 10 * time.Second

// late reports whether a watch had the time to show what was written last.
func (r *remembered) late(now time.Time) bool { return now.Sub(r.written) > lag }

// recent returns the floors of what this process wrote a moment ago, and forgets older ones.
func (r *remembered) recent(now time.Time) map[string]string {
	if r.late(now) {
		r.wrote = nil
	}
	return r.wrote
}

// writes notes the versions in which objects were written now. Those of a moment ago still count: a pass that failed in part
// is followed by one that writes only the rest.
func (r *remembered) writes(result apply.Result, now time.Time) {
	last, all := r.recent(now), map[string]string{}
	for _, e := range result.Entries {
		if version := cmp.Or(result.Written[e.ID], last[e.ID]); version != "" {
			all[e.ID] = version
		}
	}
	r.floors, r.wrote, r.written = all, all, now
}

// delivers notes what is delivered from now on.
func (r *remembered) delivers(declared about, source string, now time.Time) {
	if r.declared != declared || r.source != source {
		r.staleSince, r.wokeAt = now, time.Time{}
	}
	if r.declared != declared {
		r.declaredAt = now
	}
	r.declared, r.source = declared, source
}

// wakes reports whether to wake siblings: once for each revision, and then seldom. Two that wait for each other would
// otherwise wake each other all the time.
func (r *remembered) wakes(now time.Time) bool {
	if now.Sub(r.wokeAt) < lastLook {
		return false
	}
	r.wokeAt = now
	return true
}

// silence returns for how long a sibling has been heard saying nothing of what it is about, while what left the source is
// the same.
func (r *remembered) silence(sibling string, what about, now time.Time) time.Duration {
	was := r.silent[sibling]
	if was.about != what || was.since.Before(r.staleSince) {
		was = silence{what, now}
		if r.silent == nil || len(r.silent) >= maxSilent {
			r.silent = map[string]silence{} // Whoever says nothing is found to do so again.
		}
		r.silent[sibling] = was
	}
	return now.Sub(was.since)
}

// told forgets what the status now says.
func (r *remembered) told(app *v1alpha1.App) {
	was := app.Status.Release
	if was != nil && was.Name == r.release && was.Deployed == r.revision && was.Content == r.content && slices.Equal(app.Status.Inventory.Entries, r.entries) {
		r.release, r.revision, r.content, r.entries = "", 0, "", nil
	}
	if r.corrected != "" && r.corrected == conditions.GetMessage(app, v1alpha1.DriftedCondition) {
		r.corrected = ""
	}
}

// wait ends a step that waits for an action of the release engine, which wakes the app when it has ended: at first
// quietly, and once it lasts with a message.
func (r *Reconciler) wait(s *scope, phase string, limit time.Duration, message error) error {
	return r.waitLooking(s, phase, limit, func(time.Duration) time.Duration { return lastLook }, message)
}

// waitInLine is wait for an action that has not begun. The engine calls the app when its turn comes, and there may be
// thousands before it.
func (r *Reconciler) waitInLine(s *scope, phase string, message error) error {
	return r.waitLooking(s, phase+" in line", patienceInLine, func(time.Duration) time.Duration { return time.Minute }, message)
}

// waitLooking is wait for what no event ends: how soon to look again depends on how long it lasts.
func (r *Reconciler) waitLooking(s *scope, phase string, limit time.Duration, look func(waited time.Duration) time.Duration, message error) error {
	now := r.Clock.Now()
	waited := now.Sub(s.memory.began(phase, now))
	if waited < limit {
		return step.Soon(min(look(waited), limit-waited))
	}
	return step.Wait(v1alpha1.ProgressingReason, look(waited), "%w", message)
}

// lastLook is the longest until something that is waited for is looked at again.
const lastLook = 15 * time.Second

// nextLook is when to look again at what has been waited for that long, where no event brings it: after a tenth of the
// time, from 1 to 15 seconds.
func nextLook(waited time.Duration) time.Duration {
	return min(max(waited/10, time.Second), lastLook)
}
