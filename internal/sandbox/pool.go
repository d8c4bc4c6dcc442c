package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
)

// Options of a Pool.
type Options struct {
	// Processes is how many work at once. Default: one for each processor that Go uses.
	Processes int
	Limits    Limits
	// Program starts a process, Command being its last argument. Default: this very binary.
	Program []string
	// Turn waits until a call of the tenant may have a process, and returns what gives it back. Default: first come, first served,
	// among Processes.
	Turn func(ctx context.Context, tenant string) (done func(), err error)
	Log  logr.Logger
}

// ErrClosed says that the pool starts nothing any more.
var ErrClosed = errors.New("the operator is stopping")

// Pool keeps processes that evaluate. They are used again and again; one that was over a limit or died is replaced.
type Pool struct {
	opts    Options
	metrics *counters
	clock   clock.PassiveClock

	mu     sync.Mutex
	idle   []*process
	all    map[*process]bool
	closed bool
	// own: processes can have namespaces of their own. Nil: nobody has tried.
	own *bool
}

// New returns a Pool. Nothing is started before Start or the first call.
func New(o Options) (*Pool, error) {
	o.Limits = o.Limits.withDefaults()
	if o.Processes <= 0 {
		o.Processes = runtime.GOMAXPROCS(0)
	}
	if len(o.Program) == 0 {
		self, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("finding the operator's own binary: %w", err)
		}
		o.Program = []string{self}
	}
	o.Program = append(slices.Clone(o.Program), Command)
	if o.Turn == nil {
		o.Turn = firstCome(o.Processes)
	}
	return &Pool{opts: o, metrics: newCounters(), clock: clock.RealClock{}, all: map[*process]bool{}}, nil
}

// firstCome lets so many work at once.
func firstCome(processes int) func(context.Context, string) (func(), error) {
	places := make(chan struct{}, processes)
	return func(ctx context.Context, _ string) (func(), error) {
		select {
		case places <- struct{}{}:
			return func() { <-places }, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// Start has a process ready, says what confines it, and ends all when ctx ends.
func (p *Pool) Start(ctx context.Context) error {
	b, err := p.take()
	if err != nil {
		return err
	}
	p.report(b.active)
	p.put(b)
	<-ctx.Done()
	p.Close()
	return nil
}

// NeedLeaderElection says that the pool is there on every replica.
func (*Pool) NeedLeaderElection() bool { return false }

// report is the one line about what protects from what is evaluated, and what then is not protected.
func (p *Pool) report(active []string) {
	var missing []string
	for _, name := range []string{namespaces, withLock, withFilter} {
		if !slices.Contains(active, name) {
			missing = append(missing, name+" ("+without[name]+")")
		}
	}
	l := p.opts.Limits
	if all, limit := int64(p.opts.Processes)*l.Memory, containerMemory(); limit > 0 && all+ownMemory > limit {
		missing = append(missing, fmt.Sprintf("the container's limit of memory, %s, is less than %d processes of %s and the operator take: "+
			"what is evaluated can end the operator", bytesOf(limit), p.opts.Processes, bytesOf(l.Memory)))
	}
	p.opts.Log.Info("Evaluating what tenants wrote in processes of their own", "processes", p.opts.Processes,
		"memory", bytesOf(l.Memory), "cpu", l.CPU.String(), "wall", l.Wall.String(), "output", bytesOf(int64(l.Output)),
		"confinedBy", strings.Join(append([]string{"rlimits"}, active...), ", "), "notActive", strings.Join(missing, "; "))
}

// ownMemory is what the operator takes beside the processes.
const ownMemory = 256 << 20

// containerMemory is the limit of memory that the kernel holds this container to, in bytes, and 0 where there is none to be found.
func containerMemory() int64 {
	text, err := os.ReadFile("/sys/fs/cgroup/memory.max")
	if err != nil {
		return 0
	}
	limit, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return 0 // "max" is none.
	}
	return limit
}

// Call has a function evaluated. The end of ctx ends the process, and Call returns ctx's cause. Other errors are a *LimitError, a
// *FunctionError, a *CrashError after the second try, or about processes that cannot be started.
func (p *Pool) Call(ctx context.Context, c Call) ([]byte, error) {
	done, err := p.opts.Turn(ctx, c.Tenant)
	if err != nil {
		return nil, err
	}
	defer done()
	began := p.clock.Now()
	out, err := p.once(ctx, c)
	if errors.As(err, new(*CrashError)) && ctx.Err() == nil {
		out, err = p.once(ctx, c)
	}
	p.metrics.observe(c.Function, err, p.clock.Since(began))
	return out, err
}

func (p *Pool) once(ctx context.Context, c Call) ([]byte, error) {
	b, err := p.take()
	if err != nil {
		return nil, err
	}
	out, err := b.call(ctx, c, p.opts.Limits)
	if b.hasEnded() || b.causeOf() != nil || ctx.Err() != nil {
		p.discard(b)
		return out, err
	}
	p.put(b)
	return out, err
}

// take returns a process that waits, or a new one.
func (p *Pool) take() (*process, error) {
	for {
		b, err := p.waiting()
		if err != nil {
			return nil, err
		}
		if b == nil {
			return p.launch()
		}
		if !b.hasEnded() {
			return b, nil
		}
		p.discard(b)
	}
}

func (p *Pool) waiting() (*process, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, ErrClosed
	}
	if len(p.idle) == 0 {
		return nil, nil
	}
	b := p.idle[len(p.idle)-1]
	p.idle = p.idle[:len(p.idle)-1]
	return b, nil
}

// launch starts a process, in namespaces of its own if the system lets it: the first one finds out.
func (p *Pool) launch() (*process, error) {
	p.mu.Lock()
	own := p.own
	p.mu.Unlock()
	var b *process
	var err error
	if own == nil || *own {
		b, err = start(p.opts.Program, p.opts.Limits.Memory, true)
	}
	if own == nil && err != nil || own != nil && !*own {
		b, err = start(p.opts.Program, p.opts.Limits.Memory, false)
	}
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.own == nil {
		p.own = new(slices.Contains(b.active, namespaces))
	}
	if p.closed {
		b.end()
		return nil, ErrClosed
	}
	p.all[b] = true
	p.metrics.processes.Set(float64(len(p.all)))
	return b, nil
}

func (p *Pool) put(b *process) {
	p.mu.Lock()
	closed := p.closed
	if !closed {
		p.idle = append(p.idle, b)
	}
	p.mu.Unlock()
	if closed {
		p.discard(b)
	}
}

// discard ends a process, and has another one ready when none waits.
func (p *Pool) discard(b *process) {
	b.end()
	p.mu.Lock()
	delete(p.all, b)
	p.metrics.processes.Set(float64(len(p.all)))
	spare := !p.closed && len(p.idle) == 0 && len(p.all) < p.opts.Processes
	p.mu.Unlock()
	if spare {
		go func() {
			if fresh, err := p.launch(); err == nil { // The next call tells the error.
				p.put(fresh)
			}
		}()
	}
}

// Close ends all processes, and the calls in them.
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

// outcome names how a call ended, for the metrics.
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
