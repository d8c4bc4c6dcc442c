package fetch

import (
	"context"
	"sync"
)

// locks are mutexes by name whose waiters give up with their context.
type locks struct {
	mu   sync.Mutex
	held map[string]*waiting
}

type waiting struct {
	free  chan struct{}
	users int
}

// lock returns the function that unlocks.
func (l *locks) lock(ctx context.Context, name string) (func(), error) {
	w := l.enter(name)
	select {
	case <-w.free:
		return func() {
			w.free <- struct{}{}
			l.leave(name, w)
		}, nil
	case <-ctx.Done():
		l.leave(name, w)
		return nil, ctx.Err()
	}
}

func (l *locks) enter(name string) *waiting {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held == nil {
		l.held = map[string]*waiting{}
	}
	w := l.held[name]
	if w == nil {
		w = &waiting{free: make(chan struct{}, 1)}
		w.free <- struct{}{}
		l.held[name] = w
	}
	w.users++
	return w
}

func (l *locks) leave(name string, w *waiting) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if w.users--; w.users == 0 {
		delete(l.held, name)
	}
}
