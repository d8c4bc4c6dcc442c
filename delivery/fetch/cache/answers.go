// Package cache caches the last answer of each source, and fetches a new one when that answer is too old.
package cache

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/pool"
)

// Unanswered means that a fetch is in progress. The caller is woken when it has ended.
type Unanswered struct {
	// Since is when the fetch was requested.
	Since time.Time
}

// Error implements error.
func (u *Unanswered) Error() string { return "its source is being fetched and has not answered yet" }

// Query is a question to a source, with its caller.
type Query struct {
	Question
	// Caller is the object that is woken when there is an answer.
	Caller types.NamespacedName
	// Key is the source. Callers with the same key share the answers.
	Key string
	// Version identifies a spec and its credentials. A fetch in progress for another version of the same source is cancelled, because its
	// answer would be useless.
	Version string
	// Cause, if it is not "", requests a new fetch. Only an answer for the same cause is used then, and a good answer for 10 s only. For
	// NewRecent the question is the cause.
	Cause string
	// Host, Tenant and Priority are those of pool.Task. Timeout limits the fetch. Default 5m.
	Host, Tenant string
	Priority     pool.Priority
	Timeout      time.Duration
}

// Fetcher fetches. A nil Fetcher means that there is nothing to fetch, and nothing is cached. It must not use data that the Reconcile that
// made it continues to use.
type Fetcher[T any] func(context.Context) (T, error)

// Answers is a cache in front of a pool. A Reconcile that was woken by a watch gets the cached answer instead of a new fetch. Concurrent
// callers with the same question share one fetch (singleflight). Evicted answers are fetched again. Safe for concurrent use.
type Answers[T any] struct {
	// Wake is called for each waiting caller after a fetch. Changed, which may be nil, is called before that with each good answer that
	// follows another one.
	Wake    func(caller types.NamespacedName)
	Changed func(key string, was, is T)

	pool  *pool.Pool
	clock clock.PassiveClock
	// shared: a key is a source with many callers, and not one object.
	shared bool

	mu     sync.Mutex
	memory memory[T]
}

// run is a fetch in progress.
type run struct {
	query  Query
	cause  string
	since  time.Time
	cancel func()
	// waiting are the callers to wake, with the cause and timeout of each.
	waiting map[types.NamespacedName]waiter
}

type waiter struct {
	cause  string
	within time.Duration
}

// NewRecent returns Answers for keys of one object each: every change of the question causes a new fetch.
func NewRecent[T any](p *pool.Pool, c clock.PassiveClock) *Answers[T] {
	return &Answers[T]{pool: p, clock: c, memory: memory[T]{now: c.Now}, Wake: func(types.NamespacedName) {}}
}

// NewShared returns Answers for keys that many callers share. The more callers a key has, the less often each one fetches.
func NewShared[T any](p *pool.Pool, c clock.PassiveClock) *Answers[T] {
	a := NewRecent[T](p, c)
	a.shared = true
	return a
}

// causeLasts is how long one answer serves all callers with the same cause, such as the apps of one commit.
const causeLasts = 10 * time.Second

// unreadFor is how long an answer serves the callers that waited for it, even if their MaxAge is shorter.
const unreadFor = time.Minute

// defaultTimeout limits a fetch without a timeout.
const defaultTimeout = 5 * time.Minute

// Get returns the cached answer if it is new enough, or the cached failure if its backoff is not over. Otherwise it starts a fetch with the
// Fetcher of prepare and returns *Unanswered. It calls prepare at once; an error of prepare counts as the answer. Get never waits for a
// source.
func (a *Answers[T]) Get(query Query, prepare func() (Fetcher[T], error)) (T, error) {
	cause, maxAge := query.Cause, query.MaxAge
	switch {
	case !a.shared:
		cause = query.cause()
	case cause != "":
		maxAge = min(maxAge, causeLasts)
	}
	if query.Timeout == 0 {
		query.Timeout = defaultTimeout
	}
	value, done, err := a.look(&query, cause, maxAge)
	if done {
		return value, err
	}
	fetcher, err := prepare()
	if err != nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.memory.of(query.Key, query.Question).failed(a.clock.Now(), cause, query.Question, err)
		return value, err
	}
	if fetcher == nil {
		return value, nil
	}
	return value, a.start(query, cause, fetcher)
}

// look returns the cached answer, or joins the fetch in progress.
func (a *Answers[T]) look(query *Query, cause string, maxAge time.Duration) (value T, done bool, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	k, now, caller := a.memory.of(query.Key, query.Question), a.clock.Now(), query.Caller.String()
	waitedFor, waited := k.unread[caller]
	delete(k.unread, caller)
	if waited && waitedFor == cause && now.Sub(k.ended) < unreadFor || (cause == "" || k.cause == cause) && k.serves(now, maxAge, query.Timeout) {
		if k.err != nil {
			return value, true, k.err
		}
		return k.value, true, nil
	}
	if k.run == nil {
		return value, false, nil
	}
	if k.run.query.Version != query.Version {
		k.run.waiting = nil
		go k.run.cancel()
		k.run = nil
		return value, false, nil
	}
	k.run.waiting[query.Caller] = waiter{cause, query.Timeout}
	return value, true, &Unanswered{k.run.since}
}

// start lets the pool run the fetcher.
func (a *Answers[T]) start(query Query, cause string, fetcher Fetcher[T]) error {
	a.mu.Lock()
	k := a.memory.of(query.Key, query.Question)
	r := &run{query: query, cause: cause, since: a.clock.Now(), waiting: map[types.NamespacedName]waiter{query.Caller: {cause, query.Timeout}}}
	if k.run != nil { // Another caller was faster.
		k.run.waiting[query.Caller] = waiter{cause, query.Timeout}
		defer a.mu.Unlock()
		return &Unanswered{k.run.since}
	}
	submitted := make(chan struct{})
	cancel := func() {}
	r.cancel = func() {
		<-submitted
		cancel()
	}
	k.run = r
	asked := k.at.IsZero() || cause != "" && cause != k.cause
	a.mu.Unlock()

	var value T
	var err error
	cancel, err = a.pool.Submit(pool.Task{
		Source: query.Key, Host: query.Host, Tenant: query.Tenant, Priority: query.Priority, Requested: asked, Timeout: query.Timeout,
		Run: func(ctx context.Context) (err error) {
			value, err = fetcher(ctx)
			return err
		},
		Done:  func(err error) { a.take(query.Key, r, value, err) },
		Retry: func() { a.Wake(query.Caller) },
	})
	if err != nil {
		cancel = func() {}
	}
	close(submitted)
	if err == nil {
		return &Unanswered{r.since}
	}
	return a.notSubmitted(query.Key, r, err)
}

// notSubmitted records that the pool did not accept a fetch, and returns the error for the caller.
func (a *Answers[T]) notSubmitted(key string, r *run, err error) error {
	err = explained(err, r.query.Tenant)
	a.mu.Lock()
	k := a.memory.of(key, r.query.Question)
	if k.run == r {
		k.run = nil
		k.failed(a.clock.Now(), r.cause, r.query.Question, err)
		if k.err != nil && !errors.Is(err, failure.ErrBusy) {
			err = k.err
		}
	}
	delete(r.waiting, r.query.Caller)
	a.mu.Unlock()
	a.wake(r)
	return err
}

// explained returns the pool's errors in the terms of this package.
func explained(err error, tenant string) error {
	var open *pool.OpenError
	switch {
	case errors.Is(err, pool.ErrFull):
		return failure.New(failure.ErrBusy, "it waits its turn: as many fetches of %s wait as may", budget.Describe(tenant))
	case errors.Is(err, pool.ErrCanceled):
		return fmt.Errorf("%w: %w", context.Canceled, err)
	case errors.As(err, &open):
		return fmt.Errorf("%w: %w", failure.ErrUnavailable, err)
	}
	return err
}

// take records an answer, and wakes the callers that wait for it.
func (a *Answers[T]) take(key string, r *run, value T, err error) {
	a.mu.Lock()
	k := a.memory.known[key]
	if k == nil || k.run != r {
		a.mu.Unlock()
		a.wake(r) // The key was forgotten meanwhile; callers that joined late start a new fetch.
		return
	}
	k.run = nil
	now := a.clock.Now()
	var was T
	follows := false
	if err == nil {
		was, follows = k.good(now, r.cause, r.query.Question, value)
	} else {
		k.failed(now, r.cause, r.query.Question, explained(err, r.query.Tenant))
		k.within = 0
		if errors.Is(err, pool.ErrTimeout) {
			k.within = r.query.Timeout
		}
	}
	k.unread, k.ended = map[string]string{}, now
	for caller, w := range r.waiting {
		// This answer serves a caller only if it has the same or no cause of its own, and did not allow more time than a fetch that timed out.
		if (w.cause == "" || w.cause == r.cause) && (k.within == 0 || w.within <= k.within) && !errors.Is(err, pool.ErrCanceled) && !errors.Is(err, context.Canceled) {
			k.unread[caller.String()] = w.cause
		}
	}
	a.mu.Unlock()
	if follows && a.Changed != nil {
		a.Changed(key, was, value)
	}
	a.wake(r)
}

func (a *Answers[T]) wake(r *run) {
	a.mu.Lock()
	waiting := r.waiting
	r.waiting = nil
	a.mu.Unlock()
	for caller := range waiting {
		a.Wake(caller)
	}
}

// Last returns the last good answer for key, however old, and its question.
func (a *Answers[T]) Last(key string) (T, Question, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	k := a.memory.known[key]
	if k == nil || k.at.IsZero() {
		var none T
		return none, Question{}, false
	}
	return k.value, k.question, true
}

// Follows reports whether an answer to one question is useful for the next: it is from the same source. For NewRecent that is so while the
// spec is the same.
func (a *Answers[T]) Follows(was, is Question) bool {
	return a.shared || was.Generation == is.Generation
}

// Failure returns how the source failed since its last answer, nil if it did not, and the time before which it is not fetched again.
func (a *Answers[T]) Failure(key string) (until time.Time, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if k := a.memory.known[key]; k != nil && k.err != nil {
		return k.until, k.err
	}
	return time.Time{}, nil
}

// Forget drops what is cached for key, and cancels its fetch.
func (a *Answers[T]) Forget(key string) {
	a.mu.Lock()
	k := a.memory.known[key]
	delete(a.memory.known, key)
	a.mu.Unlock()
	if k != nil && k.run != nil {
		k.run.cancel()
	}
}
