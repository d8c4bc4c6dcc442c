package fair

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// ErrPreempted is the cause of a run that was canceled so that another one can start. The canceled run starts again later.
var ErrPreempted = errors.New("others wait for the place")

// Slices are places for work that may be stopped and started again without harm, such as an evaluation, and whose duration is not known in
// advance. Waiting work takes turns by tenant, in the order of Queue. No place stays free while work waits, so one tenant may use all of
// them. A run that takes longer than a slice is preempted if work waits that has not run yet. It then waits in a second queue for long
// work, to which all places but one are open, and where it is not preempted. So new work waits for at most one slice of each other tenant,
// and long work also finishes. If there is only one place, new and long work alternate, and a long run is not preempted. A slice is elapsed
// time, or processor time if a run reports its own, see Uses. Safe for concurrent use.
type Slices struct {
	clock clock.WithDelayedExecution
	meter meter
	// places is how many runs are in progress at once.
	places int
	slice  time.Duration

	mu sync.Mutex
	// fresh are waiting runs that have not run yet, long those that were preempted after a slice.
	fresh, long Queue[*sliced]
	running     map[*sliced]bool
	// lastLong: the run that began last came from long.
	lastLong bool
	// timer fires at the end of the next slice, while work waits for that.
	timer clock.Timer
}

// sliced is one run.
type sliced struct {
	tenant string
	// since is when the run began to wait or, once it runs, when it began.
	since time.Time
	long  bool
	// kept: the run is not preempted. preempted: its context was canceled.
	kept, preempted bool
	// used returns the run's processor time; nil if its slice is elapsed time.
	used  func() time.Duration
	begun chan struct{}
	end   context.CancelCauseFunc
}

const (
	// stretch is after how many slices of elapsed time a run is preempted that has not used one slice of processor time, because the
	// machine is busy or the run waits.
	stretch = 4
	// looks is how often runs are checked at most within a slice.
	looks = 10
)

// left is the rest of the run's slice.
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

// runKey is the key of the run in the context of its work.
type runKey struct{}

type run struct {
	slices *Slices
	sliced *sliced
}

// NewSlices returns the places of a resource. The resource is its label in metrics. Weight returns the weight of a tenant; with nil, every
// tenant has weight 1.
func NewSlices(resource string, places int, slice time.Duration, weight func(tenant string) int, c clock.WithDelayedExecution) *Slices {
	return &Slices{
		clock: c, meter: newMeter(resource), places: max(1, places), slice: slice, running: map[*sliced]bool{},
		fresh: Queue[*sliced]{Weight: weight}, long: Queue[*sliced]{Weight: weight},
	}
}

// Run calls work when it is the tenant's turn, and calls it again after a preemption, unless work succeeded nevertheless. Run returns the
// error of work, or the cause of ctx if ctx ends first.
func (s *Slices) Run(ctx context.Context, tenant string, work func(context.Context) error) error {
	for long := false; ; long = true {
		preempted, err := s.once(ctx, tenant, long, work)
		if err == nil || !preempted || ctx.Err() != nil {
			return err
		}
	}
}

// once waits for a turn and calls work once. It reports whether the run was preempted.
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

// leave releases the place, and reports whether the run was preempted.
func (s *Slices) leave(r *sliced) (preempted bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.running, r)
	s.dispatch()
	return r.preempted
}

// dispatch starts waiting runs, and preempts runs for those that still wait. The lock is held.
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

// next removes and returns the next waiting run; nil if none waits.
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

// mayKeep is how many runs may be exempt from preemption.
func (s *Slices) mayKeep() int { return max(1, s.places-1) }

func (s *Slices) kept() (n int) {
	for r := range s.running {
		if r.kept {
			n++
		}
	}
	return n
}

// keep exempts long runs from preemption, as many as allowed, starting with the one that has run longest.
func (s *Slices) keep() {
	for n := s.kept(); n < s.mayKeep(); n++ {
		r := s.oldest(func(r *sliced) bool { return r.long && !r.kept && !r.preempted })
		if r == nil {
			return
		}
		r.kept = true
	}
}

// preempt cancels a run that exceeded its slice for each waiting run that has not run yet, and sets a timer for the next check.
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

// oldest returns the one that has run longest among the chosen runs.
func (s *Slices) oldest(chosen func(*sliced) bool) (oldest *sliced) {
	for r := range s.running {
		if chosen(r) && (oldest == nil || r.since.Before(oldest.since)) {
			oldest = r
		}
	}
	return oldest
}
