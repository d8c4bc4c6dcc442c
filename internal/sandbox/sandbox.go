// Package sandbox evaluates tenants' input in worker processes. They run the operator's own binary or another program of its image. They have no
// environment, files, network or other programs, and limits of memory, processor time, time and output. Only a process that exceeds a limit
// ends. Functions are registered by name. Serve is the worker's side, Pool is the parent's.
package sandbox

import (
	"cmp"
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// Command is the argument that starts the binary as a worker: "operator evaluate <bytes of memory>".
const Command = "evaluate"

// Function is a function that a worker can run. query sends a question to the parent and returns its answer. note reports what is being
// evaluated, such as the name of a file, so that the error about an exceeded limit can name it.
type Function func(input []byte, query func([]byte) ([]byte, error), note func(place string)) ([]byte, error)

// Limits are the limits of one call. Zero means the default.
type Limits struct {
	// Memory is how much the call may allocate, in bytes. Default 256 MiB.
	Memory int64
	// CPU is the processor time of the call. Default 10s.
	CPU time.Duration
	// Wall is how long the call may take, without the time in which the parent answers questions. Default 30s.
	Wall time.Duration
	// Output is the maximum size of the result and of each question, in bytes. Default 16 MiB.
	Output int
	// Questions is how many questions the call may send to the parent. Default 1,000.
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

// or returns the limits of a call, with the pool's where the call sets none. Memory is always the pool's.
func (l Limits) or(pool Limits) Limits {
	return Limits{
		Memory: pool.Memory, CPU: cmp.Or(l.CPU, pool.CPU), Wall: cmp.Or(l.Wall, pool.Wall),
		Output: cmp.Or(l.Output, pool.Output), Questions: cmp.Or(l.Questions, pool.Questions),
	}
}

// LimitError is the error of a call that exceeded a limit. The same input would exceed it again.
type LimitError struct {
	// Limit is memory, stack, processor time, time, output or questions. Value is its size with the unit.
	Limit, Value string
	// Place is what the function evaluated when it exceeded the limit, as it last noted, or "".
	Place string
}

func (e *LimitError) Error() string {
	if e.Place == "" {
		return fmt.Sprintf("it takes more than the limit of %s, %s", e.Limit, e.Value)
	}
	return fmt.Sprintf("%s takes more than the limit of %s, %s", e.Place, e.Limit, e.Value)
}

// OverLimit identifies the error for callers that do not import this package, see apart.OverLimit.
func (*LimitError) OverLimit() {}

// CrashError means that the process ended before it answered, for a reason that is not known to be in the input: it was killed from outside.
// The call had been tried again.
type CrashError struct {
	// State is how the process ended, such as "signal: killed".
	State string
	// begun means that the process had begun the call.
	begun bool
}

func (e *CrashError) Error() string {
	return "the process that evaluates it ended before it answered: " + e.State
}

// FunctionError is the error that a function returned.
type FunctionError struct{ Text string }

func (e *FunctionError) Error() string { return e.Text }

// Handler answers a question of a process.
type Handler = func(ctx context.Context, question []byte) ([]byte, error)

// Call is one call of a function in a process.
type Call struct {
	// Function is the function's registered name.
	Function string
	// Program is the path of the program that has the function. "" means the pool's program.
	Program string
	// Input is the function's input, in pieces that are sent one after the other.
	Input [][]byte
	// NewHandler returns the handler of one process's questions, which come one at a time. It is called again when the call is retried in
	// another process, so answers to a process that was killed do not count. Nil means that the call may not send questions.
	NewHandler func() Handler
	// Limits of this call. Each defaults to the pool's. Memory is always the pool's.
	Limits Limits
	// Usage receives what the call has used so far. It may be nil.
	Usage *Usage
}

// Usage is what a call has used so far. Safe for concurrent use. The zero value is that of a call that has not begun.
type Usage struct {
	cpu atomic.Pointer[func() time.Duration]
}

// CPU returns the processor time of the call in its current process. A retry in another process starts at zero.
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
