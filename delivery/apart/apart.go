// Package apart runs the evaluation of tenants' input in separate processes, and shares them among tenants. It does not start or confine these
// processes, see internal/sandbox.
package apart

import (
	"bytes"
	"context"
	"time"
)

// Function is a function that a process can run. query sends a question to the operator and returns its answer. note reports what is being
// evaluated, such as the name of a file, so that the error about an exceeded limit can name it.
type Function = func(input []byte, query func([]byte) ([]byte, error), note func(place string)) ([]byte, error)

// Handler answers a question of a process.
type Handler = func(ctx context.Context, question []byte) ([]byte, error)

// Call is one evaluation.
type Call struct {
	// Name is the name under which Function is registered in the process.
	Name     string
	Function Function
	// Tenant is the tenant to whom the input belongs.
	Tenant string
	// Input is the function's input, in pieces that are joined.
	Input [][]byte
	// NewHandler returns the handler of one process's questions. It is called again when the call is retried in another process, so answers
	// to a process that was killed do not count. Nil means that the call may not send questions.
	NewHandler func() Handler
	// CPU raises the limit of processor time to at least this. Questions limits how many questions the call may send. Zero means the default.
	CPU       time.Duration
	Questions int
}

// OverLimit is the error of an evaluation that exceeded a limit. The same input would exceed it again. Any other error has causes outside of
// the input.
type OverLimit interface {
	error
	OverLimit()
}

// Runner runs calls. The zero value runs them at once in this process and without limits, for tests.
type Runner struct {
	// Run runs the call in a process. The end of ctx ends it.
	Run func(ctx context.Context, c Call) ([]byte, error)
	// Turn calls work when the tenant may evaluate. It may cancel work's context so that other tenants can evaluate, and call work again
	// later. Then an error of the canceled work does not count.
	Turn func(ctx context.Context, tenant string, work func(context.Context) error) error
}

// InTurn calls work when the tenant may evaluate, see Turn.
func (r Runner) InTurn(ctx context.Context, tenant string, work func(context.Context) error) error {
	if r.Turn == nil {
		return work(ctx)
	}
	return r.Turn(ctx, tenant, work)
}

// Do runs a call now.
func (r Runner) Do(ctx context.Context, c Call) ([]byte, error) {
	if r.Run != nil {
		return r.Run(ctx, c)
	}
	var handle Handler
	if c.NewHandler != nil {
		handle = c.NewHandler()
	}
	return c.Function(bytes.Join(c.Input, nil), func(question []byte) ([]byte, error) { return handle(ctx, question) }, func(string) {})
}
