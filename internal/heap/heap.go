// Package heap tunes when Go's garbage collector runs.
package heap

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

// Small is the heap size up to which garbage collection is not worth its time, in bytes. An idle operator uses a third of it. With Go's rule
// alone, collecting such a small heap would take a quarter of the processor time.
const Small = 48 << 20

// again is how long after a collection its result is read once more, because another collection may have followed.
const again = 100 * time.Millisecond

// spare is the number of bytes, for each percent of growth, by which a heap may always grow between two collections, as long as the part
// above the floor at most doubles. A percentage of a heap of 100 MiB is little memory, and collecting that often costs much time.
const spare = 2 << 20

// Tune makes Go collect garbage when the heap has grown by percent of what is in use, as GOGC does, but not before it has floor bytes, and not
// before the part above the floor has doubled or grown by 2 MiB for each percent. That part is measured by the smaller result of the last two
// collections, so that a heap that is large only for a short time does not double. It lasts until the process ends.
func Tune(percent int, floor uint64) {
	(&tuner{percent: percent, floor: floor}).tune()
}

type tuner struct {
	percent int
	floor   uint64

	mu sync.Mutex
	// last is what was in use at the last collection. before is the heap at the collection before it.
	last   use
	before uint64
}

// tune is called after each collection.
func (t *tuner) tune() {
	t.adjust()
	// If another collection is already running, the new cycle survives it, and nothing calls tune after it. So look again.
	time.AfterFunc(again, t.adjust)
	runtime.AddCleanup(new(cycle), (*tuner).tune, t)
}

func (t *tuner) adjust() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if found := lastUse(); found != t.last {
		t.last, t.before = found, t.last.heap
	}
	debug.SetGCPercent(max(t.percent, growth(t.floor, t.last), double(t.percent, t.floor, t.last, min(t.last.heap, t.before))))
}

// cycle is an object that is garbage at once, so its cleanup runs after the next collection. It contains a pointer because Go may put small
// objects without pointers into one block with objects that stay in use.
type cycle struct{ _ *byte }

// use is what was in use at a collection, in bytes: the heap, and the roots (stacks and globals).
type use struct{ heap, roots uint64 }

// unit is the minimum heap at GOGC=100, in bytes. Go scales it with GOGC.
const unit = 4 << 20

// growth returns the GOGC at which the heap is collected when it reaches the floor. Go applies the percentage to the heap and the roots.
func growth(floor uint64, last use) int {
	if last.heap >= floor {
		return 0
	}
	return int(min((floor-last.heap)*100/max(1, last.heap+last.roots), floor*100/unit))
}

// double returns the GOGC at which the part of lasting above the floor doubles, but does not grow by more than spare for each percent.
func double(percent int, floor uint64, last use, lasting uint64) int {
	if lasting <= floor {
		return 0
	}
	return int(min(lasting-floor, uint64(percent)*spare) * 100 / (last.heap + last.roots))
}

// lastUse returns what was in use at the last collection.
func lastUse() use {
	samples := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/stack:bytes"}, {Name: "/gc/scan/globals:bytes"}}
	metrics.Read(samples)
	return use{heap: samples[0].Value.Uint64(), roots: samples[1].Value.Uint64() + samples[2].Value.Uint64()}
}
