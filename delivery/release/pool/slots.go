package pool

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Slot is the state of one release, with at most one action. Its lock guards the action and Memory. Hold the lock from a decision until the
// action has started, so that only one of two concurrent requests acts.
type Slot[M any] struct {
	sync.Mutex
	// Memory is the state that the pool's user keeps for the release. It is lost with the slot.
	Memory M

	// action is queued or running; its Name is empty if there is none.
	action Action
	// working is true when the action has a worker.
	working bool
	// superseded is closed when another input than the action's is wanted.
	superseded chan struct{}
	// forgotten: the namespace is gone.
	forgotten atomic.Bool
	// used is when the slot was last used; the lock of slots guards it.
	used time.Time
}

// Busy reports whether an action is queued or running. The caller has locked the slot; that is also required by the following methods.
func (s *Slot[M]) Busy() bool { return s.action.Name != "" }

// Action returns the queued or running action; empty if there is none.
func (s *Slot[M]) Action() Action { return s.action }

// Queued reports whether the action has no worker yet.
func (s *Slot[M]) Queued() bool { return !s.working }

// Supersede records that the action's input is not wanted any more.
func (s *Slot[M]) Supersede() {
	if !s.IsSuperseded() {
		close(s.superseded)
	}
}

// Superseded is closed when the action's input is not wanted any more. Only the action calls it, without the lock.
func (s *Slot[M]) Superseded() <-chan struct{} { return s.superseded }

// IsSuperseded reports whether the action's input is not wanted any more. The action may call it without the lock.
func (s *Slot[M]) IsSuperseded() bool {
	select {
	case <-s.superseded:
		return true
	default:
		return false
	}
}

func (s *Slot[M]) occupy(a Action) {
	s.action, s.superseded = a, make(chan struct{})
}

func (s *Slot[M]) begin() {
	s.Lock()
	defer s.Unlock()
	s.working = true
}

// free removes the action from the slot, and then calls ended if the action has run.
func (s *Slot[M]) free(ended func()) {
	s.Lock()
	defer s.Unlock()
	s.action, s.working = Action{}, false
	if ended != nil {
		ended()
	}
}

// slots are the slots of all releases.
type slots[M any] struct {
	now    func() time.Time
	linger time.Duration

	mu    sync.Mutex
	byKey map[types.NamespacedName]*Slot[M]
	// left is when Leave was called for a release.
	left map[types.NamespacedName]time.Time
	// limit is the number of slots at which unused ones are dropped.
	limit int
}

func newSlots[M any](now func() time.Time, linger time.Duration) slots[M] {
	return slots[M]{
		now: now, linger: linger, limit: maxUnused,
		byKey: map[types.NamespacedName]*Slot[M]{}, left: map[types.NamespacedName]time.Time{},
	}
}

func (t *slots[M]) of(key types.NamespacedName) *Slot[M] {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.left, key)
	s, ok := t.byKey[key]
	if !ok {
		if len(t.byKey) >= t.limit {
			t.dropUnused()
		}
		s = &Slot[M]{}
		t.byKey[key] = s
	}
	s.used = t.now()
	return s
}

// Above maxUnused slots, those that were not used for unusedFor are dropped, because a tenant may give a chart any number of release names
// that never become releases. The state of a dropped slot is read again, as after a restart.
const (
	maxUnused = 10_000
	unusedFor = 24 * time.Hour
)

// dropUnused drops slots that were not used for a long time. It runs again when there are twice as many.
func (t *slots[M]) dropUnused() {
	now := t.now()
	maps.DeleteFunc(t.byKey, func(_ types.NamespacedName, s *Slot[M]) bool {
		if now.Sub(s.used) < unusedFor || !s.TryLock() {
			return false
		}
		defer s.Unlock()
		return !s.Busy()
	})
	t.limit = max(maxUnused, 2*len(t.byKey))
}

func (t *slots[M]) leave(key types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	t.left[key] = now
	for other, since := range t.left {
		if now.Sub(since) > t.linger {
			delete(t.left, other)
			delete(t.byKey, other)
		}
	}
}

func (t *slots[M]) forget(namespace string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key, s := range t.byKey {
		if key.Namespace == namespace {
			s.forgotten.Store(true)
			delete(t.byKey, key)
			delete(t.left, key)
		}
	}
}
