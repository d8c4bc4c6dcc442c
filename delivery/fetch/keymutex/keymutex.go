// Package keymutex has mutexes by name, and values behind them. A waiter gives up when its context ends.
package keymutex

import (
	"context"
	"sync"
)

// Mutexes are mutexes by name. The zero value is ready to use.
type Mutexes struct{ values Values[struct{}] }

// Lock waits for the mutex of a name and returns the function that unlocks it. The error is that of ctx, which ended before.
func (m *Mutexes) Lock(ctx context.Context, name string) (func(), error) {
	_, unlock, err := m.values.Lock(ctx, name)
	return unlock, err
}

// Values are values by name, each behind a mutex. One is zero at first, and is dropped when nobody holds its mutex or waits for it. The zero value of
// Values is ready to use.
type Values[T any] struct {
	mu   sync.Mutex
	held map[string]*value[T]
}

type value[T any] struct {
	free  chan struct{}
	users int
	is    T
}

// Lock waits for the mutex of a name and returns its value and the function that unlocks it. The error is that of ctx, which ended before.
func (v *Values[T]) Lock(ctx context.Context, name string) (*T, func(), error) {
	at := v.enter(name)
	select {
	case <-at.free:
		return &at.is, func() {
			at.free <- struct{}{}
			v.leave(name, at)
		}, nil
	case <-ctx.Done():
		v.leave(name, at)
		return nil, nil, ctx.Err()
	}
}

// Users returns how many callers hold the mutex of a name or wait for it.
func (v *Values[T]) Users(name string) int {
	v.mu.Lock()
	defer v.mu.Unlock()
	if at := v.held[name]; at != nil {
		return at.users
	}
	return 0
}

func (v *Values[T]) enter(name string) *value[T] {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.held == nil {
		v.held = map[string]*value[T]{}
	}
	at := v.held[name]
	if at == nil {
		at = &value[T]{free: make(chan struct{}, 1)}
		at.free <- struct{}{}
		v.held[name] = at
	}
	at.users++
	return at
}

func (v *Values[T]) leave(name string, at *value[T]) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if at.users--; at.users == 0 {
		delete(v.held, name)
	}
}
