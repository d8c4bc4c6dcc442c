package apart

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var errRefused = errors.New("refused")

// TestTheZeroRunnerRunsACallAtOnce with its joined input, and a handler of its own for the questions of each run.
func TestTheZeroRunnerRunsACallAtOnce(t *testing.T) {
	handlers := 0
	call := Call{
		Input: [][]byte{[]byte("a"), []byte("b")},
		Function: func(input []byte, query func([]byte) ([]byte, error), note func(string)) ([]byte, error) {
			note("a file")
			answer, err := query(input)
			return append(answer, '!'), err
		},
		NewHandler: func() Handler {
			handlers++
			return func(ctx context.Context, question []byte) ([]byte, error) {
				return append(question, '?'), ctx.Err()
			}
		},
	}
	var r Runner
	got, err := r.Do(t.Context(), call)
	if diff := cmp.Diff("ab?!", string(got)); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Do(ended, call); !errors.Is(err, context.Canceled) || handlers != 2 {
		t.Errorf("questions are answered in another context, or by another call's handler: %v, %d handlers", err, handlers)
	}
	call.NewHandler, call.Function = nil, func(input []byte, _ func([]byte) ([]byte, error), _ func(string)) ([]byte, error) {
		return input, errRefused
	}
	if got, err := r.Do(t.Context(), call); string(got) != "ab" || !errors.Is(err, errRefused) {
		t.Errorf("a call without questions: got %q, %v", got, err)
	}
}

func TestARunnerPassesCallsToItsProcesses(t *testing.T) {
	r := Runner{Run: func(_ context.Context, c Call) ([]byte, error) { return []byte(c.Name + " of " + c.Tenant), errRefused }}
	if got, err := r.Do(t.Context(), Call{Name: "render", Tenant: "acme"}); string(got) != "render of acme" || !errors.Is(err, errRefused) {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestWorkIsDoneInTurn(t *testing.T) {
	worked := 0
	work := func(context.Context) error { worked++; return errRefused }
	if err := (Runner{}).InTurn(t.Context(), "acme", work); !errors.Is(err, errRefused) || worked != 1 {
		t.Errorf("without turns: %v, worked %d times", err, worked)
	}
	r := Runner{Turn: func(ctx context.Context, tenant string, work func(context.Context) error) error {
		if tenant != "acme" {
			t.Errorf("it is the turn of %s", tenant)
		}
		_ = work(ctx) // An interrupted turn: its error does not count.
		return errors.Join(work(ctx), context.Canceled)
	}}
	if err := r.InTurn(t.Context(), "acme", work); !errors.Is(err, errRefused) || !errors.Is(err, context.Canceled) || worked != 3 {
		t.Errorf("in turns: %v, worked %d times", err, worked)
	}
}
