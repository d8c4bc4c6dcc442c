package fetch

import (
	"sync"
	"time"
)

// Recent remembers what a source last answered, so that a Reconcile which a watch woke does not ask the source again. It
// is a memory, not a store: what it forgets is fetched once more.
type Recent[T any] struct {
	// Now tells the time.
	Now func() time.Time

	mu   sync.Mutex
	seen map[string]answer[T]
}

type answer[T any] struct {
	question string
	at       time.Time
	value    T
}

// Get returns the last answer for key where the question is the same and the answer younger than maxAge; else it asks.
// An error is not remembered.
func (r *Recent[T]) Get(key, question string, maxAge time.Duration, ask func() (T, error)) (T, error) {
	now := r.Now()
	r.mu.Lock()
	last, ok := r.seen[key]
	r.mu.Unlock()
	if ok && last.question == question && now.Sub(last.at) < maxAge {
		return last.value, nil
	}
	value, err := ask()
	if err != nil {
		return value, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen == nil {
		r.seen = map[string]answer[T]{}
	}
	r.seen[key] = answer[T]{question: question, at: now, value: value}
	return value, nil
}

// Forget drops the answer for key.
func (r *Recent[T]) Forget(key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.seen, key)
}
