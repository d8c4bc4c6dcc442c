// Package singleflight lets concurrent callers with the same question share one answer.
package singleflight

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
)

// Group lets callers with the same question share an answer, and never returns an old one. Callers wait for each other; a caller that finds
// that the question was asked after its own arrival takes that answer, good or bad. So a thousand apps of one repository that wake together
// cause one request. Nothing is kept when no caller waits. Clock has to be set; the rest of the zero value is ready to use.
type Group[T any] struct {
	// Clock is logical: it orders arrivals and questions. Groups whose callers arrive once for several questions share it.
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

// Do returns the answer of ask to the question key, for a caller that arrived at the time arrived, a result of Clock.Add(1). ask runs on
// the goroutine of one caller while others wait. An error of ctx means that it ended while the caller waited.
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
		// An error that came from the end of one caller's context does not concern the others.
		at.asked, at.value, at.err = asked, value, err
	}
	return value, err
}

// Waiting returns how many callers are in Do for a key, including the one that requests the answer. Tests use it to make callers meet.
func (g *Group[T]) Waiting(key string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	if at := g.calls[key]; at != nil {
		return at.users
	}
	return 0
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
