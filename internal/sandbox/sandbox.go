// Package sandbox evaluates what tenants wrote in worker processes of the operator's own binary, or of one beside it: without environment, files,
// network or other programs, and within limits of memory, processor time, time and output. A process that is over a limit
// ends, and nothing else does. What can be called is registered by name; see Serve for the process and Pool for its parent.
package sandbox

import (
	"cmp"
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// Command is the argument that makes the binary such a process: "operator evaluate <bytes of memory>".
const Command = "evaluate"

// Function is what a process can do. Ask puts a question to the parent; note says what is being evaluated, such as
// the name of a file, so that an error about a limit can name the place.
type Function func(input []byte, ask func([]byte) ([]byte, error), note func(place string)) ([]byte, error)

// Limits of one call. Zero stands for the default.
type Limits struct {
	// Memory is what the call may allocate, in bytes. Default 256 MiB.
	Memory int64
	// CPU is the processor time of the call. Default 10s.
	CPU time.Duration
	// Wall is how long the call may take, the time in which the parent answers questions left out. Default 30s.
	Wall time.Duration
	// Output is the size of the answer and of each question, in bytes. Default 16 MiB.
	Output int
	// Questions is how many the call may ask. Default 1,000.
	Questions int
}

func (l Limits) withDefaults() Limits {
	if l.Memory <= 0 {
		l.Memory = 256 << 20
	}
	if l.CPU <= 0 {
		l.CPU = 10 * time.Second
	}
	if l.Wall <= 0 {
		l.Wall = 30 * time.Second
	}
	if l.Output <= 0 {
		l.Output = 16 << 20
	}
	if l.Questions <= 0 {
		l.Questions = 1000
	}
	return l
}

// or returns the limits, with those of others where there are none.
func (l Limits) or(others Limits) Limits {
	return Limits{
		Memory: others.Memory, CPU: cmp.Or(l.CPU, others.CPU), Wall: cmp.Or(l.Wall, others.Wall),
		Output: cmp.Or(l.Output, others.Output), Questions: cmp.Or(l.Questions, others.Questions),
	}
}

// LimitError ends a call that was over a limit. The same input ends so again.
type LimitError struct {
	// Limit is memory, stack, processor time, time, output or questions, and Value what it is, with its unit.
	Limit, Value string
	// Place is what was being evaluated, as the function noted it; "" when it noted nothing.
	Place string
}

func (e *LimitError) Error() string {
	if e.Place == "" {
		return fmt.Sprintf("it takes more than the limit of %s, %s", e.Limit, e.Value)
	}
	return fmt.Sprintf("%s takes more than the limit of %s, %s", e.Place, e.Limit, e.Value)
}

// OverLimit marks the error for callers that do not import this package.
func (*LimitError) OverLimit() {}

// CrashError says that the process ended before it answered, for no reason that the input is known to have given: somebody
// killed it. The call was begun twice.
type CrashError struct {
	// State is how it ended, such as "signal: killed".
	State string
	// begun: the process had begun the call.
	begun bool
}

func (e *CrashError) Error() string {
	return "the process that evaluates it ended before it answered: " + e.State
}

// FunctionError is the error that a function returned.
type FunctionError struct{ Text string }

func (e *FunctionError) Error() string { return e.Text }

// Ask answers a question of a process.
type Ask = func(ctx context.Context, question []byte) ([]byte, error)

// Call is what one process is to do.
type Call struct {
	// Function is the registered name.
	Function string
	// Program is that of the process that knows the function, with its path, where that is another one than the pool's.
	Program string
	// Input is what the function is given, in pieces that are sent one after the other.
	Input [][]byte
	// Asks makes who answers the questions of one process, one at a time. It is called for each process that is given the call: what was
	// answered to one that was killed does not count for the next. Nil: there may be none.
	Asks func() Ask
	// Limits of this call. Default of each: that of the pool, which Memory always is.
	Limits Limits
	// Usage receives what the call has used so far. Nil: it is not needed.
	Usage *Usage
}

// Usage is what a call has used so far. It is safe for concurrent use; the zero value is that of a call that has not begun.
type Usage struct {
	cpu atomic.Pointer[func() time.Duration]
}

// CPU is the processor time of the call. Where its process was replaced it is that of the last one.
func (u *Usage) CPU() time.Duration {
	if cpu := u.cpu.Load(); cpu != nil {
		return (*cpu)()
	}
	return 0
}

func (u *Usage) of(cpu func() time.Duration) {
	if u != nil {
		u.cpu.Store(&cpu)
	}
}
