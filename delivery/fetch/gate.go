package fetch

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// gate bounds how many fetches of one tenant are under way at once, so that slow servers of one tenant hold only a few of
// the workers all share. The zero value is ready.
type gate struct {
	mu    sync.Mutex
	lanes map[string]*lane
}

// lane is what one tenant has under way.
type lane struct {
	slots chan struct{}
	// users are those in a slot and those that wait for one.
	users int
	// slow are those in a slot for longer than the limit.
	slow int
}

// enter returns the function to call when the fetch is over. Without a free slot it is ErrBusy at once where one of those
// under way is slow; where all are fast, as when many apps start together, it waits for a slot until one becomes slow.
func (g *gate) enter(ctx context.Context, tenant string, l limits) (leave func(), err error) {
	if tenant == "" {
		return func() {}, nil
	}
	at, jammed := g.join(tenant, l.perTenant)
	select {
	case at.slots <- struct{}{}:
		return g.occupy(tenant, at, l.slow), nil
	default:
	}
	patience := l.slow
	if jammed {
		patience = 0
	}
	wait, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case at.slots <- struct{}{}:
		return g.occupy(tenant, at, l.slow), nil
	case <-wait.Done():
		g.part(tenant, at)
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return nil, fail(ErrBusy, "it waits its turn: %d fetches of %s are under way, the most at once, and slow", l.perTenant, whose(tenant))
}

// within does a fetch in its turn and within the limits of time.
func within[T any](ctx context.Context, g *gate, tenant string, l limits, do func(context.Context) (T, error)) (T, error) {
	var none T
	leave, err := g.enter(ctx, tenant, l)
	if err != nil {
		return none, err
	}
	defer leave()
	ctx, done := watched(ctx, l)
	defer done()
	got, err := do(ctx)
	if err != nil && ctx.Err() != nil {
		// A broken-off transfer surfaces as whatever it broke; the context is what ended it.
		return none, fmt.Errorf("the time for it is over: %w", context.Cause(ctx))
	}
	return got, err
}

func (g *gate) join(tenant string, slots int) (at *lane, jammed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.lanes == nil {
		g.lanes = map[string]*lane{}
	}
	at = g.lanes[tenant]
	if at == nil {
		at = &lane{slots: make(chan struct{}, slots)}
		g.lanes[tenant] = at
	}
	at.users++
	return at, at.slow > 0
}

// occupy counts the fetch as slow once it takes longer than the limit.
func (g *gate) occupy(tenant string, at *lane, slow time.Duration) (leave func()) {
	timer := time.AfterFunc(slow, func() { g.count(at, 1) })
	return func() {
		if !timer.Stop() {
			g.count(at, -1)
		}
		<-at.slots
		g.part(tenant, at)
	}
}

func (g *gate) count(at *lane, slow int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	at.slow += slow
}

func (g *gate) part(tenant string, at *lane) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if at.users--; at.users == 0 {
		delete(g.lanes, tenant)
	}
}
