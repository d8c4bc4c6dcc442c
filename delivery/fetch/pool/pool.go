// Package pool runs fetches apart from the workers that need them. A worker submits a task and goes on with other objects; the task runs
// when there is a slot for it, and calls back. Slots are limited in all, for each host and for each tenant, and a circuit breaker keeps
// requests from hosts that give no answer. So a host that hangs, or a tenant with many such hosts, delays no other.
package pool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/kubeop/kubeop/delivery/fair"
)

// Task is one fetch.
type Task struct {
	// Source identifies what is fetched among the sources of its host. Host is "name:port", or "" if there are several.
	Source, Host string
	// Tenant for whom it is fetched.
	Tenant   string
	Priority Priority
	// Requested means that it was requested by a person, a push or a new spec.
	Requested bool
	// Timeout bounds Run, from its start.
	Timeout time.Duration
	// Run fetches. Its context ends with the timeout, with cancel of Submit, and with the pool.
	Run func(context.Context) error
	// Done is called once with what Run returned, or with the reason why it did not run: an *OpenError or ErrCanceled.
	Done func(error)
	// Retry, which may be nil, is called when another try makes sense after Submit returned ErrFull; once for each Source.
	Retry func()
}

var (
	// ErrFull means that the tenant has as many tasks waiting as it may.
	ErrFull = errors.New("too many fetches wait")
	// ErrCanceled means that the task was canceled.
	ErrCanceled = errors.New("no object waits for it any more")
	// ErrTimeout is the cause of a context that ended with the timeout of its task.
	ErrTimeout = errors.New("timeout")
)

// Reach is how far a task came to its host.
type Reach int

// Answered means that the host answered, even with an error. Silent means that a connection was made but no answer came; Unconnected, that
// no connection could be made.
const (
	Answered Reach = iota
	Silent
	Unconnected
)

// Options are the bounds of a pool; the zero value has the defaults.
type Options struct {
	// Name of the pool in metrics of waiting. Default: fetches.
	Name string
	// Slots are for tasks at hosts that answered last time; Apps use at most three quarters of them. Default 32.
	Slots int
	// Trials are the slots for tasks at hosts that never answered, or did not last time, and for tasks that have become slow; Apps use at
	// most a quarter of them. Such a task is a connection that waits. Default 512.
	Trials int
	// PerHost and PerTenant bound what runs at once; the tasks of Repositories are those of one tenant each. Defaults 8 and 4.
	PerHost, PerTenant int
	// Waiting bounds what waits for one tenant. Default 1,000.
	Waiting int
	// Slow is the time after which a task counts among the trials. Default 500 ms.
	Slow time.Duration
	// Reach judges what Run returned; nil takes everything for an answer.
	Reach func(error) Reach
	// Weight returns how many turns a tenant has for one of another's; nil: one.
	Weight func(tenant string) int
}

func (o Options) withDefaults() Options {
	for _, d := range []struct {
		field *int
		value int
	}{{&o.Slots, 32}, {&o.Trials, 512}, {&o.PerHost, 8}, {&o.PerTenant, 4}, {&o.Waiting, 1000}} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	o.Name = cmp.Or(o.Name, "fetches")
	if o.Slow == 0 {
		o.Slow = 500 * time.Millisecond
	}
	if o.Reach == nil {
		o.Reach = func(error) Reach { return Answered }
	}
	return o
}

// Pool runs tasks. Safe for concurrent use.
type Pool struct {
	Options
	clock   clock.WithDelayedExecution
	metrics *metrics

	mu      sync.Mutex
	queue   queue
	full    overflow
	hosts   hosts
	running map[*running]bool
	tenants map[string]int
	lanes   [lanes]lane
	stopped bool
}

// New returns a pool that takes the time from the clock.
func New(o Options, c clock.WithDelayedExecution) *Pool {
	o = o.withDefaults()
	p := &Pool{
		Options: o, clock: c, metrics: newMetrics(), queue: newQueue(o.Weight), full: overflow{}, hosts: hosts{}, running: map[*running]bool{}, tenants: map[string]int{},
	}
	p.lanes[reserved] = lane{slots: 1}
	p.lanes[proven] = lane{slots: o.Slots, apps: max(1, o.Slots*3/4)}
	p.lanes[trial] = lane{slots: o.Trials, apps: max(1, o.Trials/4)}
	return p
}

// running is a running task.
type running struct {
	*Task
	host  *host
	began time.Time
	probe bool
	in    int
	// end ends the context of the run.
	end   context.CancelCauseFunc
	timer []clock.Timer
}

// Submit runs a task when there is a slot for it, and returns without waiting for that. cancel ends the task, waiting or running. The error
// is ErrFull, or an *OpenError if the host's circuit breaker is open; Done is not called then.
func (p *Pool) Submit(t Task) (cancel func(), err error) {
	p.mu.Lock()
	switch {
	case p.stopped:
		err = ErrCanceled
	case p.queue.waitingFor(t.Tenant) >= p.Waiting:
		err = ErrFull
		p.full.add(&t)
	case p.admit(&t) == refuse:
		err = p.hosts.of(&t).refusal(t.Host, p.clock.Now())
	}
	if err != nil {
		p.mu.Unlock()
		return nil, err
	}
	task := &t
	p.queue.add(task, p.clock.Now())
	over := p.dispatch()
	p.mu.Unlock()
	over()
	return func() { p.cancel(task) }, nil
}

func (p *Pool) cancel(t *Task) {
	p.mu.Lock()
	waited, retry := p.queue.remove(t), func() {}
	for r := range p.running {
		if r.Task == t {
			r.end(ErrCanceled)
		}
	}
	if waited {
		retry = p.full.next(t.Tenant)
	}
	p.mu.Unlock()
	if waited {
		t.Done(ErrCanceled)
	}
	retry()
}

// Start implements manager.Runnable: when the context ends, so do the tasks.
func (p *Pool) Start(ctx context.Context) error {
	<-ctx.Done()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopped = true
	p.queue, p.full = newQueue(nil), nil
	for r := range p.running {
		r.end(ErrCanceled)
	}
	return nil
}

// dispatch starts the tasks for which there are slots. The function that it returns reports to tasks at hosts with an opened circuit
// breaker, and to those that may try again; call it without the lock.
func (p *Pool) dispatch() func() {
	var refused []*Task
	var because []error
	var retries []func()
	p.queue.each(func(t *Task) fair.Verdict {
		if p.tenants[t.Tenant] >= p.PerTenant {
			return fair.SkipTenant
		}
		switch p.admit(t) {
		case start:
			fair.Waited(p.Name, p.clock.Since(p.queue.forget(t)))
			p.run(t)
			retries = append(retries, p.full.next(t.Tenant))
			return fair.Take
		case refuse:
			p.queue.forget(t)
			retries = append(retries, p.full.next(t.Tenant))
			refused = append(refused, t)
			because = append(because, p.hosts.of(t).refusal(t.Host, p.clock.Now()))
			return fair.Drop
		}
		return fair.Skip
	})
	return func() {
		for i, t := range refused {
			t.Done(because[i])
		}
		for _, retry := range retries {
			retry()
		}
	}
}

// run starts a task.
func (p *Pool) run(t *Task) {
	now := p.clock.Now()
	h := p.hosts.of(t)
	ctx, end := context.WithCancelCause(context.Background())
	r := &running{Task: t, host: h, began: now, end: end, in: p.laneOf(t, h), probe: h.begin(now)}
	p.running[r] = true
	p.tenants[t.Tenant]++
	p.lanes[r.in].take(t)
	r.timer = append(r.timer, p.clock.AfterFunc(t.Timeout, func() {
		end(fmt.Errorf("it takes longer than the %w of %s", ErrTimeout, t.Timeout))
	}))
	if r.in == proven {
		r.timer = append(r.timer, p.clock.AfterFunc(p.Slow, func() { go p.slow(r) }))
	}
	go func() {
		err := t.Run(ctx)
		if errors.Is(context.Cause(ctx), ErrCanceled) {
			err = ErrCanceled
		}
		end(nil)
		p.ended(r, err)
		t.Done(err)
	}()
}

// slow gives the slot of a task to the next one and counts it among the trials, which may exceed their slots by that.
func (p *Pool) slow(r *running) {
	p.mu.Lock()
	if p.running[r] {
		p.lanes[r.in].leave(r.Task)
		r.in = trial
		p.lanes[r.in].take(r.Task)
	}
	over := p.dispatch()
	p.mu.Unlock()
	over()
}

// ended frees the slots of a task, and records what it found out about the host.
func (p *Pool) ended(r *running, err error) {
	p.mu.Lock()
	for _, t := range r.timer {
		t.Stop()
	}
	now := p.clock.Now()
	delete(p.running, r)
	p.lanes[r.in].leave(r.Task)
	if p.tenants[r.Tenant]--; p.tenants[r.Tenant] == 0 {
		delete(p.tenants, r.Tenant)
	}
	outcome := "canceled"
	if errors.Is(err, ErrCanceled) {
		r.host.leave(r.probe)
	} else {
		reach := p.Reach(err)
		r.host.leave(r.probe)
		r.host.learn(r, reach, now)
		outcome = outcomeOf(err, reach)
	}
	p.metrics.took(r.Priority, outcome, now.Sub(r.began))
	over := p.dispatch()
	p.mu.Unlock()
	over()
}
