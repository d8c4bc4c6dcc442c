package heap

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"
)

func TestASmallHeapGrowsToTheFloor(t *testing.T) {
	const mib = 1 << 20
	for name, tc := range map[string]struct {
		last use
		want int
	}{
		"nothing is known yet": {use{}, 1200},
		"next to nothing":      {use{heap: mib, roots: mib}, 1200},
		"small":                {use{heap: 12 * mib}, 300},
		"with roots":           {use{heap: 12 * mib, roots: 4 * mib}, 225},
		"just below the floor": {use{heap: 48*mib - 1}, 0},
		"at the floor":         {use{heap: 48 * mib}, 0},
		"beyond":               {use{heap: 500 * mib}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := growth(48*mib, tc.last); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}

func TestTheHeapAboveTheFloorAtMostDoubles(t *testing.T) {
	const mib = 1 << 20
	for name, tc := range map[string]struct {
		percent int
		last    use
		lasting uint64
		want    int
	}{
		"nothing is known yet":   {30, use{}, 0, 0},
		"small":                  {30, use{heap: 48 * mib}, 48 * mib, 0},
		"a little beyond":        {30, use{heap: 60 * mib}, 60 * mib, 20},
		"middling":               {30, use{heap: 120 * mib}, 120 * mib, 50},
		"middling, small before": {30, use{heap: 120 * mib}, 60 * mib, 10},
		"with roots":             {30, use{heap: 120 * mib, roots: 30 * mib}, 120 * mib, 40},
		"large":                  {30, use{heap: 200 * mib}, 200 * mib, 30},
		"less memory":            {10, use{heap: 100 * mib}, 100 * mib, 20},
	} {
		t.Run(name, func(t *testing.T) {
			if got := double(tc.percent, 48*mib, tc.last, tc.lasting); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}

func TestTheGoalOfTheCollectorFollowsTheHeapInUse(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	const floor = 64 << 20
	Tune(40, floor)
	settles(t, "a small heap", func(goal uint64) bool { return goal > floor*9/10 && goal < floor*11/10 })
	middling := make([]byte, 2*floor)
	settles(t, "a middling heap", func(goal uint64) bool { return goal > 3*floor*9/10 && goal < 3*floor*11/10 })
	large := make([]byte, 4*floor)
	settles(t, "a large heap", func(goal uint64) bool { return goal > 6*floor*13/10 && goal < 6*floor*16/10 })
	runtime.KeepAlive(middling)
	runtime.KeepAlive(large)
	settles(t, "a heap that is small again", func(goal uint64) bool { return goal > floor*9/10 && goal < floor*11/10 })
}

func settles(t *testing.T, when string, at func(goal uint64) bool) {
	t.Helper()
	sample := []metrics.Sample{{Name: "/gc/heap/goal:bytes"}}
	for range 50 {
		runtime.GC()
		time.Sleep(10 * time.Millisecond) // Cleanups run in another goroutine.
		if metrics.Read(sample); at(sample[0].Value.Uint64()) {
			return
		}
	}
	t.Errorf("%s: the next collection is to begin at %d MiB", when, sample[0].Value.Uint64()>>20)
}
