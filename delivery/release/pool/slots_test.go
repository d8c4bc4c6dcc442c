package pool

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

func TestLeaveDropsTheSlotUnlessItIsUsedAgain(t *testing.T) {
	now := time.Unix(1e9, 0)
	p := New[int](Options{Linger: time.Minute, Now: func() time.Time { return now }})
	gone, back, other := types.NamespacedName{Name: "gone"}, types.NamespacedName{Name: "back"}, types.NamespacedName{Name: "other"}
	for _, key := range []types.NamespacedName{gone, back, other} {
		p.Slot(key)
		p.Leave(key)
	}
	if len(p.slots.byKey) != 3 {
		t.Errorf("slots went before the index can know: %v", p.slots.byKey)
	}
	p.Slot(back)
	now = now.Add(time.Minute)
	p.Leave(other)
	if p.slots.byKey[gone] == nil {
		t.Error("a slot went at the end of its time and not after it")
	}
	now = now.Add(1)
	p.Leave(other)
	if p.slots.byKey[gone] != nil || p.slots.byKey[back] == nil || p.slots.byKey[other] == nil || len(p.slots.left) != 1 {
		t.Errorf("slots %v, left %v", p.slots.byKey, p.slots.left)
	}
}

// TestUnusedSlotsAreDropped: a tenant may give a release any number of names. What is under way stays.
func TestUnusedSlotsAreDropped(t *testing.T) {
	now := time.Unix(1000, 0)
	p := New[int](Options{Linger: time.Minute, Now: func() time.Time { return now }})
	key := func(i int) types.NamespacedName { return types.NamespacedName{Namespace: "acme", Name: fmt.Sprint(i)} }
	working := p.Slot(key(-1))
	working.action.Name = "upgrading"
	for i := range maxUnused {
		p.Slot(key(i))
	}
	if len(p.slots.byKey) != maxUnused+1 {
		t.Errorf("%d slots are kept within a day, want %d", len(p.slots.byKey), maxUnused+1)
	}
	now = now.Add(unusedFor)
	recent := p.Slot(key(0))
	for i := range maxUnused {
		p.Slot(key(maxUnused + i))
	}
	if len(p.slots.byKey) > maxUnused+3 {
		t.Errorf("%d slots are kept", len(p.slots.byKey))
	}
	if p.Slot(key(-1)) != working || p.Slot(key(0)) != recent {
		t.Error("a slot that is in use is forgotten")
	}
}

// TestASlotThatAReconcileHoldsIsKept: the Reconcile is about to start an action in it.
func TestASlotThatAReconcileHoldsIsKept(t *testing.T) {
	now := time.Unix(1000, 0)
	p := New[int](Options{Now: func() time.Time { return now }})
	key := func(i int) types.NamespacedName { return types.NamespacedName{Name: fmt.Sprint(i)} }
	held := p.Slot(key(0))
	for i := range maxUnused - 1 {
		p.Slot(key(i + 1))
	}
	now = now.Add(unusedFor)
	held.Lock()
	p.Slot(key(maxUnused))
	held.Unlock()
	if len(p.slots.byKey) != 2 || p.Slot(key(0)) != held {
		t.Errorf("%d slots are kept, want the held and the new one", len(p.slots.byKey))
	}
}

func TestAnActionIsSupersededOnce(t *testing.T) {
	p := New[int](Options{Now: time.Now})
	s := p.Slot(types.NamespacedName{Name: "web"})
	s.Lock()
	defer s.Unlock()
	s.occupy(Action{Name: "upgrading"})
	if s.IsSuperseded() {
		t.Error("it is superseded before anything newer is wanted")
	}
	if got := s.Action(); got.Name != "upgrading" || !s.Queued() || !s.Busy() {
		t.Errorf("the action is %+v, queued: %t, busy: %t", got, s.Queued(), s.Busy())
	}
	if s.working = true; s.Queued() {
		t.Error("an action that has a worker is queued")
	}
	ends := s.Superseded()
	for range 2 { // The second call must not close the channel again.
		s.Supersede()
	}
	if !s.IsSuperseded() {
		t.Error("it is not superseded")
	}
	select {
	case <-ends:
	default:
		t.Error("what waits for it is not notified")
	}
	s.occupy(Action{Name: "upgrading"})
	if s.IsSuperseded() {
		t.Error("the next action is superseded")
	}
}
