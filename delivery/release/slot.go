package release

import (
	"errors"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kubeop/kubeop/delivery/release/fence"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeop/kubeop/delivery/release/cluster"
	"github.com/kubeop/kubeop/delivery/release/decide"
	"github.com/kubeop/kubeop/delivery/release/fault"
	"github.com/kubeop/kubeop/delivery/release/records"
)

// slot is the place of one release: at most one action is in it.
type slot struct {
	// memory of the release's records; it has its own lock.
	memory records.Memo

	// mu is held while deciding, so that two requests at once do not both act.
	mu sync.Mutex
	// action that is queued or, when working, runs on trial; settled when there is none.
	action  decide.Act
	working bool
	trial   string
	why     string
	// superseded is closed when another input is wanted.
	superseded chan struct{}
	// last is the last action, cause the last that failed because of its input or on the way to it.
	last, cause decide.Attempt
	// applied are the objects of a deployed revision, until the caller knows them.
	applied applied
	// gone is the uninstalled revision whose objects were seen to be gone.
	gone int
	// leaving are its objects that are not.
	leaving leaving
	// begun is the last request to force or to reset for which an action failed, heeded the last that is done with though no
	// revision tells of it.
	begun, heeded string
	// because is why the next action is begun, if not for its own reason; ended tells of the last one.
	because string
	ended   conclusion
	// forgotten: the namespace is gone.
	forgotten atomic.Bool
	// used is when it was last asked for; the engine's lock guards it.
	used time.Time
	// fenced: another process took over the release.
	fenced bool
}

func (e *Engine) slot(key types.NamespacedName) *slot {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.left, key)
	s, ok := e.slots[key]
	if !ok {
		if len(e.slots) >= e.crowded {
			e.forgetUnused()
		}
		s = &slot{}
		e.slots[key] = s
	}
	s.used = e.opts.Now()
	return s
}

// maxUnused is how many slots are kept at least before those are dropped of which nobody asked for unusedFor: of names that
// charts were given and that never became releases. What a slot remembers is found out again, as after a restart.
const (
	maxUnused = 10_000
	unusedFor = 24 * time.Hour
)

// forgetUnused drops slots that nobody asked for in a long time. It is called again when there are twice as many.
func (e *Engine) forgetUnused() {
	now := e.opts.Now()
	maps.DeleteFunc(e.slots, func(_ types.NamespacedName, s *slot) bool {
		if now.Sub(s.used) < unusedFor || !s.mu.TryLock() {
			return false
		}
		defer s.mu.Unlock()
		return s.action == decide.Settled
	})
	e.crowded = max(maxUnused, 2*len(e.slots))
}

// leave has the slot of a release that is gone forgotten, once the index is sure to know it, too, unless the release comes
// back.
func (e *Engine) leave(key types.NamespacedName) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.opts.Now()
	e.left[key] = now
	for other, since := range e.left {
		if now.Sub(since) > records.Stale {
			delete(e.left, other)
			delete(e.slots, other)
		}
	}
}

// Forget drops what is remembered of a namespace that is gone, and what is queued in it. What runs there ends by itself.
func (e *Engine) Forget(namespace string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for key, s := range e.slots {
		if key.Namespace == namespace {
			s.forgotten.Store(true)
			delete(e.slots, key)
			delete(e.left, key)
		}
	}
	if err := e.trials.Forget(namespace); err != nil {
		e.opts.Log.Error(err, "Forgetting what was evaluated in a namespace that is gone", "namespace", namespace)
	}
}

// supersede ends the waiting of an action for another input. The slot is locked by the caller.
func (s *slot) supersede() {
	select {
	case <-s.superseded:
	default:
		close(s.superseded)
	}
}

// isSuperseded is whether the action's input is no longer wanted. Only the action asks.
func (s *slot) isSuperseded() bool {
	select {
	case <-s.superseded:
		return true
	default:
		return false
	}
}

// settle forgets the last action, unless it was in vain on the tests of what is deployed, which are tried again when that is
// due. The slot is locked by the caller.
func (s *slot) settle(trial string) {
	s.fenced = false
	if s.last.Act != decide.Probe || s.last.Trial != trial {
		s.last = decide.Attempt{}
	}
}

// result is what an action came to.
type result struct {
	err error
	// world: err says nothing about the input.
	world bool
	// stored: a revision tells of it.
	stored bool
	// log holds Helm's last lines when it failed.
	log []string
	// applied are the objects of the revision it deployed.
	applied applied
	// gone is the uninstalled revision whose objects are gone.
	gone int
}

// conclusion tells of an action that has ended: why it was begun, and when it ended.
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

func (s *slot) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.working = true
}

// abandon frees the slot of an action that never began.
func (s *slot) abandon() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.action = decide.Settled
}

func (s *slot) finish(e *Engine, j job, r result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.action, s.working = decide.Settled, false
	a := decide.Attempt{Act: j.act, Trial: j.trial, Err: fault.Brief(r.err), World: r.world, At: e.opts.Now(), Log: r.log}
	if r.err != nil && !r.stored {
		a.Unstored = 1
		if s.last.Trial == j.trial && s.last.Act == j.act {
			a.Unstored += s.last.Unstored
		}
	}
	s.last = a
	if j.act == decide.Install || j.act == decide.Upgrade || j.act == decide.Probe {
		s.cause = a
	}
	if r.err != nil && j.asked != "" {
		s.begun = j.asked
		if !r.world && (j.act == decide.Install || j.act == decide.Upgrade) {
			s.heeded = j.asked
		}
	}
	s.applied, s.gone, s.leaving = r.applied, r.gone, leaving{}
	if j.act != decide.Probe {
		s.ended = conclusion{why: j.why, at: a.At}
	}
	s.fenced = errors.Is(r.err, fence.ErrFenced)
}
