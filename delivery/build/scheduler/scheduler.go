// Package scheduler runs builds outside of the workers that request them, each when it is its tenant's turn.
package scheduler

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"

	"github.com/kubeop/kubeop/delivery/fair"
)

// buildBounds bounds the builds that run at once in one process. A build takes milliseconds. A build that a tenant made slow must leave
// places for other tenants, and for the tenant's other apps.
var buildBounds = fair.Bounds{Places: 8, PerTenant: 2}

const (
	// shortWait is how long Do waits for a build that started at once: nearly all end within that time.
	shortWait = 100 * time.Millisecond
	// unclaimedFor is how long the result of a build is kept until its caller fetches it.
	unclaimedFor = time.Minute
)

var (
	// ErrTimeout is wrapped by errors that say that a build took longer than allowed.
	ErrTimeout = errors.New("took too long")
	// ErrBusy is returned while a build waits for its turn.
	ErrBusy = errors.New("as many builds run as may")
	// ErrUnfinished is returned while a build runs.
	ErrUnfinished = errors.New("the build has not finished yet")
)

// Task is one build.
type Task[T any] struct {
	// Key of the app: a key has at most one build at a time. Input identifies the input of the build; the result of another input is
	// dropped.
	Key, Input string
	// Tenant is the tenant to which the place is charged.
	Tenant string
	// Within is the time limit of the build.
	Within time.Duration
	// Run builds. It must not touch data that the caller continues to use. Its context ends when the build is not wanted any more, or at
	// the time limit.
	Run func(context.Context) (T, error)
	// Wake is called after ErrBusy or ErrUnfinished, when calling Do again makes sense. It must not block.
	Wake func()
}

// Builders run builds outside of the workers that request them, within each tenant's share of the places. The zero value is ready. Safe for
// concurrent use.
type Builders[T any] struct {
	// Weight returns how many turns a tenant gets for one turn of another; nil: one. Set it before the first build.
	Weight func(tenant string) int

	once   sync.Once
	places *fair.Places

	mu sync.Mutex
	of map[string]*building[T]
}

// building is a build that waits, runs, or has ended without its result being fetched yet. The lock of Builders guards the fields that
// change.
type building[T any] struct {
	Task[T]
	ctx  context.Context
	stop context.CancelFunc
	// cancel keeps the build from starting, and reports whether it had not started.
	cancel func() bool
	begun  atomic.Bool
	// awaited: a call of Do waits for the build. late: it exceeded its time limit. reported: a call of Do returned that error. unwanted:
	// another input was requested.
	awaited, late, reported, unwanted bool
	// ended is closed when the build has ended. Then value and err are set.
	ended chan struct{}
	value T
	err   error
}

func (b *Builders[T]) prepare() {
	b.once.Do(func() {
		bounds := buildBounds
		bounds.Weight = b.Weight
		b.places = fair.NewPlaces("builds", bounds, clock.RealClock{})
		b.of = map[string]*building[T]{}
	})
}

// Do returns the result of a build that an earlier call started and that has ended, or that ends within 100 ms. Otherwise it returns
// ErrBusy or ErrUnfinished, and Wake is called when that has changed. Do never waits for a turn, nor longer than 100 ms for a build. For a
// build that exceeds its time limit, Do returns ErrTimeout. The build keeps its place until it ends, which it does at once if it obeys its
// context.
func (b *Builders[T]) Do(wanted Task[T]) (T, error) {
	b.prepare()
	b.mu.Lock()
	defer b.mu.Unlock()
	at, err := b.take(wanted)
	if err != nil {
		return *new(T), err
	}
	if at.awaited && at.begun.Load() {
		b.mu.Unlock()
		timer := time.NewTimer(shortWait)
		select {
		case <-at.ended:
		case <-timer.C:
		}
		timer.Stop()
		b.mu.Lock()
	}
	at.awaited = false
	return b.outcome(at)
}

// take returns the build of the key and input, and starts a new one if it is the tenant's turn. It returns ErrBusy if a build of another
// input has to end first.
func (b *Builders[T]) take(wanted Task[T]) (*building[T], error) {
	if at := b.of[wanted.Key]; at != nil {
		at.Wake = wanted.Wake
		switch {
		case at.Input == wanted.Input && !at.unwanted:
			return at, nil
		case at.over() || at.cancel():
			b.drop(at)
		default:
			at.unwanted = true
			at.stop()
			return nil, fmt.Errorf("waits until the build of an earlier version ends: %w", ErrBusy)
		}
	}
	at := &building[T]{Task: wanted, ended: make(chan struct{}), awaited: true}
	at.ctx, at.stop = context.WithCancel(context.Background())
	b.of[wanted.Key] = at
	cancel, err := b.places.Begin(wanted.Tenant, func(leave func()) {
		at.begun.Store(true)
		go b.run(at, leave)
	})
	if err != nil {
		b.drop(at)
		return nil, err
	}
	at.cancel = cancel
	return at, nil
}

// outcome returns the result of a build, or how far it is. A build that has ended is forgotten.
func (b *Builders[T]) outcome(at *building[T]) (none T, err error) {
	switch {
	case at.late && at.over():
		b.drop(at)
		return none, fmt.Errorf("building the manifests %w: make what is built smaller, or spec.timeout longer", ErrTimeout)
	case at.late:
		at.reported = true
		return none, fmt.Errorf("building the manifests %w, and until it ends it takes one of the tenant's %d places: make what is built smaller, or spec.timeout longer",
			ErrTimeout, buildBounds.PerTenant)
	case at.over():
		b.drop(at)
		return at.value, at.err
	case at.begun.Load():
		return none, ErrUnfinished
	}
	return none, fmt.Errorf("waits for its turn: %d builds run at once, %d of a tenant: %w", buildBounds.Places, buildBounds.PerTenant, ErrBusy)
}

// run runs a build, keeps the result for a while, and wakes the caller if none is waiting.
func (b *Builders[T]) run(at *building[T], leave func()) {
	timer := time.AfterFunc(at.Within, func() { b.overtime(at) })
	value, err := recovered(at.ctx, at.Run)
	timer.Stop()
	b.mu.Lock()
	defer b.mu.Unlock()
	at.value, at.err = value, err
	close(at.ended)
	leave() // Not before: while a late build is not known to have ended, Do says that it takes a place.
	switch {
	case b.of[at.Key] != at || at.awaited:
		return
	case at.reported, at.unwanted:
		b.drop(at) // A late build wakes only a caller with another input: a build of the same input would be late again.
	default:
		time.AfterFunc(unclaimedFor, func() {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.drop(at)
		})
	}
	if at.unwanted || !at.late {
		go at.Wake()
	}
}

// overtime handles a build that reached its time limit.
func (b *Builders[T]) overtime(at *building[T]) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if at.over() {
		return
	}
	at.late = true
	at.stop()
	if !at.awaited && !at.unwanted {
		go at.Wake()
	}
}

func (at *building[T]) over() bool {
	select {
	case <-at.ended:
		return true
	default:
		return false
	}
}

// drop forgets a build.
func (b *Builders[T]) drop(at *building[T]) {
	at.stop()
	if b.of[at.Key] == at {
		delete(b.of, at.Key)
	}
}

// Forget stops the build of a key, and drops its result.
func (b *Builders[T]) Forget(key string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if at := b.of[key]; at != nil {
		at.cancel()
		b.drop(at)
	}
}

// recovered turns a panic, which unusual manifests may cause, into an error.
func recovered[T any](ctx context.Context, build func(context.Context) (T, error)) (made T, err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("these manifests cannot be built") // The panic's value may contain a secret.
		}
	}()
	return build(ctx)
}
