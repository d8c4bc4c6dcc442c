package release

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeop/kubeop/delivery/release/decide"
	"github.com/kubeop/kubeop/delivery/release/fault"
)

// job is an action to run: on which trial, and how.
type job struct {
	act   decide.Act
	trial string
	why   string
	asked string
	// tenant whose share it takes; empty: the app's namespace is one of its own.
	tenant string
	run    func(context.Context, *place) result
}

// errInLine says that the tenant has as many actions as it may. The app waits, and is notified when it may try again.
var errInLine = errors.New("waits in line")

// start runs the job as soon as a worker is free, and Notify after it, or fails with errInLine. The slot is locked by the
// caller. The job's context carries the caller's values but ends with nothing.
func (e *Engine) start(ctx context.Context, s *slot, app types.NamespacedName, j job) error {
	p := &place{engine: e, tenant: cmp.Or(j.tenant, app.Namespace)}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.draining {
		return fault.ErrDraining
	}
	if !e.admit(p.tenant, app) {
		return errInLine
	}
	if j.why == "" {
		j.why = s.because
	}
	s.because = ""
	s.action, s.trial, s.why, s.superseded = j.act, j.trial, j.why, make(chan struct{})
	e.actions.Add(1)
	go e.work(context.WithoutCancel(ctx), s, p, app, j)
	return nil
}

func (e *Engine) work(ctx context.Context, s *slot, p *place, app types.NamespacedName, j job) {
	defer e.actions.Done()
	defer e.ended(p.tenant)
	if !p.enter() {
		s.abandon()
		return
	}
	if s.forgotten.Load() {
		p.leave()
		s.abandon()
		return
	}
	s.begin()
	r := safely(ctx, j, p)
	p.leave()
	s.finish(e, j, r)
	e.opts.Notify(app)
}

// maxInFlight bounds the actions of one tenant that have begun, the waiting ones included: each holds a chart.
const maxInFlight = 8

// tenantActions are the actions of one tenant. The engine's lock guards them; those of a tenant who has none are forgotten.
type tenantActions struct {
	// begun counts those that have begun.
	begun int
	// waiting are the apps that may begin none yet. They are called in order and look anew: holding what each wanted to do
	// would cost memory, and be out of date when its turn comes.
	waiting []types.NamespacedName
	waits   map[types.NamespacedName]bool
}

// admit counts an action that begins, or has the app wait. The engine is locked by the caller.
func (e *Engine) admit(tenant string, app types.NamespacedName) bool {
	of := e.tenants[tenant]
	if of == nil {
		of = &tenantActions{waits: map[types.NamespacedName]bool{}}
		e.tenants[tenant] = of
	}
	if of.begun < maxInFlight {
		of.begun++
		return true
	}
	if !of.waits[app] {
		of.waits[app] = true
		of.waiting = append(of.waiting, app)
	}
	return false
}

// ended counts an action that has ended.
func (e *Engine) ended(tenant string) {
	e.mu.Lock()
	e.tenants[tenant].begun--
	e.mu.Unlock()
	e.callNext(tenant)
}

// call ends a look. Who was called and wants nothing any more has left room for the next.
func (e *Engine) call(req *Request) { e.callNext(cmp.Or(req.Tenant, req.App.Namespace)) }

// callNext has as many of those that wait look anew as may begin.
func (e *Engine) callNext(tenant string) {
	e.mu.Lock()
	of := e.tenants[tenant]
	if of == nil {
		e.mu.Unlock()
		return
	}
	called := of.waiting[:min(len(of.waiting), maxInFlight-of.begun)]
	for _, app := range called {
		delete(of.waits, app)
	}
	if of.waiting = of.waiting[len(called):]; of.begun == 0 && len(of.waiting) == 0 {
		delete(e.tenants, tenant)
	}
	if e.draining {
		called = nil
	}
	e.mu.Unlock()
	for _, app := range called {
		e.opts.Notify(app)
	}
}

// place is what an action needs to work: one of the engine's workers, unless it only waits.
type place struct {
	engine *Engine
	tenant string

	mu sync.Mutex
	// waiting counts what waits in the action at once; release gives the worker back.
	waiting int
	release func()
}

// enter waits for a worker, and reports false when the engine stops.
func (p *place) enter() bool {
	release, err := p.engine.workers.Enter(p.engine.running, p.tenant)
	if err != nil {
		return false
	}
	if p.release = release; p.engine.running.Err() != nil {
		release()
		return false
	}
	return true
}

// leave gives the worker back.
func (p *place) leave() { p.release() }

// idle runs f, which only waits, without a worker. While anything in the action waits, it has none.
func (p *place) idle(f func() error) error {
	p.mu.Lock()
	if p.waiting++; p.waiting == 1 {
		p.release()
	}
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.waiting--; p.waiting == 0 {
			// It goes on also while the engine stops, and any number may wait, so that this cannot fail.
			p.release, _ = p.engine.workers.Enter(context.Background(), p.tenant)
		}
	}()
	return f()
}

func safely(ctx context.Context, j job, p *place) (r result) {
	defer fault.Recovered(string(j.act), &r.err)
	return j.run(ctx, p)
}

// Drain starts nothing more, drops what is queued and waits until what runs has ended, or ctx.
func (e *Engine) Drain(ctx context.Context) error {
	e.mu.Lock()
	e.draining = true
	e.stop()
	e.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		e.actions.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for running Helm actions: %w", ctx.Err())
	}
}
