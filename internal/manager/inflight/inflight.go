// Package inflight limits the memory of the requests in progress: for each tenant, and for all together. Further requests wait for a while, before
// their bodies are read.
package inflight

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

// Limits says how many bytes the requests of a tenant and of all tenants may hold, how many requests of a tenant may wait, and for how long.
type Limits struct {
	Tenant, All int64
	Waiting     int
	Wait        time.Duration
}

// Limiter counts the bytes that requests hold. Safe for concurrent use.
type Limiter struct {
	limits Limits
	all    *semaphore.Weighted

	mu      sync.Mutex
	tenants map[string]*share
}

// share counts the bytes of one tenant. It exists while requests of the tenant hold bytes or wait.
type share struct {
	held           *semaphore.Weighted
	users, waiting int
}

// New returns a Limiter.
func New(l Limits) *Limiter {
	return &Limiter{limits: l, all: semaphore.NewWeighted(l.All), tenants: map[string]*share{}}
}

// Enter waits until there is room for a number of bytes of a tenant, and holds them until leave is called. It reports false if there was no room in
// time. A tenant gets only a part of the bytes of all tenants, so it cannot keep the others out. Administrators, who have the tenant "", do not use
// the bytes of all tenants.
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

// enter counts a request that waits. It returns nil if too many wait.
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
