// Package singleflight lets concurrent callers with the same question share one answer.
//
// Alternative: golang.org/x/sync/singleflight gives a caller the answer to a question that was asked before it arrived, which does not have the push that
// woke the caller; and its Do knows no context, so that a caller cannot give up while it waits, and all get the error of the one whose context ended.
package singleflight

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/keymutex"
)

// Group lets callers with the same question share an answer, and never returns an old one. Callers wait for each other; a caller that finds
// that the question was asked after its own arrival takes that answer, good or bad. So a thousand apps of one repository that wake together
// cause one request. Nothing is kept when no caller waits. Clock has to be set; the rest of the zero value is ready to use.
type Group[T any] struct {
	// Clock is logical: it orders arrivals and questions. Groups whose callers arrive once for several questions share it.
	Clock *atomic.Int64

	answers keymutex.Values[answer[T]]
}

type answer[T any] struct {
	// asked is when the answer was asked for.
	asked int64
	value T
	err   error
}

// Do returns the answer of ask to the question key, for a caller that arrived at the time arrived, a result of Clock.Add(1). ask runs on
// the goroutine of one caller while others wait. An error of ctx means that it ended while the caller waited.
func (g *Group[T]) Do(ctx context.Context, key string, arrived int64, ask func() (T, error)) (T, error) {
	last, unlock, err := g.answers.Lock(ctx, key)
	if err != nil {
		var none T
		return none, err
	}
	defer unlock()
	if last.asked > arrived {
		return last.value, last.err
	}
	asked := g.Clock.Add(1)
	value, err := ask()
	if err == nil || ctx.Err() == nil || errors.Is(context.Cause(ctx), failure.ErrSlow) {
		// An error that came from the end of one caller's context does not concern the others.
		*last = answer[T]{asked, value, err}
	}
	return value, err
}

// Waiting returns how many callers are in Do for a key, including the one that requests the answer. Tests use it to make callers meet.
func (g *Group[T]) Waiting(key string) int { return g.answers.Users(key) }
