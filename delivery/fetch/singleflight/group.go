// Package singleflight has callers who ask the same question at the same time share one answer.
package singleflight

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
)

// Group has callers who ask the same question share an answer, and never gives anybody an old one: they wait for each other, and a caller
// who finds that the question was asked after he arrived takes that answer, be it good or bad. So a thousand apps of one repository that
// wake together ask it once. Nothing is kept when no caller waits. Clock has to be set; the rest of the zero value is ready to use.
type Group[T any] struct {
	// Clock is logical: it orders arrivals and questions. Groups whose callers arrive once for several questions have the same.
	Clock *atomic.Int64

	mu    sync.Mutex
	calls map[string]*call[T]
}

type call[T any] struct {
	free  chan struct{}
	users int
	// asked is when the answer was asked for.
	asked int64
	value T
	err   error
}

// Do returns the answer of ask to the question key, for a caller who arrived when he had the clock count on: Clock.Add(1). It is called
// in the caller's goroutine, with others waiting. An error of ctx means that the caller's time was over while he waited.
func (g *Group[T]) Do(ctx context.Context, key string, arrived int64, ask func() (T, error)) (T, error) {
	at := g.enter(key)
	defer g.leave(key, at)
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
	asked := g.Clock.Add(1)
	value, err := ask()
	if err == nil || ctx.Err() == nil || errors.Is(context.Cause(ctx), failure.ErrSlow) {
		// What ended with the time of the one who asked says nothing to the others.
		at.asked, at.value, at.err = asked, value, err
	}
	return value, err
}

func (g *Group[T]) enter(key string) *call[T] {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.calls == nil {
		g.calls = map[string]*call[T]{}
	}
	at := g.calls[key]
	if at == nil {
		at = &call[T]{free: make(chan struct{}, 1)}
		at.free <- struct{}{}
		g.calls[key] = at
	}
	at.users++
	return at
}

func (g *Group[T]) leave(key string, at *call[T]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if at.users--; at.users == 0 {
		delete(g.calls, key)
	}
}
