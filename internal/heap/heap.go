// Package heap decides when garbage is collected.
package heap

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

// Small is the size up to which a heap is not worth collecting, in bytes. A process that does little uses a third of it, and to
// collect whenever that has grown by a part of itself takes a quarter of the time that it works.
const Small = 48 << 20

// again is how long after a collection its outcome is looked at once more: the next one may have come in between.
const again = 100 * time.Millisecond

// spare is the number of bytes, for each percent of growth, that a heap may always grow by between two collections, as long as the part
// above the floor at most doubles. A percentage of a heap of 100 MiB is little memory, and collecting that often costs much time.
const spare = 2 << 20

// Tune has garbage collected when the heap has grown by percent of what is in use, as with Go's GOGC, but no sooner than at floor
// bytes, nor before what is beyond the floor has doubled or grown by 2 MiB for each percent. For that counts the smaller of the heaps that
// the last two collections found: one that is large for a moment is not to become twice as large. It holds for the life of the process.
func Tune(percent int, floor uint64) {
	(&tuner{percent: percent, floor: floor}).tune()
}

type tuner struct {
	percent int
	floor   uint64

	mu sync.Mutex
	// last is what the last collection found in use, and before the heap that the one before it found.
	last   use
	before uint64
}

// tune is called after each collection.
func (t *tuner) tune() {
	t.adjust()
	// What is allocated while a collection is under way is garbage only for the one after it.
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

// cycle is garbage at once: it is gone with the next collection. Without a pointer in it, it might share its place with what stays.
type cycle struct{ _ *byte }

// use is what a collection found in use, in bytes: the heap, and what else holds pointers into it.
type use struct{ heap, roots uint64 }

// unit is the heap in bytes below which Go, for each hundred percent, does not collect.
const unit = 4 << 20

// growth is by how many percent the heap has to grow to reach the floor: Go lets it grow by that part of all that is in use.
func growth(floor uint64, last use) int {
	if last.heap >= floor {
		return 0
	}
	return int(min((floor-last.heap)*100/max(1, last.heap+last.roots), floor*100/unit))
}

// double is by how many percent the heap has to grow to have as much more as lasting is beyond the floor, at most what is spare.
func double(percent int, floor uint64, last use, lasting uint64) int {
	if lasting <= floor {
		return 0
	}
	return int(min(lasting-floor, uint64(percent)*spare) * 100 / (last.heap + last.roots))
}

// lastUse is what the last collection found.
func lastUse() use {
	samples := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/stack:bytes"}, {Name: "/gc/scan/globals:bytes"}}
	metrics.Read(samples)
	return use{heap: samples[0].Value.Uint64(), roots: samples[1].Value.Uint64() + samples[2].Value.Uint64()}
}
