package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestUnsetLimitsAreTheDefaults(t *testing.T) {
	defaults := Limits{Memory: 256 << 20, CPU: 10 * time.Second, Wall: 30 * time.Second, Output: 16 << 20, Questions: 1000}
	own := Limits{Memory: 1, CPU: 2, Wall: 3, Output: 4, Questions: 5}
	for name, tc := range map[string]struct{ given, want Limits }{
		"none":     {Limits{}, defaults},
		"negative": {Limits{Memory: -1, CPU: -1, Wall: -1, Output: -1, Questions: -1}, defaults},
		"all":      {own, own},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, New(Options{Limits: tc.given}).opts.Limits); diff != "" {
				t.Error(diff)
			}
		})
	}
	for given, want := range map[int]int{-1: runtime.GOMAXPROCS(0), 0: runtime.GOMAXPROCS(0), 1: 1, 7: 7} {
		if p := New(Options{Processes: given}); p.opts.Processes != want || cap(p.places) != want {
			t.Errorf("%d processes become %d, with %d calls at once, want %d", given, p.opts.Processes, cap(p.places), want)
		}
	}
}

func TestALimitOfACallReplacesThePools(t *testing.T) {
	pool, own := Limits{Memory: 1, CPU: 2, Wall: 3, Output: 4, Questions: 5}, Limits{Memory: 10, CPU: 20, Wall: 30, Output: 40, Questions: 50}
	for name, tc := range map[string]struct{ call, want Limits }{
		"none": {Limits{}, pool},
		"all":  {own, Limits{Memory: 1, CPU: 20, Wall: 30, Output: 40, Questions: 50}},
	} {
		if diff := cmp.Diff(tc.want, tc.call.or(pool)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestTheCauseOfAnEndIsReportedNotItsConsequence: of several signs, the one that explains the others is reported.
func TestTheCauseOfAnEndIsReportedNotItsConsequence(t *testing.T) {
	pipe, newer := errors.New("broken pipe"), errors.New("a newer commit")
	for name, tc := range map[string]struct {
		err, cause error
		stderr     string
		want       string
	}{
		"a limit that the parent met":       {&LimitError{Limit: "questions", Value: "3"}, nil, "", "values.yaml takes more than the limit of questions, 3"},
		"a limit for which it was killed":   {pipe, &LimitError{Limit: "time", Value: "30s"}, "fatal error: out of memory", "values.yaml takes more than the limit of time, 30s"},
		"output":                            {fmt.Errorf("reading: %w", errTooLong), newer, "", "values.yaml takes more than the limit of output, 5 bytes"},
		"a caller that gave up":             {pipe, newer, "fatal error: out of memory", "a newer commit"},
		"stack":                             {pipe, nil, "runtime: goroutine stack exceeds 67108864-byte limit\nfatal error: stack overflow", "values.yaml takes more than the limit of stack, 64 MiB"},
		"stack, before memory":              {pipe, nil, "out of memory: stack exceeds", "values.yaml takes more than the limit of stack, 64 MiB"},
		"memory":                            {pipe, nil, "fatal error: runtime: out of memory", "values.yaml takes more than the limit of memory, 192 MiB"},
		"memory for a thread":               {pipe, nil, "runtime: failed to create new OS thread", "values.yaml takes more than the limit of memory, 192 MiB"},
		"memory that the system refuses":    {pipe, nil, "cannot allocate memory", "values.yaml takes more than the limit of memory, 192 MiB"},
		"memory for the tables of the heap": {pipe, nil, "runtime: cannot map pages in arena", "values.yaml takes more than the limit of memory, 192 MiB"},
		"a message of another protocol":     {errProtocol, nil, "", "the message is none of this protocol"},
		"none of them":                      {pipe, nil, "signal arrived", "the process that evaluates it ended before it answered: <nil>"},
	} {
		t.Run(name, func(t *testing.T) {
			p := &process{cmd: &exec.Cmd{}, cause: tc.cause}
			_, _ = p.stderr.Write([]byte(tc.stderr)) // It never fails.
			r := &running{process: p, limits: Limits{Memory: 192 << 20, Output: 5}, place: "values.yaml", begun: true}
			err := r.why(tc.err)
			if err.Error() != tc.want {
				t.Errorf("got %v, want %s", err, tc.want)
			}
			if crash := new(CrashError); errors.As(err, &crash) && !crash.begun {
				t.Error("the call is said not to have begun")
			}
		})
	}
}

// TestOnlyTheBeginningOfTheErrorsIsKept, because a process may write without end.
func TestOnlyTheBeginningOfTheErrorsIsKept(t *testing.T) {
	var h head
	for range 3 {
		if n, err := h.Write(bytes.Repeat([]byte("a"), maxStderr-1)); n != maxStderr-1 || err != nil {
			t.Fatalf("it took %d bytes, %v", n, err)
		}
	}
	if n := len(h.String()); n != maxStderr {
		t.Errorf("%d bytes are kept, want %d", n, maxStderr)
	}
}

// TestAProgramThatIsKilledBeforeItBeginsIsStartedFourTimes.
func TestAProgramThatIsKilledBeforeItBeginsIsStartedFourTimes(t *testing.T) {
	log := filepath.Join(t.TempDir(), "starts")
	p := New(Options{Processes: 1, Log: logr.Discard(), Program: []string{"/bin/sh", "-c", "echo started >> " + log + "; kill -9 $$"}})
	t.Cleanup(p.Close)
	_, err := p.Call(t.Context(), Call{Function: "echo"})
	var crash *CrashError
	if !errors.As(err, &crash) || crash.State != "signal: killed" {
		t.Errorf("got %v", err)
	}
	text, err := os.ReadFile(log)
	if starts := strings.Count(string(text), "started"); err != nil || starts != maxTries {
		t.Errorf("it was started %d times, want %d; %v", starts, maxTries, err)
	}
	if n := len(p.all); n != 0 {
		t.Errorf("%d processes are left", n)
	}
}

// TestAProgramOfAnotherKindIsNoProcess, and is not taken for one that was killed from outside.
func TestAProgramOfAnotherKindIsNoProcess(t *testing.T) {
	for name, tc := range map[string]struct{ script, want string }{
		"it ends":                 {"echo no such command >&2; exit 1", `EOF; it said "no such command\n"`},
		"it sends something else": {`printf '\001\002\000\000\000\000\000\000'; sleep 60`, "the message is none of this protocol: kind 2 from a process that starts"},
	} {
		t.Run(name, func(t *testing.T) {
			p := New(Options{Processes: 1, Log: logr.Discard(), Program: []string{"/bin/sh", "-c", tc.script}})
			t.Cleanup(p.Close)
			_, err := p.Call(t.Context(), Call{Function: "echo"})
			if err == nil || !strings.Contains(err.Error(), "starting a process that evaluates: "+tc.want) || errors.As(err, new(*CrashError)) {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}

// TestACallWaitsForAPlace: a caller that gives up while all processes work returns at once.
func TestACallWaitsForAPlace(t *testing.T) {
	p := New(Options{Processes: 1, Log: logr.Discard()})
	t.Cleanup(p.Close)
	p.places <- struct{}{}
	gone := errors.New("a newer commit")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	if _, err := p.Call(ctx, Call{Function: "echo"}); !errors.Is(err, gone) {
		t.Errorf("got %v, want %v", err, gone)
	}
	<-p.places
	if out, err := p.Call(t.Context(), Call{Function: "echo", Input: [][]byte{[]byte("a"), []byte("b")}}); string(out) != "ab" || err != nil {
		t.Errorf("got %q, %v", out, err)
	}
	if len(p.places) != 0 {
		t.Error("the place is not given back")
	}
}

// TestACallerThatGivesUpIsNoFailureOfThePool: the operator stays as ready as before.
func TestACallerThatGivesUpIsNoFailureOfThePool(t *testing.T) {
	p := New(Options{Processes: 1, Program: []string{"/bin/sh", "-c", "exec sleep 60"}, Log: logr.Discard()})
	t.Cleanup(p.Close)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	if _, err := p.Call(ctx, Call{Function: "echo"}); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	if p.failed != nil {
		t.Errorf("the pool failed with %v", p.failed)
	}
	if err := p.Ready(httptest.NewRequest("GET", "/readyz", nil)); err == nil || err.Error() != "no process that evaluates was started yet" {
		t.Errorf("ready: %v", err)
	}
}

// TestAClosedPoolKeepsNoProcess, not even one that was starting when the pool was closed.
func TestAClosedPoolKeepsNoProcess(t *testing.T) {
	p := New(Options{Processes: 1, Log: logr.Discard()})
	b, err := p.take(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	p.Close()
	if _, err := p.launch(t.Context(), ""); !errors.Is(err, ErrClosed) || len(p.all) != 0 {
		t.Errorf("a process that starts late: %v, %d processes", err, len(p.all))
	}
	p.put(b)
	if len(p.idle) != 0 || len(p.all) != 0 || !b.hasEnded() {
		t.Errorf("%d idle processes of %d; it has ended: %v", len(p.idle), len(p.all), b.hasEnded())
	}
	if _, err := p.take(t.Context(), ""); !errors.Is(err, ErrClosed) {
		t.Errorf("got %v, want %v", err, ErrClosed)
	}
}

// TestStartRunsUntilTheOperatorStops, and returns the error if no process starts.
func TestStartRunsUntilTheOperatorStops(t *testing.T) {
	p := New(Options{Processes: 1, Log: logr.Discard()})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- p.Start(ctx) }()
	for begun := time.Now(); p.Ready(httptest.NewRequest("GET", "/readyz", nil)) != nil; time.Sleep(time.Millisecond) {
		if time.Since(begun) > 30*time.Second {
			t.Fatal("no process started")
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if _, err := p.Call(t.Context(), Call{Function: "echo"}); !errors.Is(err, ErrClosed) {
		t.Errorf("got %v, want %v", err, ErrClosed)
	}
	if err := New(Options{Program: []string{"/nowhere"}}).Start(t.Context()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

// TestAProcessThatEndsIsReplacedBeforeTheNextCall, because a start takes a while.
func TestAProcessThatEndsIsReplacedBeforeTheNextCall(t *testing.T) {
	p := New(Options{Processes: 1, Limits: small, Log: logr.Discard()})
	t.Cleanup(p.Close)
	if _, err := p.Call(t.Context(), Call{Function: "output"}); !errors.As(err, new(*LimitError)) {
		t.Fatalf("got %v", err)
	}
	idle := func() int {
		p.mu.Lock()
		defer p.mu.Unlock()
		return len(p.idle)
	}
	for begun := time.Now(); idle() == 0; time.Sleep(time.Millisecond) {
		if time.Since(begun) > 30*time.Second {
			t.Fatal("no process waits for the next call")
		}
	}
}

func TestCallsAndProcessesAreCounted(t *testing.T) {
	p := New(Options{Processes: 1, Limits: small, Log: logr.Discard()})
	t.Cleanup(p.Close)
	for _, function := range []string{"echo", "echo", "panic"} {
		_, _ = p.Call(t.Context(), Call{Function: function}) // The metrics have the outcome.
	}
	if got := testutil.ToFloat64(p.metrics.processes); got != 1 {
		t.Errorf("%v processes are counted, want 1", got)
	}
	for _, want := range []struct {
		function, outcome string
		calls             float64
	}{{"echo", "answered", 2}, {"panic", "error", 1}, {"echo", "error", 0}} {
		if got := testutil.ToFloat64(p.metrics.calls.WithLabelValues(want.function, want.outcome)); got != want.calls {
			t.Errorf("%v calls of %s are counted as %s, want %v", got, want.function, want.outcome, want.calls)
		}
	}
	if got := testutil.CollectAndCount(p.metrics.duration); got != 2 {
		t.Errorf("the durations of %d functions are measured, want 2", got)
	}
	if got := len(p.Collectors()); got != 3 {
		t.Errorf("%d metrics are registered, want 3", got)
	}
	p.mu.Lock()
	b := p.idle[0]
	p.idle = nil
	p.mu.Unlock()
	if p.drop(b); testutil.ToFloat64(p.metrics.processes) != 0 {
		t.Error("a process that ended is counted")
	}
	for want, err := range map[string]error{
		"answered": nil, "limit: memory": &LimitError{Limit: "memory"}, "error": &FunctionError{}, "crash": &CrashError{}, "ended": context.Canceled,
	} {
		if got := outcome(err); got != want {
			t.Errorf("%v counts as %s, want %s", err, got, want)
		}
	}
}
