// Package pool runs the actions on releases: at most one per release at a time, on a limited number of workers that the tenants share. It
// does not know what an action does.
//
// slots.go has the state of each release and its action, admission.go limits how many actions one tenant may have started, worker.go is the
// worker that an action occupies, and pool.go combines them.
package pool

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/kubeop/kubeop/delivery/fair"
	"github.com/kubeop/kubeop/delivery/release/fault"
)

const defaultWorkers = 4

// ErrQueued means that the tenant has started the maximum number of actions. The app is in the tenant's queue, and Notify is called for it
// when it may try again.
var ErrQueued = errors.New("waits for the tenant's other actions")

// Options of a Pool.
type Options struct {
	// Workers bounds the actions that work at once, 4 by default; see fair.Places for how tenants share them.
	Workers fair.Bounds
	// Notify is called when an action of the app has ended, and when an app that is queued may try again. It must not block.
	Notify func(app types.NamespacedName)
	// Now returns the time.
	Now func() time.Time
	// Linger is how long the slot of a release that is gone is kept; see Leave.
	Linger time.Duration
}

// Pool runs actions. M is the state that its user keeps for each release.
type Pool[M any] struct {
	notify    func(types.NamespacedName)
	slots     slots[M]
	admission admission
	workers   *fair.Places

	// mu ensures that no action starts after the pool has stopped.
	mu sync.Mutex
	// stopping ends with stop, when the pool drains.
	stopping context.Context
	stop     context.CancelFunc
	actions  sync.WaitGroup
}

// New returns a Pool. Notify, Now and Linger are required.
func New[M any](o Options) *Pool[M] {
	if o.Workers.Places <= 0 {
		o.Workers.Places = defaultWorkers
	}
	p := &Pool[M]{
		notify:    o.Notify,
		slots:     newSlots[M](o.Now, o.Linger),
		admission: admission{tenants: map[string]*tenant{}},
		workers:   fair.NewPlaces("Helm actions", o.Workers, clock.RealClock{}),
	}
	p.stopping, p.stop = context.WithCancel(context.Background())
	return p
}

// Action is an action on a release.
type Action struct {
	// Name says what the action does, such as "upgrading". It must not be empty.
	Name string
	// Input identifies the input of the action.
	Input string
	// Why is the reason of the action, for messages.
	Why string
	// App is the owner of the release, which is notified. Tenant is the tenant that the worker counts for.
	App    types.NamespacedName
	Tenant string
	// Run runs the action. The function that it returns is called with the slot locked, after the slot is free again. Its context has the
	// values of the caller's context, but never ends.
	Run func(context.Context, *Worker) (ended func())
}

// Start runs the action in the slot as soon as a worker is free, and calls Notify afterwards. The error is ErrQueued or ErrDraining. The
// caller has locked the slot, which must not have an action.
func (p *Pool[M]) Start(ctx context.Context, s *Slot[M], a Action) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopping.Err() != nil {
		return fault.ErrDraining
	}
	if !p.admission.admit(a.Tenant, a.App) {
		return ErrQueued
	}
	s.occupy(a)
	p.actions.Add(1)
	go p.work(context.WithoutCancel(ctx), s, a)
	return nil
}

func (p *Pool[M]) work(ctx context.Context, s *Slot[M], a Action) {
	defer p.actions.Done()
	defer p.ended(a.Tenant)
	w := &Worker{workers: p.workers, tenant: a.Tenant}
	if !w.acquire(p.stopping) {
		s.free(nil)
		return
	}
	if s.forgotten.Load() {
		w.release()
		s.free(nil)
		return
	}
	s.begin()
	ended := a.Run(ctx, w)
	w.release()
	s.free(ended)
	p.notify(a.App)
}

func (p *Pool[M]) ended(tenant string) {
	p.admission.ended(tenant)
	p.NotifyNext(tenant)
}

// NotifyNext notifies as many queued apps of the tenant as may start an action now. Call it also if a notified app does not start one,
// because its turn goes to the next app.
func (p *Pool[M]) NotifyNext(tenant string) {
	next := p.admission.next(tenant)
	if p.stopping.Err() != nil {
		return
	}
	for _, app := range next {
		p.notify(app)
	}
}

// Working is the number of workers in use.
func (p *Pool[M]) Working() int { return p.workers.Taken() }

// Stopping is closed when the pool drains.
func (p *Pool[M]) Stopping() <-chan struct{} { return p.stopping.Done() }

// Drain starts nothing more, drops the actions that have no worker yet, and waits until the running ones have ended or ctx ends.
func (p *Pool[M]) Drain(ctx context.Context) error {
	p.mu.Lock()
	p.stop()
	p.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		p.actions.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for running Helm actions: %w", ctx.Err())
	}
}

// Slot returns the slot of a release.
func (p *Pool[M]) Slot(key types.NamespacedName) *Slot[M] { return p.slots.of(key) }

// Leave drops the slot of a release that is gone after Options.Linger, unless the slot is used again before.
func (p *Pool[M]) Leave(key types.NamespacedName) { p.slots.leave(key) }

// Forget drops the slots of a namespace that is gone, and their actions that have no worker yet. Running actions end by themselves.
func (p *Pool[M]) Forget(namespace string) { p.slots.forget(namespace) }
