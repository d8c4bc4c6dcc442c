package sampler

import (
	"time"

	"github.com/kubeop/kubeop/internal/fence"
)

const (
	// tolerance is by how much the wall clock may differ.
	tolerance = 5 * time.Second
	// patience is for how long it has to differ before it is taken for right: a clock that jumps, and soon back, changes nothing.
	patience = 10 * time.Minute
)

// clock begins with the time of the wall clock, and goes on by the monotonic one. It is not safe for concurrent use.
type clock struct {
	read func() fence.Instant
	// base is the time of the clock when the monotonic one was at began.
	base  time.Time
	began time.Duration
	// by is by how much the wall clock differs, and since is since when it does by about as much, by the monotonic one.
	by, since time.Duration
}

func newClock(read func() fence.Instant) *clock {
	now := read()
	return &clock{read: read, base: now.Wall.UTC(), began: now.Running}
}

func (c *clock) now() time.Time { return c.base.Add(c.read().Running - c.began) }

// differs reports whether the wall clock differed when adopt was called: it is not decided yet which one is right.
func (c *clock) differs() bool { return c.by != 0 }

// adopt takes the wall clock for right if it differed by the same for long, and reports whether it did.
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
