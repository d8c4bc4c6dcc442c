package backoff

import (
	"math"
	"testing"
	"time"
)

func TestPauseDoublesUpToTheLongest(t *testing.T) {
	for failures, want := range map[int]time.Duration{
		1: time.Second, 2: 2 * time.Second, 3: 4 * time.Second, 9: 256 * time.Second, 10: 5 * time.Minute, math.MaxInt: 5 * time.Minute,
	} {
		if got := Pause(failures); got != want {
			t.Errorf("after %d failures: got %s, want %s", failures, got, want)
		}
	}
	if got := Between(5*time.Second, time.Minute, 3); got != 20*time.Second {
		t.Errorf("from 5 s, after 3 failures: got %s, want 20s", got)
	}
}
