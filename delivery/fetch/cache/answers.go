// Package cache remembers what sources last answered, and has them asked when that does not do any more.
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

// Unanswered means that the source is being asked; who asked is woken when it has answered.
type Unanswered struct {
	// Since is when the question was put.
	Since time.Time
}

// Error implements error.
func (u *Unanswered) Error() string { return "its source is being asked and has not answered yet" }

// Ask is a question to a source, and who asks it.
type Ask struct {
	Question
	// Asker is the object that is woken when there is an answer.
	Asker types.NamespacedName
	// Key is the source; those who ask with the same key share the answers.
	Key string
	// Version identifies a spec and credentials: what is under way for another version of the same source, whose answer would
	// be of no use, ends.
	Version string
	// Cause has the source asked anew, where it is not "": nothing but what was answered for the same cause does, and a good
	// answer for 10 s only. Of Recent answers the question is the cause.
	Cause string
	// Host, Tenant and Priority are those of pool.Task; Timeout bounds the fetch, for which 0 is 5 minutes.
	Host, Tenant string
	Priority     pool.Priority
	Timeout      time.Duration
}

// Fetcher fetches; nil means that nothing has to be fetched, of which nothing is remembered. It must not use what the Reconcile that made it goes on using.
type Fetcher[T any] func(context.Context) (T, error)

// Answers have sources asked by a pool, and remember what they last answered, so that a Reconcile which a watch woke does not ask
// again. Those who ask the same meanwhile share the answer. It is a memory, not a store: what it forgets is asked once more. Safe
// for concurrent use.
type Answers[T any] struct {
	// Wake is called with each who waited when the source has answered. Changed, which may be nil, is called before that with each
	// good answer that follows another one.
	Wake    func(asker types.NamespacedName)
	Changed func(key string, was, is T)

	pool  *pool.Pool
	clock clock.PassiveClock
	// shared: keys are of sources that many follow, and not of one object.
	shared bool

	mu     sync.Mutex
	memory memory[T]
}

// run is a question under way.
type run struct {
	ask    Ask
	cause  string
	since  time.Time
	cancel func()
	// waiting are those who are woken, each with what it was asked for and for how long it would wait.
	waiting map[types.NamespacedName]waiter
}

type waiter struct {
	cause  string
	within time.Duration
}

// NewRecent returns Answers each of which is for one object: any change of its question has the source asked anew.
func NewRecent[T any](p *pool.Pool, c clock.PassiveClock) *Answers[T] {
	return &Answers[T]{pool: p, clock: c, memory: memory[T]{now: c.Now}, Wake: func(types.NamespacedName) {}}
}

// NewShared returns Answers for all who follow a source: the more do, the less often each is asked for.
func NewShared[T any](p *pool.Pool, c clock.PassiveClock) *Answers[T] {
	a := NewRecent[T](p, c)
	a.shared = true
	return a
}

// causeLasts is for how long one answer does for all who ask anew for one cause, as the many apps of a commit do.
const causeLasts = 10 * time.Second

// unreadFor is how long an answer serves those who waited for it, however short a time they want one to serve.
const unreadFor = time.Minute

// defaultTimeout bounds a fetch that names no timeout.
const defaultTimeout = 5 * time.Minute

// Get returns what the source last answered, where that does for the question, or how it failed, where the pause after that is not
// over. Else it has it asked, by what prepare makes, and is *Unanswered; prepare is called at once, and what it returns as an error
// counts as the answer. It never waits for a source.
func (a *Answers[T]) Get(ask Ask, prepare func() (Fetcher[T], error)) (T, error) {
	cause, maxAge := ask.Cause, ask.MaxAge
	switch {
	case !a.shared:
		cause = ask.cause()
	case cause != "":
		maxAge = min(maxAge, causeLasts)
	}
	if ask.Timeout == 0 {
		ask.Timeout = defaultTimeout
	}
	value, done, err := a.look(&ask, cause, maxAge)
	if done {
		return value, err
	}
	fetcher, err := prepare()
	if err != nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.memory.of(ask.Key, ask.Question).failed(a.clock.Now(), cause, ask.Question, err)
		return value, err
	}
	if fetcher == nil {
		return value, nil
	}
	return value, a.ask(ask, cause, fetcher)
}

// look returns what is known, or joins the question that is under way.
func (a *Answers[T]) look(ask *Ask, cause string, maxAge time.Duration) (value T, done bool, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	k, now, asker := a.memory.of(ask.Key, ask.Question), a.clock.Now(), ask.Asker.String()
	waitedFor, waited := k.unread[asker]
	delete(k.unread, asker)
	if waited && waitedFor == cause && now.Sub(k.ended) < unreadFor || (cause == "" || k.cause == cause) && k.serves(now, maxAge, ask.Timeout) {
		if k.err != nil {
			return value, true, k.err
		}
		return k.value, true, nil
	}
	if k.run == nil {
		return value, false, nil
	}
	if k.run.ask.Version != ask.Version {
		k.run.waiting = nil
		go k.run.cancel()
		k.run = nil
		return value, false, nil
	}
	k.run.waiting[ask.Asker] = waiter{cause, ask.Timeout}
	return value, true, &Unanswered{k.run.since}
}

// ask has the pool run the fetcher.
func (a *Answers[T]) ask(ask Ask, cause string, fetcher Fetcher[T]) error {
	a.mu.Lock()
	k := a.memory.of(ask.Key, ask.Question)
	r := &run{ask: ask, cause: cause, since: a.clock.Now(), waiting: map[types.NamespacedName]waiter{ask.Asker: {cause, ask.Timeout}}}
	if k.run != nil { // Another caller was faster.
		k.run.waiting[ask.Asker] = waiter{cause, ask.Timeout}
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
		Source: ask.Key, Host: ask.Host, Tenant: ask.Tenant, Priority: ask.Priority, Asked: asked, Timeout: ask.Timeout,
		Run: func(ctx context.Context) (err error) {
			value, err = fetcher(ctx)
			return err
		},
		Done:  func(err error) { a.take(ask.Key, r, value, err) },
		Retry: func() { a.Wake(ask.Asker) },
	})
	if err != nil {
		cancel = func() {}
	}
	close(submitted)
	if err == nil {
		return &Unanswered{r.since}
	}
	return a.notAsked(ask.Key, r, err)
}

// notAsked records that the pool did not take a question, and returns what that means to the caller.
func (a *Answers[T]) notAsked(key string, r *run, err error) error {
	err = explained(err, r.ask.Tenant)
	a.mu.Lock()
	k := a.memory.of(key, r.ask.Question)
	if k.run == r {
		k.run = nil
		k.failed(a.clock.Now(), r.cause, r.ask.Question, err)
		if k.err != nil && !errors.Is(err, failure.ErrBusy) {
			err = k.err
		}
	}
	delete(r.waiting, r.ask.Asker)
	a.mu.Unlock()
	a.wake(r)
	return err
}

// explained are the pool's errors in the words of this package.
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

// take takes in an answer, and wakes who waited for it.
func (a *Answers[T]) take(key string, r *run, value T, err error) {
	a.mu.Lock()
	k := a.memory.known[key]
	if k == nil || k.run != r {
		a.mu.Unlock()
		a.wake(r) // The question was dropped meanwhile; those who joined it late ask anew.
		return
	}
	k.run = nil
	now := a.clock.Now()
	var was T
	follows := false
	if err == nil {
		was, follows = k.good(now, r.cause, r.ask.Question, value)
	} else {
		k.failed(now, r.cause, r.ask.Question, explained(err, r.ask.Tenant))
		k.within = 0
		if errors.Is(err, pool.ErrTimeout) {
			k.within = r.ask.Timeout
		}
	}
	k.unread, k.ended = map[string]string{}, now
	for asker, w := range r.waiting {
		// Who asked anew for something else is not served by what was asked before, nor who would wait longer by who gave up.
		if (w.cause == "" || w.cause == r.cause) && (k.within == 0 || w.within <= k.within) && !errors.Is(err, pool.ErrCanceled) && !errors.Is(err, context.Canceled) {
			k.unread[asker.String()] = w.cause
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
	for asker := range waiting {
		a.Wake(asker)
	}
}

// Last returns the last good answer for key, however old, and what was asked then.
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

// Follows says whether an answer to one question is of use for the next: it is of the same source. Of Recent answers that is so
// while the spec is the same.
func (a *Answers[T]) Follows(was, is Question) bool {
	return a.shared || was.Generation == is.Generation
}

// Failure returns how the source failed since it last answered, nil when it did not, and until when it is not asked again.
func (a *Answers[T]) Failure(key string) (until time.Time, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if k := a.memory.known[key]; k != nil && k.err != nil {
		return k.until, k.err
	}
	return time.Time{}, nil
}

// Forget drops what is remembered for key, and ends what is under way for it.
func (a *Answers[T]) Forget(key string) {
	a.mu.Lock()
	k := a.memory.known[key]
	delete(a.memory.known, key)
	a.mu.Unlock()
	if k != nil && k.run != nil {
		k.run.cancel()
	}
}
