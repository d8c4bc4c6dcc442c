package fetch

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// Shared remembers what sources last answered, for all who follow them: the more do, the less often each is asked for. It is
// a memory as Recent is. Safe for concurrent use.
type Shared[T any] struct {
	// Changed is called with each good answer that follows another one, before those who asked get it. It may be nil.
	Changed func(source string, was, is T)

	now func() time.Time
	// arrivals is the clock of the turns.
	arrivals atomic.Int64
	asking   turns[T]

	mu    sync.Mutex
	known map[string]*sharedAnswer[T]
}

// NewShared returns a Shared that knows nothing yet. now tells the time.
func NewShared[T any](now func() time.Time) *Shared[T] {
	s := &Shared[T]{now: now, known: map[string]*sharedAnswer[T]{}}
	s.asking.clock = &s.arrivals
	return s
}

// sharedAnswer is what is known of a source.
type sharedAnswer[T any] struct {
	value T
	// at is when it gave the value, zero when it never did.
	at time.Time
	// cause is what it was last asked anew for.
	cause string
	// err is set when it failed since, times in a row, the last of them at failed.
	err    error
	times  int
	failed time.Time
}

// causeLasts is for how long one answer does for all who ask anew for one cause, as the many apps of a commit do.
const causeLasts = 10 * time.Second

// Get returns what a source last answered anybody, where that is younger than MaxAge of the question, or how it failed,
// where the pause after that is not over; else it asks. Who names a cause asks anew: nothing but what was answered for the same
// cause does, and a good answer for 10 s. Those who ask at the same time share the answer. ErrBusy, an interrupted fetch and one
// that ended with the time of who asked say nothing of the source, and are not remembered.
func (s *Shared[T]) Get(ctx context.Context, source string, q Question, cause string, ask func() (T, error)) (T, error) {
	if last, ok := s.remembered(source, q, cause); ok {
		return last.value, last.err
	}
	return s.asking.take(ctx, source, s.arrivals.Add(1), func() (T, error) {
		if last, ok := s.remembered(source, q, cause); ok {
			return last.value, last.err
		}
		value, err := ask()
		if err != nil && ctx.Err() != nil {
			return value, err
		}
		if was, changed := s.remember(source, cause, value, err); changed && s.Changed != nil {
			s.Changed(source, was, value)
		}
		return value, err
	})
}

func (s *Shared[T]) remembered(source string, q Question, cause string) (outcome[T], bool) {
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.known[source]
	switch {
	case last == nil, cause != "" && last.cause != cause:
		return outcome[T]{}, false
	case last.err != nil:
		return outcome[T]{err: last.err}, now.Before(last.failed.Add(q.pause(last.times)))
	}
	if cause != "" {
		q.MaxAge = min(q.MaxAge, causeLasts)
	}
	return outcome[T]{value: last.value}, now.Sub(last.at) < q.MaxAge
}

// remember takes in an answer, and returns the good one before it, if this is one that follows another.
func (s *Shared[T]) remember(source, cause string, value T, err error) (was T, changed bool) {
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if errors.Is(err, ErrBusy) || errors.Is(err, context.Canceled) {
		return was, false
	}
	last := s.known[source]
	if last == nil {
		last = &sharedAnswer[T]{}
		s.known[source] = last
	}
	if err != nil {
		last.cause, last.err, last.failed, last.times = cause, err, now, last.times+1
		return was, false
	}
	was, changed = last.value, !last.at.IsZero()
	*last = sharedAnswer[T]{value: value, at: now, cause: cause}
	return was, changed
}

// Forget drops what is remembered of a source.
func (s *Shared[T]) Forget(source string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.known, source)
}
