package step

import (
	"sync"
	"testing"
	"time"

	"github.com/fluxcd/pkg/runtime/jitter"
)

// TestConcurrentWorkersSpreadIntervals also lets the race detector check concurrent calls.
func TestConcurrentWorkersSpreadIntervals(t *testing.T) {
	SpreadIntervals()
	var workers sync.WaitGroup
	var mu sync.Mutex
	seen := map[time.Duration]bool{}
	for range 10 {
		workers.Go(func() {
			for range 100 {
				interval := jitter.JitteredIntervalDuration(time.Hour)
				mu.Lock()
				seen[interval] = true
				mu.Unlock()
				if off := (interval - time.Hour).Abs(); off > time.Duration(intervalJitter*float64(time.Hour)) {
					t.Errorf("an interval of an hour became %s", interval)
				}
			}
		})
	}
	workers.Wait()
	if len(seen) < 900 {
		t.Errorf("1,000 intervals have %d different values, want at least 900", len(seen))
	}
}
