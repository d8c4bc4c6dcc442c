package cache

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/pool"
)

// unused is how long an answer that nobody asks for is remembered, at least.
const unused = time.Hour

// Memory is what sources last answered. It remembers failures too: an app whose pods crash wakes all the time, and each time would
// be one more attempt to log in with a password that is wrong. What it forgets is asked once more. Not safe for concurrent use.
type Memory[T any] struct {
	now   func() time.Time
	known map[string]*known[T]
	swept time.Time
	// max bounds the sources that are remembered; 0 is no bound, for keys that are objects of the API or are forgotten by name.
	max int
}

// NewMemory returns a Memory that tells the time by now, of so many sources at most; 0 is no bound.
func NewMemory[T any](now func() time.Time, most int) Memory[T] {
	return Memory[T]{now: now, max: most}
}

// Recall returns the last answer of a source, or how it failed, where that serves for the question.
func (m *Memory[T]) Recall(key string, q Question) (value T, serves bool, err error) {
	k := m.of(key, q)
	if !k.serves(m.now(), q.MaxAge, 0) {
		return value, false, nil
	}
	return k.value, true, k.err
}

// Remember takes in what a source answered, or how it failed.
func (m *Memory[T]) Remember(key string, q Question, value T, err error) {
	if k := m.of(key, q); err == nil {
		k.good(m.now(), "", q, value)
	} else {
		k.failed(m.now(), "", q, err)
	}
}

// Last is the last good answer of a source, however old.
func (m *Memory[T]) Last(key string) (value T, ok bool) {
	if k := m.known[key]; k != nil && !k.at.IsZero() {
		return k.value, true
	}
	return value, false
}

// Forget drops what is known of a source.
func (m *Memory[T]) Forget(key string) { delete(m.known, key) }

// known is what is known of a source.
type known[T any] struct {
	// value is the last good answer, and question what it was asked with; at is zero when there never was one.
	value    T
	question Question
	at       time.Time
	// cause is what the source was last asked for.
	cause string
	// err is set when it failed since, times in a row; it serves until then, and those who would wait for no longer than within.
	err    error
	times  int
	until  time.Time
	within time.Duration
	// used and keep are when it was last asked for, and how long it is kept after that.
	used time.Time
	keep time.Duration
	// run is the question under way, nil when none is; unread are those who waited for the last, which ended then, and have not seen
	// its answer.
	run    *run
	unread map[string]string
	ended  time.Time
}

// of is what is known of a source, which is used now.
func (m *Memory[T]) of(key string, q Question) *known[T] {
	m.sweep()
	k := m.known[key]
	if k == nil {
		if m.max > 0 && len(m.known) >= m.max {
			m.forgetOldest()
		}
		k = &known[T]{}
		if m.known == nil {
			m.known = map[string]*known[T]{}
		}
		m.known[key] = k
	}
	k.used, k.keep = m.now(), max(unused, min(q.MaxAge, 24*time.Hour))
	return k
}

// sweep forgets what nobody has asked for in a long time.
func (m *Memory[T]) sweep() {
	now := m.now()
	if now.Sub(m.swept) < time.Minute {
		return
	}
	m.swept = now
	maps.DeleteFunc(m.known, func(_ string, k *known[T]) bool { return k.run == nil && now.Sub(k.used) > k.keep })
}

// forgetOldest forgets what was not asked for the longest time, and is not being asked.
func (m *Memory[T]) forgetOldest() {
	var oldest string
	for key, k := range m.known {
		if k.run == nil && (oldest == "" || k.used.Before(m.known[oldest].used)) {
			oldest = key
		}
	}
	delete(m.known, oldest)
}

// serves says whether the last answer, or failure, does for a question whose answer may be so old.
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

// failed takes in a failure. What says nothing of the source is not remembered. A host that is not asked at the moment has failed as
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
