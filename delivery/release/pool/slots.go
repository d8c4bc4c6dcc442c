package pool

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Slot is the place of one release: at most one action is in it. Its lock guards the action and Memory. Hold it from a decision until the
// action has started, so that of two requests at once only one acts.
type Slot[M any] struct {
	sync.Mutex
	// Memory is what the user of the pool remembers of the release. It is lost with the slot.
	Memory M

	// action is queued or runs; its Name is empty when there is none.
	action Action
	// working is true when the action has a worker.
	working bool
	// superseded is closed when another input is wanted than that of the action.
	superseded chan struct{}
	// forgotten: the namespace is gone.
	forgotten atomic.Bool
	// used is when the slot was last used; the lock of slots guards it.
	used time.Time
}

// Busy reports whether an action is queued or runs. The slot is locked by the caller, here and below.
func (s *Slot[M]) Busy() bool { return s.action.Name != "" }

// Action is the action that is queued or runs; empty when there is none.
func (s *Slot[M]) Action() Action { return s.action }

// Queued reports whether the action has no worker yet.
func (s *Slot[M]) Queued() bool { return !s.working }

// Supersede notes that the action's input is no longer wanted.
func (s *Slot[M]) Supersede() {
	if !s.IsSuperseded() {
		close(s.superseded)
	}
}

// Superseded is closed when the action's input is no longer wanted. Only the action calls it, without the lock.
func (s *Slot[M]) Superseded() <-chan struct{} { return s.superseded }

// IsSuperseded reports whether the action's input is no longer wanted. The action may call it without the lock.
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

// free takes the action out of the slot, and then calls ended if the action has run.
func (s *Slot[M]) free(ended func()) {
	s.Lock()
	defer s.Unlock()
	s.action, s.working = Action{}, false
	if ended != nil {
		ended()
	}
}

// slots are those of all releases.
type slots[M any] struct {
	now    func() time.Time
	linger time.Duration

	mu    sync.Mutex
	byKey map[types.NamespacedName]*Slot[M]
	// left is when Leave was called for a release.
	left map[types.NamespacedName]time.Time
	// limit is the number of slots from which unused ones are dropped.
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

// From maxUnused slots on, those unused for unusedFor are dropped, because a tenant may give a chart any number of release names that never
// become releases. The content of a dropped slot is read again, as after a restart.
const (
	maxUnused = 10_000
	unusedFor = 24 * time.Hour
)

// dropUnused drops slots that were not used for a long time. It is called again when there are twice as many.
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
