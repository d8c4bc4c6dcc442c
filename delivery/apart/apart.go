// Package apart has what tenants wrote evaluated in processes of their own, in turns of the tenants. How a process is started and confined is
// the caller's, see internal/sandbox.
package apart

import (
	"bytes"
	"context"
	"time"
)

// Function is what a process does with its input. Ask puts a question to the operator; note says what is being evaluated, such as the
// name of a file, so that a limit can be told with the place.
type Function = func(input []byte, ask func([]byte) ([]byte, error), note func(place string)) ([]byte, error)

// Ask answers a question of a process.
type Ask = func(ctx context.Context, question []byte) ([]byte, error)

// Call is one evaluation.
type Call struct {
	// Name is that by which the process knows the function, and Function is that.
	Name     string
	Function Function
	// Tenant is who wrote what is evaluated.
	Tenant string
	// Input is in pieces, one after the other.
	Input [][]byte
	// Asks makes who answers the questions, once for each process that is given the input: what was answered to one that was killed does
	// not count. Nil: there may be none.
	Asks func() Ask
	// CPU is the processor time that it may take at least, and Questions how many it may ask. Zero: what is usual.
	CPU       time.Duration
	Questions int
}

// OverLimit is an error of an evaluation that takes more than it may. It ends so each time; with any other error the world is at fault.
type OverLimit interface {
	error
	OverLimit()
}

// Runner has calls done. The zero value does them at once in this process, without limits, which is for tests.
type Runner struct {
	// Run has a process do the call. The end of ctx ends it.
	Run func(ctx context.Context, c Call) ([]byte, error)
	// Turn calls work when the tenant may evaluate. It may end work's context for others, and call it again later: what it returned
	// then counts only if it is no error.
	Turn func(ctx context.Context, tenant string, work func(context.Context) error) error
}

// InTurn calls work when it is the tenant's turn.
func (r Runner) InTurn(ctx context.Context, tenant string, work func(context.Context) error) error {
	if r.Turn == nil {
		return work(ctx)
	}
	return r.Turn(ctx, tenant, work)
}

// Do has a call done now.
func (r Runner) Do(ctx context.Context, c Call) ([]byte, error) {
	if r.Run != nil {
		return r.Run(ctx, c)
	}
	var ask Ask
	if c.Asks != nil {
		ask = c.Asks()
	}
	return c.Function(bytes.Join(c.Input, nil), func(question []byte) ([]byte, error) { return ask(ctx, question) }, func(string) {})
}
