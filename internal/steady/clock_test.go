package steady

import (
	"testing"
	"time"

	"github.com/kubeop/kubeop/internal/fence"
)

// TestTheClockDoesNotJump: within a minute it advances by about a minute, whatever the wall clock does.
func TestTheClockDoesNotJump(t *testing.T) {
	for name, c := range map[string]struct {
		// wall is by how much the wall clock jumps.
		wall time.Duration
		// least and most are by how much this clock may advance in that minute.
		least, most time.Duration
	}{
		"none":             {least: time.Minute, most: time.Minute},
		"hours ahead":      {wall: 5 * time.Hour, least: time.Minute, most: 75 * time.Second},
		"hours back":       {wall: -5 * time.Hour, least: 45 * time.Second, most: time.Minute},
		"a little ahead":   {wall: time.Second, least: 61 * time.Second, most: 61 * time.Second},
		"a little back":    {wall: -time.Second, least: 59 * time.Second, most: 59 * time.Second},
		"a century ahead":  {wall: 876_000 * time.Hour, least: time.Minute, most: 75 * time.Second},
		"out of the epoch": {wall: -876_000 * time.Hour, least: 45 * time.Second, most: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			at := fence.Instant{Wall: time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC), Running: time.Hour}
			clock := New(func() fence.Instant { return at })
			began := clock.Now()
			at.Wall, at.Running = at.Wall.Add(time.Minute+c.wall), at.Running+time.Minute
			if passed := clock.Since(began); passed < c.least || passed > c.most {
				t.Errorf("a minute took %s, want %s to %s", passed, c.least, c.most)
			}
		})
	}
}

// TestTheClockFollowsTheSystemClock: it reaches the system clock's time, and never goes back.
func TestTheClockFollowsTheSystemClock(t *testing.T) {
	for name, jump := range map[string]time.Duration{"ahead": time.Hour, "back": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			at := fence.Instant{Wall: time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)}
			clock := New(func() fence.Instant { return at })
			at.Wall = at.Wall.Add(jump)
			last := clock.Now()
			for range 5 * 60 * 60 {
				at.Wall, at.Running = at.Wall.Add(time.Second), at.Running+time.Second
				now := clock.Now()
				if !now.After(last) {
					t.Fatalf("after %s it returns %s", last, now)
				}
				last = now
			}
			if !last.Equal(at.Wall) {
				t.Errorf("five hours later it is %s off", at.Wall.Sub(last))
			}
		})
	}
}

func TestTheClockAdvancesWithTheSystems(t *testing.T) {
	clock := New(fence.SystemClock())
	began := clock.Now()
	time.Sleep(2 * time.Millisecond)
	if passed := clock.Since(began); passed < time.Millisecond || time.Since(began).Abs() > time.Minute {
		t.Errorf("%s passed since %s", passed, began)
	}
}
