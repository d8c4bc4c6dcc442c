package fair

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Bounds limit how many tasks use a resource at once, and how many may wait for it.
type Bounds struct {
	// Places is how many tasks use the resource at once.
	Places int
	// PerTenant is how many tasks of a tenant of weight 1 use the resource at once; 0 means that only the rule of Places limits them.
	PerTenant int
	// Waiting is how many tasks of one tenant may wait; 0 means any number, if something else limits them.
	Waiting int
	// Weight returns the weight of a tenant, at least 1. With nil, every tenant has weight 1.
	Weight func(tenant string) int
	// Burst is how many tasks of a tenant run in a row before the next tenant's turn; see Queue.
	Burst int
}

// ErrFull means that the maximum number of the tenant's tasks wait, Bounds.Waiting.
var ErrFull = errors.New("too many tasks of this tenant are waiting")

// shares counts the taken places.
type shares struct {
	Bounds
	taken int
	of    map[string]int
}

// admits reports whether a tenant may take one more place: it has fewer than its bound, and fewer than are free. Because of the latter, one
// tenant never has more than half of the places, two have at most two thirds of them, and so on: the next tenant always finds a free place,
// even if none is released.
func (s *shares) admits(tenant string) bool {
	weight, has := 1, s.of[tenant]
	if s.Weight != nil {
		weight = max(1, s.Weight(tenant))
	}
	return has < weight*(s.Places-s.taken) && (s.PerTenant == 0 || has < weight*s.PerTenant)
}

func (s *shares) take(tenant string) {
	if s.of == nil {
		s.of = map[string]int{}
	}
	s.taken++
	s.of[tenant]++
}

func (s *shares) leave(tenant string) {
	s.taken--
	if s.of[tenant]--; s.of[tenant] == 0 {
		delete(s.of, tenant)
	}
}

// Places are a semaphore that tenants share. Waiting tasks are admitted in the order of Queue. A tenant takes a place only if more places
// are free than it already has, so that tenants that never release theirs leave some to others. Safe for concurrent use.
type Places struct {
	clock clock.PassiveClock
	meter meter

	mu     sync.Mutex
	shares shares
	queue  Queue[*ticket]
}

// ticket is a caller that waits for a place.
type ticket struct {
	tenant string
	since  time.Time
	begin  func(leave func())
}

// NewPlaces returns the places of a resource. The resource is its label in metrics.
func NewPlaces(resource string, b Bounds, c clock.PassiveClock) *Places {
	return &Places{clock: c, meter: newMeter(resource), shares: shares{Bounds: b}, queue: Queue[*ticket]{Weight: b.Weight, Burst: b.Burst}}
}

// Begin calls begin once the tenant has a place. If a place is free, that is before Begin returns; otherwise on the goroutine that releases
// a place, so begin must not block. The place is taken until leave is called; calling leave again does nothing. cancel prevents the call of
// begin, and reports whether it did. The error is ErrFull when the tenant already has too many waiting.
func (p *Places) Begin(tenant string, begin func(leave func())) (cancel func() bool, err error) {
	p.mu.Lock()
	if p.shares.Waiting > 0 && p.queue.Of(tenant) >= p.shares.Waiting {
		p.mu.Unlock()
		return nil, fmt.Errorf("%w: %d", ErrFull, p.shares.Waiting)
	}
	entry := p.queue.Add(tenant, &ticket{tenant, p.clock.Now(), begin})
	turns := p.dispatch()
	p.mu.Unlock()
	p.begin(turns)
	return func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		defer p.updateMetrics()
		return p.queue.Remove(entry)
	}, nil
}

// Enter waits until the tenant has a place or ctx ends, and returns the function that releases the place. The error is ErrFull if too many
// tasks of the tenant already wait.
func (p *Places) Enter(ctx context.Context, tenant string) (leave func(), err error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	entered := make(chan func(), 1)
	cancel, err := p.Begin(tenant, func(leave func()) { entered <- leave })
	if err != nil {
		return nil, err
	}
	select {
	case leave := <-entered:
		return leave, nil
	case <-ctx.Done():
		if !cancel() {
			(<-entered)() // The place was granted at the same moment.
		}
		return nil, ctx.Err()
	}
}

// dispatch takes places for the next waiting tasks.
func (p *Places) dispatch() (turns []*ticket) {
	for p.shares.taken < p.shares.Places {
		t, ok := p.queue.Next(func(tenant string, _ *ticket) Verdict {
			if p.shares.admits(tenant) {
				return Take
			}
			return SkipTenant
		})
		if !ok {
			break
		}
		p.shares.take(t.tenant)
		p.meter.waited(p.clock.Since(t.since))
		turns = append(turns, t)
	}
	p.updateMetrics()
	return turns
}

// begin starts tasks. The lock must not be held.
func (p *Places) begin(turns []*ticket) {
	for _, t := range turns {
		t.begin(sync.OnceFunc(func() {
			p.mu.Lock()
			p.shares.leave(t.tenant)
			next := p.dispatch()
			p.mu.Unlock()
			p.begin(next)
		}))
	}
}

func (p *Places) updateMetrics() { p.meter.set(p.queue.Len(), p.shares.taken) }

// Taken is the number of taken places.
func (p *Places) Taken() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.shares.taken
}

// Waiting is the number of tasks that wait for a place.
func (p *Places) Waiting() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.queue.Len()
}
