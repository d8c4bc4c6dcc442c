// Package pool runs the actions on releases: at most one per release at a time, on a bounded number of workers that the tenants share.
// It does not know what an action does.
//
// slots.go remembers each release and what runs on it, admission.go bounds what one tenant may have started, worker.go is the worker that an
// action holds, and pool.go brings them together.
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

// ErrQueued says that the tenant has started as many actions as it may. The app is in the tenant's queue, and Notify is called for it when it
// may try again.
var ErrQueued = errors.New("waits for the tenant's other actions")

// Options of a Pool.
type Options struct {
	// Workers bounds the actions that work at once, 4 by default; see fair.Places for how tenants share them.
	Workers fair.Bounds
	// Notify is called when an action of the app has ended, and when an app that is queued may try again. It must not block.
	Notify func(app types.NamespacedName)
	// Now is the clock.
	Now func() time.Time
	// Linger is how long the slot of a release that is gone is kept; see Leave.
	Linger time.Duration
}

// Pool runs actions. M is what its user remembers of each release.
type Pool[M any] struct {
	notify    func(types.NamespacedName)
	slots     slots[M]
	admission admission
	workers   *fair.Places

	// mu makes sure that no action starts after the pool has stopped.
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

// Action is what to do on a release.
type Action struct {
	// Name says what it does, such as "upgrading". It must not be empty.
	Name string
	// Input identifies the input that it is about.
	Input string
	// Why it was begun, for people.
	Why string
	// App is the owner of the release; it is notified. Tenant is the tenant that the worker counts for.
	App    types.NamespacedName
	Tenant string
	// Run does it. What Run returns is called with the slot locked, after the slot is free again. The context carries the values of
	// the caller's but never ends.
	Run func(context.Context, *Worker) (ended func())
}

// Start runs the action in the slot as soon as a worker is free, and calls Notify after it. It fails with ErrQueued or ErrDraining. The caller
// has locked the slot, and no action is in it.
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

// NotifyNext notifies as many queued apps of the tenant as may start an action now. Call it also when an app that was notified starts none:
// its turn goes to the next.
func (p *Pool[M]) NotifyNext(tenant string) {
	next := p.admission.next(tenant)
	if p.stopping.Err() != nil {
		return
	}
	for _, app := range next {
		p.notify(app)
	}
}

// Working is how many workers are in use.
func (p *Pool[M]) Working() int { return p.workers.Taken() }

// Stopping is closed when the pool drains.
func (p *Pool[M]) Stopping() <-chan struct{} { return p.stopping.Done() }

// Drain starts nothing more, drops the actions that have no worker yet and waits until those that run have ended, or ctx has.
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

// Leave forgets the slot of a release that is gone once Options.Linger has passed, unless the slot is used again before.
func (p *Pool[M]) Leave(key types.NamespacedName) { p.slots.leave(key) }

// Forget drops the slots of a namespace that is gone, and the actions in them that have no worker yet. Those that run end by themselves.
func (p *Pool[M]) Forget(namespace string) { p.slots.forget(namespace) }
