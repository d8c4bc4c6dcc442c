// Package steady is a clock that never jumps.
//
// The wall clock of a machine may be set by hours, either way, while pauses and deadlines that are written down in statuses and in
// Helm's records are compared with it: ahead, everything that waits would fail at once; back, nothing would be tried again for
// hours.
package steady

import (
	"sync"
	"time"

	"github.com/kubeop/kubeop/internal/fence"
)

// rate bounds how fast the clock follows the wall clock, as a part of the time that passes: a deadline comes at most a fifth sooner.
const rate = 4

// Clock begins at the wall clock's time and follows it, never faster than five quarters of the time that passes and never slower than
// three quarters. It is a clock.PassiveClock, safe for use by several goroutines.
type Clock struct {
	read func() fence.Instant

	mu  sync.Mutex
	was fence.Instant
	now time.Time
}

// New returns a clock that begins now. The function reads both clocks of the machine.
func New(read func() fence.Instant) *Clock {
	was := read()
	return &Clock{read: read, was: was, now: was.Wall}
}

// Now is the time by this clock. It has no monotonic reading, and needs none: it never goes back.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	is := c.read()
	passed := max(is.Running-c.was.Running, 0)
	c.was = is
	c.now = c.now.Add(passed)
	bound := passed / rate
	c.now = c.now.Add(min(max(is.Wall.Sub(c.now), -bound), bound))
	return c.now
}

// Since is how long ago a time of this clock was.
func (c *Clock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }
