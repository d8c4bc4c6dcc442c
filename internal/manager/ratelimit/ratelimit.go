// Package ratelimit limits how many requests each caller sends.
package ratelimit

import (
	"net/http"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/kubeop/kubeop/internal/manager/problem"
	"github.com/kubeop/kubeop/internal/manager/request"
)

// maxCallers limits the memory. If all buckets are in use, further callers share one bucket.
const maxCallers = 10_000

// Limiter has a token bucket for each caller.
type Limiter struct {
	perSecond rate.Limit
	burst     int
	now       func() time.Time

	mu       sync.Mutex
	callers  map[string]*rate.Limiter
	overflow *rate.Limiter
	swept    time.Time
}

// New returns a Limiter that allows each caller perSecond requests a second, and burst at once.
func New(perSecond float64, burst int, now func() time.Time) *Limiter {
	limit := rate.Limit(perSecond)
	return &Limiter{perSecond: limit, burst: burst, now: now, callers: map[string]*rate.Limiter{}, overflow: rate.NewLimiter(limit, burst)}
}

// Take takes one request from a caller's bucket. If there is none, it returns how long the caller has to wait.
func (l *Limiter) Take(caller string) (wait time.Duration, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	reservation := l.of(caller, now).ReserveN(now, 1)
	if wait = reservation.DelayFrom(now); wait == 0 {
		return 0, true
	}
	reservation.CancelAt(now)
	return wait, false
}

func (l *Limiter) of(caller string, now time.Time) *rate.Limiter {
	if known := l.callers[caller]; known != nil {
		return known
	}
	// A sweep reads every bucket, so many new callers must not cause a sweep each.
	if len(l.callers) >= maxCallers && now.Sub(l.swept) >= time.Second {
		l.swept = now
		for name, limiter := range l.callers {
			if limiter.TokensAt(now) >= float64(l.burst) {
				delete(l.callers, name)
			}
		}
	}
	if len(l.callers) >= maxCallers {
		return l.overflow
	}
	limiter := rate.NewLimiter(l.perSecond, l.burst)
	l.callers[caller] = limiter
	return limiter
}

// Refuse takes one request from the bucket of a caller. If there is none, it returns the answer to the request.
func (l *Limiter) Refuse(caller string) *problem.Problem {
	wait, ok := l.Take(caller)
	if ok {
		return nil
	}
	return problem.New(problem.TooManyRequests, "The header Retry-After says after how many seconds the next one is answered.").After(wait)
}

// Limit wraps a handler. It answers with 429 if an address sent too many requests.
func (l *Limiter) Limit(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if refused := l.Refuse(network(request.Address(r.Context()))); refused != nil {
			refused.Write(w, request.ID(r.Context()))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// network returns the caller of an address. For IPv6 that is its network of 64 bits, because one host can use all addresses in it.
func network(address string) string {
	if parsed, err := netip.ParseAddr(address); err == nil && parsed.Is6() {
		return netip.PrefixFrom(parsed, 64).Masked().String()
	}
	return address
}
