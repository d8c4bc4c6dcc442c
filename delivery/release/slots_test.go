package release

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeop/kubeop/delivery/release/decide"
	"github.com/kubeop/kubeop/delivery/release/records"
)

func TestSlotsOfReleasesThatAreGoneAreForgotten(t *testing.T) {
	now := time.Unix(1e9, 0)
	e := New(Options{Now: func() time.Time { return now }})
	gone, back, other := types.NamespacedName{Name: "gone"}, types.NamespacedName{Name: "back"}, types.NamespacedName{Name: "other"}
	for _, key := range []types.NamespacedName{gone, back, other} {
		e.slot(key)
		e.leave(key)
	}
	if len(e.slots) != 3 {
		t.Errorf("slots went before the index can know: %v", e.slots)
	}
	e.slot(back)
	now = now.Add(records.Stale + time.Second)
	e.leave(other)
	if e.slots[gone] != nil || e.slots[back] == nil || e.slots[other] == nil || len(e.left) != 1 {
		t.Errorf("slots %v, left %v", e.slots, e.left)
	}
}

// TestSlotsOfNamesThatCameToNothingAreForgotten: a tenant may give a release any number of names. What is under way stays.
func TestSlotsOfNamesThatCameToNothingAreForgotten(t *testing.T) {
	now := time.Unix(1000, 0)
	e := New(Options{Now: func() time.Time { return now }})
	key := func(i int) types.NamespacedName { return types.NamespacedName{Namespace: "acme", Name: fmt.Sprint(i)} }
	working := e.slot(key(-1))
	working.action = decide.Upgrade
	for i := range maxUnused {
		e.slot(key(i))
	}
	if len(e.slots) != maxUnused+1 {
		t.Errorf("%d slots are kept within a day, want %d", len(e.slots), maxUnused+1)
	}
	now = now.Add(unusedFor)
	recent := e.slot(key(0))
	for i := range maxUnused {
		e.slot(key(maxUnused + i))
	}
	if len(e.slots) > maxUnused+3 {
		t.Errorf("%d slots are kept", len(e.slots))
	}
	if e.slot(key(-1)) != working || e.slot(key(0)) != recent {
		t.Error("a slot that is in use is forgotten")
	}
}
