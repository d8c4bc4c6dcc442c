// Package inflight limits how much of the requests in progress is held in memory: of one tenant, and of all. Requests beyond it wait for a while before anything of them is read.
package inflight

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

// Limits are how many bytes there may be of one tenant and of all tenants, how many requests of a tenant may wait, and for how long.
type Limits struct {
	Tenant, All int64
	Waiting     int
	Wait        time.Duration
}

// Limiter counts what is held. Safe for concurrent use.
type Limiter struct {
	limits Limits
	all    *semaphore.Weighted

	mu      sync.Mutex
	tenants map[string]*share
}

// share is that of a tenant. It lasts while requests of the tenant hold it or wait.
type share struct {
	held           *semaphore.Weighted
	users, waiting int
}

// New returns a Limiter.
func New(l Limits) *Limiter {
	return &Limiter{limits: l, all: semaphore.NewWeighted(l.All), tenants: map[string]*share{}}
}

// Enter waits until there is room for so many bytes of a tenant, and holds it until leave is called. It reports false if there was none in time. A tenant has its share of
// what all have, so one cannot keep the others out; the share of administrators, who are of the tenant "", is beside that of all.
func (l *Limiter) Enter(ctx context.Context, tenant string, bytes int64) (leave func(), ok bool) {
	bytes = min(bytes, l.limits.Tenant)
	s := l.enter(tenant)
	if s == nil {
		return nil, false
	}
	ctx, cancel := context.WithTimeout(ctx, l.limits.Wait)
	defer cancel()
	if ok = s.held.Acquire(ctx, bytes) == nil; ok && tenant != "" {
		if ok = l.all.Acquire(ctx, bytes) == nil; !ok {
			s.held.Release(bytes)
		}
	}
	l.mu.Lock()
	s.waiting--
	l.mu.Unlock()
	if !ok {
		l.leave(tenant, s)
		return nil, false
	}
	return sync.OnceFunc(func() {
		if tenant != "" {
			l.all.Release(bytes)
		}
		s.held.Release(bytes)
		l.leave(tenant, s)
	}), true
}

// enter counts a request that waits, nil if too many do.
func (l *Limiter) enter(tenant string) *share {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.tenants[tenant]
	if s == nil {
		s = &share{held: semaphore.NewWeighted(l.limits.Tenant)}
		l.tenants[tenant] = s
	}
	if s.waiting >= l.limits.Waiting {
		return nil
	}
	s.waiting++
	s.users++
	return s
}

func (l *Limiter) leave(tenant string, s *share) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.users--; s.users == 0 {
		delete(l.tenants, tenant)
	}
}
