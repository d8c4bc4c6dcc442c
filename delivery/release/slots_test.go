package release

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
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
	now = now.Add(stale + time.Second)
	e.leave(other)
	if e.slots[gone] != nil || e.slots[back] == nil || e.slots[other] == nil || len(e.left) != 1 {
		t.Errorf("slots %v, left %v", e.slots, e.left)
	}
}
