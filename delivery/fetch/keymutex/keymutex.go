// Package keymutex has mutexes by name. A waiter gives up when its context ends.
package keymutex

import (
	"context"
	"sync"
)

// Mutexes are mutexes by name. The zero value is ready to use.
type Mutexes struct {
	mu   sync.Mutex
	held map[string]*mutex
}

type mutex struct {
	free  chan struct{}
	users int
}

// Lock waits for the mutex of a name and returns the function that unlocks it. The error is that of ctx, which ended before.
func (m *Mutexes) Lock(ctx context.Context, name string) (func(), error) {
	w := m.enter(name)
	select {
	case <-w.free:
		return func() {
			w.free <- struct{}{}
			m.leave(name, w)
		}, nil
	case <-ctx.Done():
		m.leave(name, w)
		return nil, ctx.Err()
	}
}

func (m *Mutexes) enter(name string) *mutex {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.held == nil {
		m.held = map[string]*mutex{}
	}
	w := m.held[name]
	if w == nil {
		w = &mutex{free: make(chan struct{}, 1)}
		w.free <- struct{}{}
		m.held[name] = w
	}
	w.users++
	return w
}

func (m *Mutexes) leave(name string, w *mutex) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if w.users--; w.users == 0 {
		delete(m.held, name)
	}
}
