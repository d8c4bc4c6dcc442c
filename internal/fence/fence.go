// Package fence prevents writes by an operator that lost its lease without noticing. A process that was stopped continues its work when it
// wakes up, although another operator may have taken over. Leader election reports the loss only at the next renewal. So every write checks
// the fence first. The fence knows when the lease was last renewed, and decides by the clock whether another operator may hold it.
//
// A fence in this process cannot stop a request that was already handed to the kernel.
package fence

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// ErrLost is the reason to end this process: another operator holds its lease, or the lease is gone. The text is that of
// controller-runtime.
var ErrLost = errors.New("leader election lost")

// ErrFenced means that a write was not sent, or the lease not renewed, because this operator may have lost its lease.
var ErrFenced = errors.New("this operator does not hold the lease")

// Instant is a time by two clocks, because neither is sufficient: the monotonic clock stops while the machine is suspended, and the wall
// clock can be set back.
type Instant struct {
	// Wall is the wall clock's time.
	Wall time.Time
	// Running is the time since a fixed instant by the monotonic clock.
	Running time.Duration
}

// since returns the time since the earlier instant, by the clock that measured more.
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

// Fence knows whether this process holds the lease. It holds it for at most one term. Once another operator may have held it, this
// process's decisions are outdated, so only a new process may lead again.
type Fence struct {
	lease string
	valid time.Duration
	now   func() Instant
	lost  func(error)

	mu      sync.Mutex
	phase   phase
	renewed Instant
	// term is the transition count in the lease. It stays the same as long as the holder does.
	term int
	// unanswered: the last renewal got no answer.
	unanswered bool
	// newest is the highest resourceVersion of the lease that was seen.
	newest string
}

type phase int

const (
	standby phase = iota
	leading
	ended
)

// New returns the fence of a process that does not lead yet. lease is its name, for messages. After each renewal the lease counts as held
// for valid. That must be less than the lease's duration, because a request takes time to arrive. lost is called once, when this process
// must end because of ErrLost or ErrWentBack; the fence is closed for good then. lost is not called while renewals get no answer: no other
// operator gets one either, and this one writes nothing.
func New(lease string, valid time.Duration, now func() Instant, lost func(error)) *Fence {
	return &Fence{lease: lease, valid: valid, now: now, lost: lost}
}

// Check returns nil while the lease is certainly held, and otherwise an ErrFenced that says since when it is not.
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

// admits reports whether a lease record of this term may be written: the first term, or the current one.
func (f *Fence) admits(term int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.phase == standby || f.phase == leading && f.term == term
}

// renew records a successful renewal. The lease is valid from the start of the request, because the time at which the API server handled it
// is unknown.
func (f *Fence) renew(term int, began Instant) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.phase != ended {
		f.phase, f.term, f.renewed, f.unanswered = leading, term, began, false
	}
}

// doubt closes the fence until a renewal succeeds. An API server that did not answer may return with a restored database, and decisions
// from before must not be written to it.
func (f *Fence) doubt() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.unanswered = true
}

// leads reports whether this process was elected, even if its lease has expired since.
func (f *Fence) leads() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.phase == leading
}

// end closes the fence for good, and reports whether it was not closed for good before.
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
