package release

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// job is an action to run: on which trial, and how.
type job struct {
	act   act
	trial string
	why   string
	asked string
	// tenant whose share it takes; empty: the app's namespace is one of its own.
	tenant string
	run    func(context.Context, *place) result
}

// errInLine says that the tenant has as many actions as it may. The app is in line, and notified when it may try again.
var errInLine = errors.New("waits in line")

// start runs the job as soon as a worker is free, and Notify after it, or fails with errInLine. The slot is locked by the
// caller. The job's context carries the caller's values but ends with nothing.
func (e *Engine) start(ctx context.Context, s *slot, app types.NamespacedName, j job) error {
	p := e.place(cmp.Or(j.tenant, app.Namespace))
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.draining {
		return ErrDraining
	}
	if !p.enter(app) {
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
	defer p.leave()
	if !p.take() {
		s.abandon()
		return
	}
	if s.forgotten.Load() {
		p.giveBack()
		s.abandon()
		return
	}
	s.begin()
	r := safely(ctx, j, p)
	p.giveBack()
	s.finish(e, j, r)
	e.opts.Notify(app)
}

// maxInFlight bounds the actions of one tenant that have begun, the waiting ones included: each holds a chart.
const maxInFlight = 8

// quarter is what the actions of one tenant share.
type quarter struct {
	// rooms are for actions that have begun.
	rooms chan struct{}
	// desks are for those that work: half of the workers and at least one, so that no tenant has them all.
	desks chan struct{}
	// line are the apps whose actions found no room. They are called in order and look anew: holding what each wanted to do
	// would cost memory, and be out of date when its turn comes. The engine's lock guards it.
	line   []types.NamespacedName
	inLine map[types.NamespacedName]bool
}

func (e *Engine) quarter(tenant string) *quarter {
	e.mu.Lock()
	defer e.mu.Unlock()
	q, ok := e.quarters[tenant]
	if !ok {
		q = &quarter{
			rooms: make(chan struct{}, maxInFlight), desks: make(chan struct{}, max(1, e.opts.Workers/2)),
			inLine: map[types.NamespacedName]bool{},
		}
		e.quarters[tenant] = q
	}
	return q
}

// place is where one action works: in a room and, unless it only waits, at one of the tenant's desks with one of the
// engine's tokens.
type place struct {
	engine *Engine
	*quarter
	mu sync.Mutex
	// waiting counts what waits in the action at once.
	waiting int
}

func (e *Engine) place(tenant string) *place {
	return &place{engine: e, quarter: e.quarter(tenant)}
}

// enter takes a room, or a place in the line. The engine is locked by the caller.
func (p *place) enter(app types.NamespacedName) bool {
	select {
	case p.rooms <- struct{}{}:
		return true
	default:
	}
	if !p.inLine[app] {
		p.inLine[app] = true
		p.line = append(p.line, app)
	}
	return false
}

// leave gives the room back.
func (p *place) leave() {
	<-p.rooms
	p.engine.callNext(p.quarter)
}

// call ends a look. Who was called and wants nothing any more has left rooms for the next in line.
func (e *Engine) call(req *Request) {
	e.callNext(e.quarter(cmp.Or(req.Tenant, req.App.Namespace)))
}

// callNext has as many from the line look anew as there are rooms.
func (e *Engine) callNext(q *quarter) {
	e.mu.Lock()
	called := q.line[:min(len(q.line), cap(q.rooms)-len(q.rooms))]
	if q.line = q.line[len(called):]; e.draining {
		called = nil
	}
	for _, app := range called {
		delete(q.inLine, app)
	}
	e.mu.Unlock()
	for _, app := range called {
		e.opts.Notify(app)
	}
}

// take waits for a worker, the scarcer place the later, and reports false when the engine stops.
func (p *place) take() bool {
	return p.engine.enter(p.desks) && p.engine.enter(p.engine.tokens)
}

func (p *place) giveBack() {
	<-p.engine.tokens
	<-p.desks
}

// idle runs f, which only waits, without a worker's place. While anything in the action waits, none of it has one.
func (p *place) idle(f func() error) error {
	p.mu.Lock()
	if p.waiting++; p.waiting == 1 {
		<-p.engine.tokens
		<-p.desks
	}
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.waiting--; p.waiting == 0 {
			p.desks <- struct{}{}
			p.engine.tokens <- struct{}{}
		}
	}()
	return f()
}

// enter waits for a place and reports false when the engine stops, after which nobody enters anywhere.
func (e *Engine) enter(places chan struct{}) bool {
	select {
	case <-e.stop:
		return false
	case places <- struct{}{}:
		return !e.isDraining()
	}
}

func (e *Engine) isDraining() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.draining
}

func safely(ctx context.Context, j job, p *place) (r result) {
	defer recovered(string(j.act), &r.err)
	return j.run(ctx, p)
}

// Drain starts nothing more, drops what is queued and waits until what runs has ended, or ctx.
func (e *Engine) Drain(ctx context.Context) error {
	e.mu.Lock()
	if !e.draining {
		e.draining = true
		close(e.stop)
	}
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
