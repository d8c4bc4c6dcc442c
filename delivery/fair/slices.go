package fair

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// ErrPreempted is the cause of a canceled run that had to give its place to others. The run starts again later.
var ErrPreempted = errors.New("others wait for the place")

// Slices are places for work that may be stopped and started again without harm, such as an evaluation, and whose duration is not known in
// advance. Waiting work has turns by tenant, in the order of Queue. No place stays free while work waits, so one tenant may have all of
// them; but what runs longer than a slice is preempted when work waits that has not run yet. It then waits among the long work: all places
// but one are for this, and there it is not preempted. So new work waits for at most one slice of each other tenant, and long work
// finishes, too. If there is only one place the two kinds alternate, and a long run is waited for. A slice is of time, or of processor time
// if a run reports what it uses, see Uses. Safe for concurrent use.
type Slices struct {
	clock clock.WithDelayedExecution
	meter meter
	// places are how many run at once.
	places int
	slice  time.Duration

	mu sync.Mutex
	// fresh have not run yet, long were ended after a slice.
	fresh, long Queue[*sliced]
	running     map[*sliced]bool
	// lastLong: the run that began last was one of long.
	lastLong bool
	// timer wakes when the next slice is over, while work waits for that.
	timer clock.Timer
}

// sliced is one run.
type sliced struct {
	tenant string
	// since is when it began to wait, or to run.
	since time.Time
	long  bool
	// kept: it is not to be preempted. preempted: its context was canceled.
	kept, preempted bool
	// used is the processor time that it has used; nil: its slice is of time.
	used  func() time.Duration
	begun chan struct{}
	end   context.CancelCauseFunc
}

const (
	// stretch is how many slices of time a run may go on that has not used one of processor time: the machine is busy, or it waits.
	stretch = 4
	// looks is how often at most in a slice the runs are looked at.
	looks = 10
)

// left is how much of its slice is left.
func (r *sliced) left(slice, since time.Duration) time.Duration {
	if r.used == nil {
		return slice - since
	}
	return min(slice-r.used(), stretch*slice-since)
}

// Uses measures the slice of ctx's run in processor time, which used returns, instead of elapsed time. So a busy machine does not shorten
// the slice; but it ends after four slices of elapsed time. Uses does nothing if ctx does not belong to a run.
func Uses(ctx context.Context, used func() time.Duration) {
	run, ok := ctx.Value(runKey{}).(*run)
	if !ok {
		return
	}
	run.slices.mu.Lock()
	defer run.slices.mu.Unlock()
	run.sliced.used = used
}

// runKey is of the run in the context of its work.
type runKey struct{}

type run struct {
	slices *Slices
	sliced *sliced
}

// NewSlices returns the places of a resource. The resource is its label in metrics. Weight returns the weight of a tenant; nil: all weigh
// 1.
func NewSlices(resource string, places int, slice time.Duration, weight func(tenant string) int, c clock.WithDelayedExecution) *Slices {
	return &Slices{
		clock: c, meter: newMeter(resource), places: max(1, places), slice: slice, running: map[*sliced]bool{},
		fresh: Queue[*sliced]{Weight: weight}, long: Queue[*sliced]{Weight: weight},
	}
}

// Run calls work when it is the tenant's turn, and again when it was ended for others; what it returned then counts only if it is no
// error. Run returns what work returned, and the cause of ctx when that ends before.
func (s *Slices) Run(ctx context.Context, tenant string, work func(context.Context) error) error {
	for long := false; ; long = true {
		preempted, err := s.once(ctx, tenant, long, work)
		if err == nil || !preempted || ctx.Err() != nil {
			return err
		}
	}
}

// once waits for a turn and calls work, and returns whether that was preempted.
func (s *Slices) once(ctx context.Context, tenant string, long bool, work func(context.Context) error) (preempted bool, err error) {
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	own, end := context.WithCancelCause(ctx)
	defer end(nil)
	r := &sliced{tenant: tenant, since: s.clock.Now(), long: long, begun: make(chan struct{}), end: end}
	s.mu.Lock()
	queue := s.queue(long)
	entry := queue.Add(tenant, r)
	s.dispatch()
	s.mu.Unlock()
	select {
	case <-r.begun:
	case <-ctx.Done():
		s.mu.Lock()
		waited := queue.Remove(entry)
		s.dispatch()
		s.mu.Unlock()
		if waited {
			return false, context.Cause(ctx)
		}
	}
	defer func() { preempted = s.leave(r) }()
	return false, work(context.WithValue(own, runKey{}, &run{s, r}))
}

func (s *Slices) queue(long bool) *Queue[*sliced] {
	if long {
		return &s.long
	}
	return &s.fresh
}

// leave gives the place back, and returns whether the run was preempted.
func (s *Slices) leave(r *sliced) (preempted bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.running, r)
	s.dispatch()
	return r.preempted
}

// dispatch begins what may run, and has end what is to give its place up. The lock is held.
func (s *Slices) dispatch() {
	s.keep()
	for len(s.running) < s.places {
		r := s.next()
		if r == nil {
			break
		}
		now := s.clock.Now()
		s.meter.waited(now.Sub(r.since))
		r.since, s.lastLong = now, r.long
		s.running[r] = true
		s.keep()
		close(r.begun)
	}
	s.preempt()
	s.meter.set(s.fresh.Len()+s.long.Len(), len(s.running))
}

// next removes and returns the next waiting run; nil when none waits.
func (s *Slices) next() *sliced {
	take := func(string, *sliced) Verdict { return Take }
	first := s.kept() < s.mayKeep()
	if s.places == 1 {
		first = !s.lastLong
	}
	if r, ok := s.queue(first).Next(take); ok {
		return r
	}
	r, _ := s.queue(!first).Next(take)
	return r
}

// mayKeep is how many runs may not be preempted.
func (s *Slices) mayKeep() int { return max(1, s.places-1) }

func (s *Slices) kept() (n int) {
	for r := range s.running {
		if r.kept {
			n++
		}
	}
	return n
}

// keep has as many runs that take long go on to their end as may, those first that have run longest.
func (s *Slices) keep() {
	for n := s.kept(); n < s.mayKeep(); n++ {
		r := s.oldest(func(r *sliced) bool { return r.long && !r.kept && !r.preempted })
		if r == nil {
			return
		}
		r.kept = true
	}
}

// preempt ends a run that is over its slice for each that waits and has not run yet, and looks again when the next one will be.
func (s *Slices) preempt() {
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
	wanted := s.fresh.Len()
	for r := range s.running {
		if r.preempted {
			wanted--
		}
	}
	for ; wanted > 0; wanted-- {
		r := s.oldest(func(r *sliced) bool { return !r.kept && !r.preempted })
		if r == nil {
			return
		}
		if left := r.left(s.slice, s.clock.Since(r.since)); left > 0 {
			s.timer = s.clock.AfterFunc(max(left, s.slice/looks), s.look)
			return
		}
		r.preempted = true
		r.end(ErrPreempted)
	}
}

func (s *Slices) look() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dispatch()
}

// oldest is the run of those chosen that has run longest.
func (s *Slices) oldest(chosen func(*sliced) bool) (oldest *sliced) {
	for r := range s.running {
		if chosen(r) && (oldest == nil || r.since.Before(oldest.since)) {
			oldest = r
		}
	}
	return oldest
}
