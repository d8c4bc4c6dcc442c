package sampler

import (
	"time"

	"github.com/kubeop/kubeop/internal/fence"
)

const (
	// tolerance is the largest difference between the two clocks that is ignored.
	tolerance = 5 * time.Second
	// patience is how long the wall clock has to differ before it is adopted. A wall clock that jumps and soon jumps back changes nothing.
	patience = 10 * time.Minute
)

// clock starts at the time of the wall clock, and then follows the monotonic clock. It is not safe for concurrent use.
type clock struct {
	read func() fence.Instant
	// base is the time of this clock when the monotonic clock had the value began.
	base  time.Time
	began time.Duration
	// by is the difference to the wall clock, 0 for none. since is the time of the monotonic clock at which that difference was first seen.
	by, since time.Duration
}

func newClock(read func() fence.Instant) *clock {
	now := read()
	return &clock{read: read, base: now.Wall.UTC(), began: now.Running}
}

func (c *clock) now() time.Time { return c.base.Add(c.read().Running - c.began) }

// differs reports whether the wall clock differed when adopt was last called, and was not adopted.
func (c *clock) differs() bool { return c.by != 0 }

// adopt sets this clock to the wall clock if that has differed by the same time for the time patience, and reports whether it did.
func (c *clock) adopt() bool {
	is := c.read()
	by := is.Wall.Sub(c.base.Add(is.Running - c.began))
	switch {
	case by.Abs() <= tolerance:
		c.by = 0
	case (by - c.by).Abs() > tolerance:
		c.by, c.since = by, is.Running
	case is.Running-c.since >= patience:
		c.base, c.began, c.by = is.Wall.UTC(), is.Running, 0
		return true
	}
	return false
}
