package release

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// slot is the place of one release: at most one action is in it.
type slot struct {
	// memory of the release's records; it has its own lock.
	memory memo

	// mu is held while deciding, so that two requests at once do not both act.
	mu sync.Mutex
	// action that is queued or, when working, runs on trial; settled when there is none.
	action  act
	working bool
	trial   string
	why     string
	// superseded is closed when another input is wanted.
	superseded chan struct{}
	// last is the last action, cause the last that failed because of its input or on the way to it.
	last, cause attempt
	// applied are the objects of a deployed revision, until the caller knows them.
	applied applied
	// gone is the uninstalled revision whose objects were seen to be gone.
	gone int
	// leaving are its objects that are not.
	leaving leaving
	// begun is the last request to force or to reset for which an action failed, heeded the last that is done with though no
	// revision tells of it.
	begun, heeded string
	// because is why the next action is begun, if not for its own reason; ended tells of the last one.
	because string
	ended   conclusion
	// forgotten: the namespace is gone.
	forgotten atomic.Bool
	// fenced: another process took over the release.
	fenced bool
}

func (e *Engine) slot(key types.NamespacedName) *slot {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.left, key)
	s, ok := e.slots[key]
	if !ok {
		s = &slot{}
		e.slots[key] = s
	}
	return s
}

// leave has the slot of a release that is gone forgotten, once the index is sure to know it, too, unless the release comes
// back.
func (e *Engine) leave(key types.NamespacedName) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.opts.Now()
	e.left[key] = now
	for other, since := range e.left {
		if now.Sub(since) > stale {
			delete(e.left, other)
			delete(e.slots, other)
		}
	}
}

// Forget drops what is remembered of a namespace that is gone, and what is queued in it. What runs there ends by itself.
func (e *Engine) Forget(namespace string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for key, s := range e.slots {
		if key.Namespace == namespace {
			s.forgotten.Store(true)
			delete(e.slots, key)
			delete(e.left, key)
		}
	}
	delete(e.quarters, namespace)
}

// supersede ends the waiting of an action for another input. The slot is locked by the caller.
func (s *slot) supersede() {
	select {
	case <-s.superseded:
	default:
		close(s.superseded)
	}
}

// isSuperseded is whether the action's input is no longer wanted. Only the action asks.
func (s *slot) isSuperseded() bool {
	select {
	case <-s.superseded:
		return true
	default:
		return false
	}
}

// settle forgets the last action, unless it was in vain on the tests of what is deployed, which are tried again when that is
// due. The slot is locked by the caller.
func (s *slot) settle(trial string) {
	s.fenced = false
	if s.last.act != probe || s.last.trial != trial {
		s.last = attempt{}
	}
}

// result is what an action came to.
type result struct {
	err error
	// world: err says nothing about the input.
	world bool
	// stored: a revision tells of it.
	stored bool
	// log holds Helm's last lines when it failed.
	log []string
	// applied are the objects of the revision it deployed.
	applied applied
	// gone is the uninstalled revision whose objects are gone.
	gone int
}

// conclusion tells of an action that has ended: why it was begun, and when it ended.
type conclusion struct {
	why string
	at  time.Time
}

// applied are the objects of one revision.
type applied struct {
	revision int
	objects  []Applied
	// log holds the API server's warnings.
	log []string
}

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

func (s *slot) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.working = true
}

// abandon frees the slot of an action that never began.
func (s *slot) abandon() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.action = settled
}

func (s *slot) finish(e *Engine, j job, r result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.action, s.working = settled, false
	a := attempt{act: j.act, trial: j.trial, err: brief(r.err), world: r.world, at: e.opts.Now(), log: r.log}
	if r.err != nil && !r.stored {
		a.unstored = 1
		if s.last.trial == j.trial && s.last.act == j.act {
			a.unstored += s.last.unstored
		}
	}
	s.last = a
	if j.act == install || j.act == upgrade || j.act == probe {
		s.cause = a
	}
	if r.err != nil && j.asked != "" {
		s.begun = j.asked
		if !r.world && (j.act == install || j.act == upgrade) {
			s.heeded = j.asked
		}
	}
	s.applied, s.gone, s.leaving = r.applied, r.gone, leaving{}
	if j.act != probe {
		s.ended = conclusion{why: j.why, at: a.at}
	}
	s.fenced = errors.Is(r.err, ErrFenced)
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
