package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
)

// Options of a Pool.
type Options struct {
	// Processes is how many processes work at once. Default: GOMAXPROCS. Further calls wait, first come, first served. Callers share
	// the processes fairly among tenants.
	Processes int
	Limits    Limits
	// Program is the command line that starts a process; Command is added as its last argument. Default: the running binary, even if its
	// file was replaced.
	Program []string
	Log     logr.Logger
}

// ErrClosed is the error of calls to a pool that was closed.
var ErrClosed = errors.New("the operator is stopping")

// Pool runs calls in worker processes and reuses them. It replaces a process that exceeded a limit or died. Safe for concurrent use.
type Pool struct {
	opts    Options
	metrics *counters
	clock   clock.PassiveClock
	// cgroup is the folder of the container's cgroup.
	cgroup string
	// places is a semaphore with one item for each running call.
	places chan struct{}

	mu     sync.Mutex
	idle   []*process
	all    map[*process]bool
	closed bool
	// reported is what confines the processes, as last logged. failed is why the last start failed, or nil.
	reported *string
	failed   error
}

// New returns a Pool. It starts no process before Start or the first call.
func New(o Options) *Pool {
	o.Limits = o.Limits.withDefaults()
	if o.Processes <= 0 {
		o.Processes = runtime.GOMAXPROCS(0)
	}
	if len(o.Program) == 0 {
		o.Program = []string{"/proc/self/exe"}
	}
	o.Program = append(slices.Clone(o.Program), Command)
	return &Pool{
		opts: o, metrics: newCounters(), clock: clock.RealClock{}, cgroup: cgroups, places: make(chan struct{}, o.Processes), all: map[*process]bool{},
	}
}

// Start starts a process, logs what confines it, and ends all processes when ctx ends.
func (p *Pool) Start(ctx context.Context) error {
	b, err := p.take(ctx, "")
	if err != nil {
		return err
	}
	p.put(b)
	<-ctx.Done()
	p.Close()
	return nil
}

// Call runs a function in a process. If ctx ends, the process is killed and Call returns ctx's cause. Other errors are a *LimitError, a
// *FunctionError, a *CrashError after the second try, or errors of starting a process.
func (p *Pool) Call(ctx context.Context, c Call) ([]byte, error) {
	select {
	case p.places <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-p.places }()
	began := p.clock.Now()
	out, err := p.retry(ctx, c)
	p.metrics.observe(c.Function, err, p.clock.Since(began))
	return out, err
}

// maxTries is the maximum number of processes for a call, if they are killed before they begin it.
const maxTries = 4

// retry runs the call, and runs it once more if its process is killed. A process that was killed before it began the call does not count
// as a try.
func (p *Pool) retry(ctx context.Context, c Call) ([]byte, error) {
	begun, start := 0, p.take
	for try := 1; ; try++ {
		out, err := p.once(ctx, c, start)
		var crash *CrashError
		if !errors.As(err, &crash) || ctx.Err() != nil || try == maxTries {
			return out, err
		}
		if crash.begun {
			begun++
		}
		if begun == 2 {
			return out, err
		}
		start = p.launch // An idle process may have been killed too.
	}
}

func (p *Pool) once(ctx context.Context, c Call, start func(context.Context, string) (*process, error)) ([]byte, error) {
	b, err := start(ctx, c.Program)
	if err != nil {
		return nil, err
	}
	out, err := b.call(ctx, c, p.opts.Limits)
	switch {
	case errors.As(err, new(*CrashError)):
		p.drop(b) // The next try starts another process.
		return out, err
	case b.hasEnded() || b.causeOf() != nil || ctx.Err() != nil:
		p.discard(b)
		return out, err
	}
	p.put(b)
	return out, err
}

// take returns an idle process of the program, or a new one. "" is the pool's program.
func (p *Pool) take(ctx context.Context, program string) (*process, error) {
	for {
		b, err := p.takeIdle(program)
		if err != nil {
			return nil, err
		}
		if b == nil {
			return p.launch(ctx, program)
		}
		if !b.hasEnded() {
			return b, nil
		}
		p.discard(b)
	}
}

// takeIdle returns an idle process of the program, or nil. If it returns nil and the pool is full, it ends an idle process of another
// program, so that there are never more than Processes: idle processes use memory too.
func (p *Pool) takeIdle(program string) (*process, error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, ErrClosed
	}
	for i, b := range slices.Backward(p.idle) {
		if b.program == program {
			p.idle = slices.Delete(p.idle, i, i+1)
			p.mu.Unlock()
			return b, nil
		}
	}
	var other *process
	if len(p.idle) > 0 && len(p.all) >= p.opts.Processes {
		other, p.idle = p.idle[0], p.idle[1:]
	}
	p.mu.Unlock()
	if other != nil {
		p.drop(other)
	}
	return nil, nil
}

// launch starts a process. It uses namespaces of its own if the system permits that, and tries so each time, because that may change.
func (p *Pool) launch(ctx context.Context, program string) (*process, error) {
	command := p.opts.Program
	if program != "" {
		command = []string{program, Command}
	}
	b, err := start(ctx, command, p.opts.Limits.Memory, true)
	if errors.As(err, new(*spawnError)) {
		b, err = start(ctx, command, p.opts.Limits.Memory, false)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil && ctx.Err() != nil {
		return nil, context.Cause(ctx) // The caller gave up. That is no failure of the pool.
	}
	if p.failed = err; err != nil {
		return nil, err
	}
	if p.closed {
		b.end()
		return nil, ErrClosed
	}
	b.program = program
	p.report(b.active)
	p.all[b] = true
	p.metrics.processes.Set(float64(len(p.all)))
	return b, nil
}

// Ready is a readiness check. It returns an error before the first process has started, and while none can be started.
func (p *Pool) Ready(r *http.Request) error {
	p.mu.Lock()
	begun, failed := p.reported != nil, p.failed
	p.mu.Unlock()
	switch {
	case failed != nil:
		b, err := p.take(r.Context(), "")
		if err != nil {
			return fmt.Errorf("starting a process that evaluates: %w", err)
		}
		p.put(b)
		p.mu.Lock()
		p.failed = nil
		p.mu.Unlock()
	case !begun:
		return errors.New("no process that evaluates was started yet")
	}
	return nil
}

func (p *Pool) put(b *process) {
	p.mu.Lock()
	unwanted := p.closed || len(p.all) > p.opts.Processes
	if !unwanted {
		p.idle = append(p.idle, b)
	}
	p.mu.Unlock()
	if unwanted {
		p.discard(b)
	}
}

// drop ends a process and removes it from the pool.
func (p *Pool) drop(b *process) {
	b.end()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.all, b)
	p.metrics.processes.Set(float64(len(p.all)))
}

// discard ends a process, and starts another one in the background if none is idle.
func (p *Pool) discard(b *process) {
	p.drop(b)
	p.mu.Lock()
	spare := !p.closed && len(p.idle) == 0 && len(p.all) < p.opts.Processes
	p.mu.Unlock()
	if spare {
		go func() {
			if fresh, err := p.launch(context.Background(), b.program); err == nil { // The next call returns the error.
				p.put(fresh)
			}
		}()
	}
}

// Close ends all processes. Their calls return ErrClosed.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed, p.idle = true, nil
	all := p.all
	p.all = map[*process]bool{}
	p.mu.Unlock()
	for b := range all {
		b.kill(ErrClosed)
	}
	for b := range all {
		<-b.ended
	}
}

// outcome returns how a call ended, as a label of metrics.
func outcome(err error) string {
	var limit *LimitError
	switch {
	case err == nil:
		return "answered"
	case errors.As(err, &limit):
		return "limit: " + limit.Limit
	case errors.As(err, new(*FunctionError)):
		return "error"
	case errors.As(err, new(*CrashError)):
		return "crash"
	}
	return "ended"
}

// observe counts a call.
func (m *counters) observe(function string, err error, took time.Duration) {
	m.calls.WithLabelValues(function, outcome(err)).Inc()
	m.duration.WithLabelValues(function).Observe(took.Seconds())
}
