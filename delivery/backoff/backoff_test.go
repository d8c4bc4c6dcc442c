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

func TestTheShorterPauseCountsUnlessItMeansNever(t *testing.T) {
	for _, c := range []struct{ a, b, want time.Duration }{
		{2, 3, 2}, {2, 2, 2}, {0, 3, 3}, {0, 0, 0}, {-1, 3, 3}, {-1, 0, 0}, {-2, -1, 0},
	} {
		if got, turned := Sooner(c.a, c.b), Sooner(c.b, c.a); got != c.want || turned != c.want {
			t.Errorf("of %d and %d: got %d, and %d the other way round, want %d", c.a, c.b, got, turned, c.want)
		}
	}
}
