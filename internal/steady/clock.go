// Package steady is a clock that never jumps.
//
// The wall clock of a machine may be set forward or back by hours. Backoffs and deadlines in statuses and in Helm's records are compared
// with it. After a jump forward, everything that waits would time out at once. After a jump back, nothing would be retried for hours.
package steady

import (
	"sync"
	"time"

	"github.com/kubeop/kubeop/internal/fence"
)

// rate limits how fast the clock follows the wall clock, as a fraction of the elapsed time. A deadline comes at most a fifth earlier.
const rate = 4

// Clock starts at the wall clock's time and follows it. It runs at most five quarters and at least three quarters as fast as real time. It
// is a clock.PassiveClock and safe for concurrent use.
type Clock struct {
	read func() fence.Instant

	mu  sync.Mutex
	was fence.Instant
	now time.Time
}

// New returns a clock that starts now. The function reads both clocks of the machine.
func New(read func() fence.Instant) *Clock {
	was := read()
	return &Clock{read: read, was: was, now: was.Wall}
}

// Now is the time by this clock. It has no monotonic reading and needs none, because the clock never goes back.
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
