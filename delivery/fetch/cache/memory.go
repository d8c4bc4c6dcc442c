package cache

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/pool"
)

// unused is how long an unused answer is remembered, at least.
const unused = time.Hour

// memory holds the last answers of the sources. It also caches failures: an app with crashing pods is reconciled often, and each time would
// be another login with a wrong password. Evicted answers are fetched again. Not safe for concurrent use.
type memory[T any] struct {
	now   func() time.Time
	known map[string]*known[T]
	swept time.Time
}

// known is what is cached of a source.
type known[T any] struct {
	// value is the last good answer, and question its question. at is zero if there was none.
	value    T
	question Question
	at       time.Time
	// cause is the cause of the last fetch.
	cause string
	// err is set if it failed since then, times in a row; it is used until then, and for callers that would wait no longer than within.
	err    error
	times  int
	until  time.Time
	within time.Duration
	// used is when the entry was last used, and keep how long it is kept after that.
	used time.Time
	keep time.Duration
	// run is the fetch in progress, nil when none is; unread are the callers that waited for the last one, which ended then, and have not
	// read its answer.
	run    *run
	unread map[string]string
	ended  time.Time
}

// of returns what is cached of a source, and counts as a use.
func (m *memory[T]) of(key string, q Question) *known[T] {
	m.sweep()
	k := m.known[key]
	if k == nil {
		k = &known[T]{}
		if m.known == nil {
			m.known = map[string]*known[T]{}
		}
		m.known[key] = k
	}
	// Twice the age, because MaxAge is shorter than the interval at which callers ask, and only an answer that follows another wakes them.
	k.used, k.keep = m.now(), max(unused, 2*min(q.MaxAge, 24*time.Hour))
	return k
}

// sweep drops what was not used for a long time.
func (m *memory[T]) sweep() {
	now := m.now()
	if now.Sub(m.swept) < time.Minute {
		return
	}
	m.swept = now
	maps.DeleteFunc(m.known, func(_ string, k *known[T]) bool { return k.run == nil && now.Sub(k.used) > k.keep })
}

// serves reports whether the last answer or failure may be used for a question with this MaxAge.
func (k *known[T]) serves(now time.Time, maxAge, within time.Duration) bool {
	switch {
	case k.err == nil:
		return !k.at.IsZero() && now.Sub(k.at) < maxAge
	case k.within != 0 && k.within < within:
		return false
	}
	return now.Before(k.until)
}

// good records an answer, and reports whether it follows another one.
func (k *known[T]) good(now time.Time, cause string, q Question, value T) (was T, follows bool) {
	was, follows = k.value, !k.at.IsZero()
	k.value, k.question, k.at, k.cause = value, q, now, cause
	k.err, k.times, k.within = nil, 0, 0
	return was, follows
}

// failed records a failure. It skips errors that do not concern the source. A host with an open circuit breaker keeps its earlier failure.
func (k *known[T]) failed(now time.Time, cause string, q Question, err error) {
	if errors.Is(err, failure.ErrBusy) || errors.Is(err, context.Canceled) {
		return
	}
	var open *pool.OpenError
	if notAsked := errors.As(err, &open); !notAsked || k.err == nil {
		k.err = err
	}
	if cause != "" && k.cause != cause {
		k.times = 0
	}
	k.times++
	pause := q.Pause(k.times)
	if open != nil {
		pause = max(pause, open.Rest)
	}
	k.cause, k.until = cause, now.Add(pause)
}
