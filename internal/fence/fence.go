// Package fence keeps an operator that lost its lease without noticing from writing. A process that was stopped, or whose
// machine was, goes on in the middle of what it did when it wakes, while another operator has long taken over; the
// election reports it only at its next renewal. So every write checks the fence first, which knows when the lease was last
// renewed and by the clock alone whether another may have it by now.
//
// What no fence on this side can hold is a request that has already been handed to the kernel.
package fence

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// ErrLost is why this process ends: its lease is another's, or gone. The words are those of controller-runtime.
var ErrLost = errors.New("leader election lost")

// ErrFenced is why a write was not sent, or the lease not renewed: this operator does not surely hold its lease.
var ErrFenced = errors.New("this operator does not hold the lease")

// Instant is a time by two clocks, because neither alone is enough: the running one stands still while the machine is
// suspended, and the wall clock can be set back.
type Instant struct {
	// Wall is the time of day.
	Wall time.Time
	// Running is the time since some fixed instant, by a clock that cannot be set.
	Running time.Duration
}

// since returns how long ago the earlier instant was, by the clock that says it was longer.
func (i Instant) since(earlier Instant) time.Duration {
	return max(i.Wall.Sub(earlier.Wall), i.Running-earlier.Running)
}

// SystemClock reads the machine's clocks.
func SystemClock() func() Instant {
	start := time.Now()
	return func() Instant {
		now := time.Now()
		return Instant{Wall: now.Round(0), Running: now.Sub(start)} // Round takes the monotonic reading out of Wall.
	}
}

// Fence knows whether this process holds the lease. It holds it for one term at most: once another may have had it, what
// this process still has under way was decided on a world that is gone, so nothing but a new process may begin again.
type Fence struct {
	lease string
	valid time.Duration
	now   func() Instant
	lost  func(error)

	mu      sync.Mutex
	phase   phase
	renewed Instant
	// term is the count of transitions in the lease's record; it stays the same as long as the holder does.
	term int
	// unanswered: the last renewal got no answer.
	unanswered bool
	// newest is the highest resourceVersion of the lease so far.
	newest string
}

type phase int

const (
	standby phase = iota
	leading
	ended
)

// New returns the fence of a process that does not lead yet. Lease is its name, for messages. After each renewal the lease
// counts as held for the time valid, which must be less than the lease's duration: a request takes its time to arrive. Lost is
// called, once, when this process has to end because of ErrLost or ErrWentBack; the fence is closed for good then. While
// renewals get no answer it is not called: no other operator gets one either, and an operator that writes nothing does no harm.
func New(lease string, valid time.Duration, now func() Instant, lost func(error)) *Fence {
	return &Fence{lease: lease, valid: valid, now: now, lost: lost}
}

// Check returns nil while the lease is surely held, and else an ErrFenced that says since when it is not.
func (f *Fence) Check() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch f.phase {
	case standby:
		return fmt.Errorf("%w %s yet: another one leads", ErrFenced, f.lease)
	case ended:
		return fmt.Errorf("%w %s any more: it gave the lease up", ErrFenced, f.lease)
	}
	if f.unanswered {
		return fmt.Errorf("%w %s for certain: its last renewal got no answer", ErrFenced, f.lease)
	}
	if ago := f.now().since(f.renewed); ago >= f.valid {
		return fmt.Errorf("%w %s any more: it last renewed the lease %s ago and others may have taken over", ErrFenced, f.lease, ago.Round(time.Millisecond))
	}
	return nil
}

// admits reports whether a record of this term may be written: of the first one, or of the one that goes on.
func (f *Fence) admits(term int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.phase == standby || f.phase == leading && f.term == term
}

// renew notes a success. The lease runs from when the request began: when the API server took it is not known.
func (f *Fence) renew(term int, began Instant) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.phase != ended {
		f.phase, f.term, f.renewed, f.unanswered = leading, term, began, false
	}
}

// doubt closes the fence until a renewal succeeds: an API server that did not answer may come back with another database behind it,
// and what was decided before is not to be written there.
func (f *Fence) doubt() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.unanswered = true
}

// leads reports whether this process was elected, be the lease still valid or not.
func (f *Fence) leads() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.phase == leading
}

// end closes the fence for good, and reports whether it was not closed so before.
func (f *Fence) end() (first bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	first = f.phase != ended
	f.phase = ended
	return first
}

// lose ends this process.
func (f *Fence) lose(why error) {
	if f.end() {
		f.lost(why)
	}
}
