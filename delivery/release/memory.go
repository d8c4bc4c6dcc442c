package release

import (
	"cmp"
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeop/kubeop/delivery/release/cluster"
	"github.com/kubeop/kubeop/delivery/release/decide"
	"github.com/kubeop/kubeop/delivery/release/fault"
	"github.com/kubeop/kubeop/delivery/release/fence"
	"github.com/kubeop/kubeop/delivery/release/pool"
	"github.com/kubeop/kubeop/delivery/release/records"
)

// slot is the place of one release in the pool; at most one action runs in it.
type slot = pool.Slot[memory]

// memory is what this process remembers of a release. The slot's lock guards everything except records.
type memory struct {
	// records caches the release's records; it has its own lock.
	records records.Memo
	// last is the last action. cause is the last one that failed because of its input or before it started.
	last, cause decide.Attempt
	// applied are the objects of a deployed revision, until the caller has recorded them.
	applied applied
	// gone is the uninstalled revision whose objects are known to be gone.
	gone int
	// leaving are the objects of an uninstalled revision that still exist.
	leaving leaving
	// begun is the last request to force or to reset for which an action failed. accepted is the last one that was carried out without a
	// revision whose labels record it.
	begun, accepted string
	// reason is why the next action starts, if there is another reason than a new input. ended is about the last action.
	reason string
	ended  conclusion
	// fenced: another process took the release over.
	fenced bool
}

// job is an action to run.
type job struct {
	act   decide.Act
	trial string
	why   string
	// request is the label value of Request.Manual.ID, if the action carries out that request.
	request string
	// tenant is the tenant whose share of the workers the action uses.
	tenant string
	run    func(context.Context, *pool.Worker) result
}

// result is the result of an action.
type result struct {
	err error
	// environment: the environment caused err, not the input.
	environment bool
	// stored: a revision records it.
	stored bool
	// log holds Helm's last lines when it failed.
	log []string
	// applied are the objects of the revision it deployed.
	applied applied
	// gone is the uninstalled revision whose objects are gone.
	gone int
}

// conclusion is about an action that has ended: why it started, and when it ended.
type conclusion struct {
	why string
	at  time.Time
}

// applied are the objects of one revision.
type applied struct {
	revision int
	objects  []cluster.Applied
	shared   []cluster.Shared
	// log holds the API server's warnings.
	log []string
}

// start runs the job in the pool, and records its result. The caller holds the slot's lock.
func (e *Engine) start(ctx context.Context, s *slot, app types.NamespacedName, j job) error {
	j.why = cmp.Or(j.why, s.Memory.reason)
	err := e.pool.Start(ctx, s, pool.Action{
		Name: string(j.act), Input: j.trial, Why: j.why, App: app, Tenant: j.tenant,
		Run: func(ctx context.Context, w *pool.Worker) func() {
			r := safely(ctx, j, w)
			return func() { s.Memory.record(j, r, e.opts.Now()) }
		},
	})
	if err == nil {
		s.Memory.reason = ""
	}
	return err
}

// safely runs a job and returns a panic as its error.
func safely(ctx context.Context, j job, w *pool.Worker) (r result) {
	defer fault.Recovered(string(j.act), &r.err)
	return j.run(ctx, w)
}

// settle forgets the last action. It keeps a test of the deployed revision that could not run, because that is retried when it is due.
func (m *memory) settle(trial string) {
	m.fenced = false
	if m.last.Act != decide.Probe || m.last.Trial != trial {
		m.last = decide.Attempt{}
	}
}

// record remembers how an action ended.
func (m *memory) record(j job, r result, now time.Time) {
	a := decide.Attempt{Act: j.act, Trial: j.trial, Err: fault.Brief(r.err), Environment: r.environment, At: now, Log: r.log}
	if r.err != nil && !r.stored {
		a.Unstored = 1
		if m.last.Trial == j.trial && m.last.Act == j.act {
			a.Unstored += m.last.Unstored
		}
	}
	m.last = a
	if j.act == decide.Install || j.act == decide.Upgrade || j.act == decide.Probe {
		m.cause = a
	}
	if r.err != nil && j.request != "" {
		m.begun = j.request
		if !r.environment && (j.act == decide.Install || j.act == decide.Upgrade) {
			m.accepted = j.request
		}
	}
	m.applied, m.gone, m.leaving = r.applied, r.gone, leaving{}
	if j.act != decide.Probe {
		m.ended = conclusion{why: j.why, at: a.At}
	}
	m.fenced = errors.Is(r.err, fence.ErrFenced)
}
