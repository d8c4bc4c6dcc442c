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

// known is what is known of a source.
type known[T any] struct {
	// value is the last good answer, and question its question. at is zero if there was none.
	value    T
	question Question
	at       time.Time
	// cause is the cause of the last fetch.
	cause string
	// err is set when it failed since, times in a row; it serves until then, and those who would wait for no longer than within.
	err    error
	times  int
	until  time.Time
	within time.Duration
	// used is when the entry was last used, and keep how long it is kept after that.
	used time.Time
	keep time.Duration
	// run is the question under way, nil when none is; unread are those who waited for the last, which ended then, and have not seen
	// its answer.
	run    *run
	unread map[string]string
	ended  time.Time
}

// of is what is known of a source, which is used now.
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
	k.used, k.keep = m.now(), max(unused, min(q.MaxAge, 24*time.Hour))
	return k
}

// sweep forgets what was not used in a long time.
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

// good takes in an answer, and says whether it follows another one.
func (k *known[T]) good(now time.Time, cause string, q Question, value T) (was T, follows bool) {
	was, follows = k.value, !k.at.IsZero()
	k.value, k.question, k.at, k.cause = value, q, now, cause
	k.err, k.times, k.within = nil, 0, 0
	return was, follows
}

// failed takes in a failure. What says nothing of the source is not remembered. A host whose circuit breaker is open has failed as
// it did before.
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
	k.cause, k.until = cause, now.Add(q.Pause(k.times))
	if open != nil && open.Until.After(k.until) {
		k.until = open.Until
	}
}
