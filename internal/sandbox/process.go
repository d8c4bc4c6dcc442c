package sandbox

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// watchInterval is how often the time that a running call has used is compared with its limits.
const watchInterval = 20 * time.Millisecond

// running is a call that a process is working on.
type running struct {
	*process
	limits Limits
	// handler is nil if questions are not answered.
	handler Handler
	// answering is true while the parent answers a question. That time does not count for the limit.
	answering atomic.Bool
	questions int
	// begun means that the process has read the call.
	begun bool
	place string
}

// call runs a call in the process. After any error but a *FunctionError the process has ended.
func (p *process) call(ctx context.Context, c Call, limits Limits) ([]byte, error) {
	r := &running{process: p, limits: c.Limits.or(limits)}
	stop := context.AfterFunc(ctx, func() { p.kill(context.Cause(ctx)) })
	defer stop()
	answered, watched := make(chan struct{}), make(chan struct{})
	before := p.cpu()
	if c.NewHandler != nil {
		r.handler = c.NewHandler()
	}
	c.Usage.of(func() time.Duration { return max(0, p.cpu()-before) })
	go func() {
		r.watch(before, answered)
		close(watched)
	}()
	out, err := r.converse(ctx, c)
	close(answered)
	<-watched // Otherwise it could kill the process during the next call.
	var failed *FunctionError
	if err == nil || errors.As(err, &failed) {
		return out, err
	}
	p.end()
	return nil, r.why(err)
}

// converse sends the call, and answers the questions of the process until the result arrives.
func (r *running) converse(ctx context.Context, c Call) ([]byte, error) {
	if err := (frame{kind: call, head: c.Function, more: c.Input}).writeTo(r.in); err != nil {
		return nil, err
	}
	for {
		f, err := readFrame(r.out, r.limits.Output)
		if err != nil {
			return nil, err
		}
		r.begun = true
		switch f.kind {
		case note:
			r.place = f.head
		case question:
			if err := r.reply(ctx, f.body); err != nil {
				return nil, err
			}
		case answer:
			return f.body, nil
		case failure:
			return nil, &FunctionError{Text: string(f.body)}
		default:
			return nil, fmt.Errorf("%w: kind %d from a process", errProtocol, f.kind)
		}
	}
}

func (r *running) reply(ctx context.Context, question []byte) error {
	if r.questions++; r.questions > r.limits.Questions {
		return &LimitError{Limit: "questions", Value: fmt.Sprint(r.limits.Questions)}
	}
	r.answering.Store(true)
	defer r.answering.Store(false)
	f := frame{kind: answer}
	var err error
	if r.handler == nil {
		err = errors.New("this call may not send questions")
	} else {
		f.body, err = r.handler(ctx, question)
	}
	if err != nil {
		f = frame{kind: failure, body: []byte(err.Error())}
	}
	return f.writeTo(r.in)
}

// watch kills a process that exceeds its limits of time.
func (r *running) watch(before time.Duration, done <-chan struct{}) {
	ticks := time.NewTicker(watchInterval)
	defer ticks.Stop()
	var wall time.Duration
	var last time.Time
	for {
		var now time.Time
		select {
		case <-done:
			return
		case now = <-ticks.C:
		}
		if !r.answering.Load() && !last.IsZero() {
			wall += now.Sub(last)
		}
		last = now
		switch {
		case r.cpu()-before > r.limits.CPU:
			r.kill(&LimitError{Limit: "processor time", Value: r.limits.CPU.String()})
		case wall > r.limits.Wall:
			r.kill(&LimitError{Limit: "time", Value: r.limits.Wall.String()})
		}
	}
}

// cpu returns the processor time that the process has used, or 0 once it has ended.
func (p *process) cpu() time.Duration {
	const schedule = 2 // CPUCLOCK_SCHED of the whole process, see clock_getcpuclockid(3)
	var used unix.Timespec
	if err := unix.ClockGettime(int32(^p.cmd.Process.Pid<<3|schedule), &used); err != nil { // a PID has 22 bits
		return 0
	}
	return time.Duration(used.Nano())
}

// Texts in the output of Go's runtime when memory or stack is used up. There is no type to compare: a process that dies of either has the
// exit code of any fatal error.
var (
	outOfMemory   = []string{"out of memory", "cannot allocate memory", "failed to create new OS thread", "cannot map pages"}
	stackOverflow = []string{"stack overflow", "stack exceeds"}
)

// why returns the reason why the process ended. err is the error of the communication with it.
func (r *running) why(err error) error {
	var limit *LimitError
	cause, stderr := r.causeOf(), r.stderr.String()
	switch {
	case errors.As(err, &limit), errors.As(cause, &limit):
	case errors.Is(err, errTooLong):
		limit = &LimitError{Limit: "output", Value: bytesOf(int64(r.limits.Output))}
	case cause != nil:
		return cause
	case containsAny(stderr, stackOverflow):
		limit = &LimitError{Limit: "stack", Value: bytesOf(maxStack)}
	case containsAny(stderr, outOfMemory):
		limit = &LimitError{Limit: "memory", Value: bytesOf(r.limits.Memory)}
	case errors.Is(err, errProtocol):
		return err
	default:
		return &CrashError{State: r.cmd.ProcessState.String(), begun: r.begun}
	}
	limit.Place = r.place
	return limit
}

func containsAny(text string, words []string) bool {
	for _, word := range words {
		if strings.Contains(text, word) {
			return true
		}
	}
	return false
}

func bytesOf(n int64) string {
	if n%(1<<20) == 0 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d bytes", n)
}
