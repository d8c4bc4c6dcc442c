package fetch

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
)

// turns let callers who ask the same thing share an answer without trusting an old one: they wait for each other, and one
// who finds that it was asked after he arrived takes that answer. So a thousand apps of one repository that wake together
// ask it once, be its answer good or bad. Nothing is kept once nobody waits.
type turns[T any] struct {
	// clock is logical: it orders arrivals and questions.
	clock *atomic.Int64

	mu    sync.Mutex
	under map[string]*turn[T]
}

type turn[T any] struct {
	free  chan struct{}
	users int
	// asked is when the answer was asked for.
	asked int64
	value T
	err   error
}

// take returns the answer of ask to the question key for somebody who arrived when the clock said so.
func (t *turns[T]) take(ctx context.Context, key string, arrived int64, ask func() (T, error)) (T, error) {
	at := t.enter(key)
	defer t.leave(key, at)
	select {
	case <-at.free:
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
	defer func() { at.free <- struct{}{} }()
	if at.asked > arrived {
		return at.value, at.err
	}
	asked := t.clock.Add(1)
	value, err := ask()
	if err == nil || ctx.Err() == nil || errors.Is(context.Cause(ctx), failure.ErrSlow) {
		// What ended with the time of the one who asked says nothing to the others.
		at.asked, at.value, at.err = asked, value, err
	}
	return value, err
}

func (t *turns[T]) enter(key string) *turn[T] {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.under == nil {
		t.under = map[string]*turn[T]{}
	}
	at := t.under[key]
	if at == nil {
		at = &turn[T]{free: make(chan struct{}, 1)}
		at.free <- struct{}{}
		t.under[key] = at
	}
	at.users++
	return at
}

func (t *turns[T]) leave(key string, at *turn[T]) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if at.users--; at.users == 0 {
		delete(t.under, key)
	}
}
