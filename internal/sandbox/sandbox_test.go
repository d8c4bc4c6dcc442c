package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
)

// parent is the argument that makes the test binary the parent of a process that it leaves behind.
const parent = "parent"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case Command:
			os.Exit(Serve(os.Args[2:], hostile))
		case parent:
			leaveBehind()
		case contained:
			workContained(os.Args[2])
		}
	}
	os.Exit(m.Run())
}

// leaveBehind starts a process, prints its ID and waits to be killed.
func leaveBehind() {
	b, err := New(Options{}).take(context.Background(), "")
	if err == nil {
		fmt.Println(b.cmd.Process.Pid)
		select {}
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

var sink any

// hostile are functions, most of which exceed a limit or do what the sandbox forbids.
var hostile = map[string]Function{
	"echo": func(in []byte, _ func([]byte) ([]byte, error), _ func(string)) ([]byte, error) { return in, nil },
	"memory": func(_ []byte, _ func([]byte) ([]byte, error), note func(string)) ([]byte, error) {
		note("values.yaml")
		sink = strings.Repeat("a", 3_000_000_000)
		return nil, nil
	},
	"little by little": func([]byte, func([]byte) ([]byte, error), func(string)) ([]byte, error) {
		var all [][]byte
		for {
			all = append(all, make([]byte, 64<<10))
			sink = all
		}
	},
	"stack": func([]byte, func([]byte) ([]byte, error), func(string)) ([]byte, error) {
		return []byte{byte(deep(1))}, nil
	},
	"loop": func([]byte, func([]byte) ([]byte, error), func(string)) ([]byte, error) {
		for i := 0; ; i++ {
			sink = nil
		}
	},
	"sleep": func([]byte, func([]byte) ([]byte, error), func(string)) ([]byte, error) {
		time.Sleep(time.Hour)
		return nil, nil
	},
	"output": func([]byte, func([]byte) ([]byte, error), func(string)) ([]byte, error) {
		return make([]byte, 2<<20), nil
	},
	"panic": func([]byte, func([]byte) ([]byte, error), func(string)) ([]byte, error) { panic("no") },
	"work": func([]byte, func([]byte) ([]byte, error), func(string)) ([]byte, error) {
		for begun := time.Now(); time.Since(begun) < 200*time.Millisecond; {
			sink = nil
		}
		return nil, nil
	},
	"query": func(in []byte, query func([]byte) ([]byte, error), _ func(string)) ([]byte, error) {
		n, err := strconv.Atoi(string(in))
		var out []byte
		for range n {
			if out, err = query([]byte("who")); err != nil {
				return nil, err
			}
		}
		return out, err
	},
	"reach": reach,
}

// TestProcessesOfTwoProgramsShareThePlaces: processes are reused, and there are never more than Options.Processes.
func TestProcessesOfTwoProgramsShareThePlaces(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for processes, starts := range map[int]int{1: 6, 2: 2} {
		p := New(Options{Processes: processes, Log: logr.Discard()})
		started := map[int]bool{}
		for range 3 {
			for _, program := range []string{"", self} {
				if _, err := p.Call(t.Context(), Call{Function: "echo", Program: program}); err != nil {
					t.Fatal(err)
				}
				if len(p.all) > processes || len(p.idle) != len(p.all) {
					t.Errorf("%d processes, %d of them idle, where %d may be", len(p.all), len(p.idle), processes)
				}
				for b := range p.all {
					started[b.cmd.Process.Pid] = true
				}
			}
		}
		if len(started) != starts {
			t.Errorf("with %d processes %d were started, want %d", processes, len(started), starts)
		}
		p.Close()
	}
	p := New(Options{Processes: 1, Log: logr.Discard()})
	defer p.Close()
	if _, err := p.Call(t.Context(), Call{Function: "echo", Program: self + " that is not there"}); err == nil || !strings.Contains(err.Error(), "starting a process that evaluates") {
		t.Errorf("a program that is not there: %v", err)
	}
}

// deep recurses until the stack is used up.
func deep(n int) int {
	if n < 0 {
		return 0
	}
	var pad [64]int
	pad[n%64] = n
	if n < 0 {
		return n
	}
	return deep(n+1) + pad[(n+1)%64]
}

// reach tries what the sandbox forbids, and returns what succeeded.
func reach(in []byte, _ func([]byte) ([]byte, error), _ func(string)) ([]byte, error) {
	var reached []string
	try := func(what string, err error) {
		if err == nil {
			reached = append(reached, what)
		}
	}
	_, err := os.ReadFile("/etc/hostname")
	try("a file", err)
	_, err = os.ReadFile("/proc/self/environ")
	try("its environment by file", err)
	_, err = os.ReadDir("/")
	try("a folder", err)
	try("writing", os.WriteFile("/tmp/kubeop-sandbox-test", []byte("a"), 0o600))
	_, err = net.DialTimeout("tcp", string(in), time.Second)
	try("a connection", err)
	_, err = syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	try("a socket", err)
	try("a program", exec.Command("/bin/true").Run())
	try("another process", syscall.Kill(syscall.Getppid(), 0))
	if len(os.Environ()) > 0 {
		reached = append(reached, "environment: "+strings.Join(os.Environ(), " "))
	}
	return []byte(strings.Join(reached, ", ")), nil
}

func testPool(t *testing.T, limits Limits) *Pool {
	t.Helper()
	p := New(Options{Processes: 2, Limits: limits, Log: logr.Discard()})
	t.Cleanup(p.Close)
	return p
}

var small = Limits{Memory: 192 << 20, CPU: 300 * time.Millisecond, Output: 1 << 20, Questions: 3}

func TestAProcessThatExceedsALimitIsEnded(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector's runtime takes more memory than a confined process may have")
	}
	p := testPool(t, small)
	tests := map[string]struct{ function, limit, place string }{
		"one large allocation":  {"memory", "memory", "values.yaml"},
		"many small ones":       {"little by little", "memory", ""},
		"endless recursion":     {"stack", "stack", ""},
		"an endless loop":       {"loop", "processor time", ""},
		"an answer of two MiB":  {"output", "output", ""},
		"more than 3 questions": {"query", "questions", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			call := Call{Function: test.function, Input: [][]byte{[]byte("4")}, NewHandler: always(answers)}
			if test.limit != "processor time" {
				call.Limits.CPU = 20 * time.Second // on a busy machine, 300 ms are not enough to fill the memory or the stack
			}
			_, err := p.Call(t.Context(), call)
			var limit *LimitError
			if !errors.As(err, &limit) {
				t.Fatalf("got %v, want a LimitError", err)
			}
			if limit.Limit != test.limit || limit.Place != test.place {
				t.Errorf("got %s at %q, want %s at %q", limit.Limit, limit.Place, test.limit, test.place)
			}
			if out, err := p.Call(t.Context(), Call{Function: "echo", Input: [][]byte{[]byte("b")}}); string(out) != "b" {
				t.Errorf("the next call answers %q, %v", out, err)
			}
		})
	}
}

// TestACallHasLimitsOfItsOwn: the limits of a call replace the pool's, except for memory.
func TestACallHasLimitsOfItsOwn(t *testing.T) {
	p := testPool(t, small)
	call := Call{Function: "query", Input: [][]byte{[]byte("4")}, NewHandler: always(answers), Limits: Limits{Questions: 4, Memory: 1}}
	if _, err := p.Call(t.Context(), call); err != nil {
		t.Errorf("with one question more: %v", err)
	}
	_, err := p.Call(t.Context(), Call{Function: "loop", Limits: Limits{CPU: 100 * time.Millisecond}})
	if limit := (*LimitError)(nil); !errors.As(err, &limit) || limit.Value != "100ms" {
		t.Errorf("with less processor time: %v", err)
	}
}

func answers(context.Context, []byte) ([]byte, error) { return []byte("me"), nil }

// always uses the same handler for all processes.
func always(h Handler) func() Handler { return func() Handler { return h } }

func TestErrorsOfAFunctionReachTheCaller(t *testing.T) {
	p := testPool(t, small)
	refuses := func(context.Context, []byte) ([]byte, error) { return nil, errors.New("not you") }
	tests := map[string]struct {
		call Call
		want string
	}{
		"panic":             {Call{Function: "panic"}, "panic panicked: no"},
		"unknown":           {Call{Function: "nothing"}, "there is no function nothing"},
		"no handler":        {Call{Function: "query", Input: [][]byte{[]byte("1")}}, "this call may not send questions"},
		"the answer is no":  {Call{Function: "query", Input: [][]byte{[]byte("1")}, NewHandler: always(refuses)}, "not you"},
		"its own, no limit": {Call{Function: "query", Input: [][]byte{[]byte("x")}}, `strconv.Atoi: parsing "x": invalid syntax`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := p.Call(t.Context(), test.call)
			var failed *FunctionError
			if !errors.As(err, &failed) || failed.Text != test.want {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
	if n := len(p.all); n != 1 {
		t.Errorf("%d processes, want the one that made all these errors", n)
	}
}

func TestAFunctionThatRunsTooLongIsEnded(t *testing.T) {
	p := testPool(t, Limits{Wall: 300 * time.Millisecond})
	_, err := p.Call(t.Context(), Call{Function: "sleep"})
	if limit := new(LimitError); !errors.As(err, &limit) || limit.Limit != "time" {
		t.Errorf("got %v, want the limit of time", err)
	}
}

// TestTimeOfAnswersDoesNotCountForTheLimit: a template does not fail because the API server is slow.
func TestTimeOfAnswersDoesNotCountForTheLimit(t *testing.T) {
	p := testPool(t, Limits{Wall: 300 * time.Millisecond})
	slow := func(context.Context, []byte) ([]byte, error) { time.Sleep(time.Second); return []byte("me"), nil }
	if out, err := p.Call(t.Context(), Call{Function: "query", Input: [][]byte{[]byte("1")}, NewHandler: always(slow)}); string(out) != "me" {
		t.Errorf("got %q, %v", out, err)
	}
}

// TestUsageIsTheProcessorTimeOfOneCall, and not that of the earlier calls of the same process.
func TestUsageIsTheProcessorTimeOfOneCall(t *testing.T) {
	p := New(Options{Processes: 1, Log: logr.Discard()})
	t.Cleanup(p.Close)
	var none, work, idle Usage
	for _, call := range []Call{{Function: "work", Usage: &work}, {Function: "work"}, {Function: "echo", Usage: &idle}} {
		if _, err := p.Call(t.Context(), call); err != nil {
			t.Fatal(err)
		}
		if call.Usage == &work && work.CPU() < 20*time.Millisecond {
			t.Errorf("work took %s", work.CPU())
		}
	}
	if none.CPU() != 0 || idle.CPU() > 20*time.Millisecond {
		t.Errorf("no call took %s, one without work %s", none.CPU(), idle.CPU())
	}
}

func TestNothingIsInReach(t *testing.T) {
	t.Setenv("SECRET", "of the operator")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	p := testPool(t, Limits{})
	out, err := p.Call(t.Context(), Call{Function: "reach", Input: [][]byte{[]byte(listener.Addr().String())}})
	if err != nil {
		t.Fatal(err)
	}
	if len(out) > 0 {
		t.Errorf("the process reached %s", out)
	}
	for b := range p.all {
		t.Logf("confined by %v", b.active)
	}
}

// TestTheEndOfTheContext: a newer commit or the operator's end stops a call at once, and the call returns that as its error.
func TestTheEndOfTheContext(t *testing.T) {
	p := testPool(t, Limits{})
	newer := errors.New("a newer commit")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(100*time.Millisecond, func() { cancel(newer) })
	if _, err := p.Call(ctx, Call{Function: "loop"}); !errors.Is(err, newer) {
		t.Errorf("got %v, want %v", err, newer)
	}
	time.AfterFunc(100*time.Millisecond, p.Close)
	if _, err := p.Call(t.Context(), Call{Function: "loop"}); !errors.Is(err, ErrClosed) {
		t.Errorf("got %v, want %v", err, ErrClosed)
	}
	if _, err := p.Call(t.Context(), Call{Function: "echo"}); !errors.Is(err, ErrClosed) {
		t.Errorf("got %v, want %v", err, ErrClosed)
	}
}

// TestACallIsTriedTwiceWhileProcessesAreKilled kills processes at random times during many calls: each call returns its result or, after two tries, how its process ended.
func TestACallIsTriedTwiceWhileProcessesAreKilled(t *testing.T) {
	p := testPool(t, Limits{})
	ctx, stop := context.WithCancel(t.Context())
	var killer sync.WaitGroup
	killer.Go(func() {
		for ctx.Err() == nil {
			p.mu.Lock()
			for b := range p.all {
				_ = b.cmd.Process.Kill()
			}
			p.mu.Unlock()
			time.Sleep(time.Duration(rand.IntN(60)) * time.Millisecond)
		}
	})
	crashed := 0
	for i := range 100 {
		out, err := p.Call(t.Context(), Call{Function: "query", Input: [][]byte{[]byte("20")}, NewHandler: always(answers)})
		var crash *CrashError
		switch {
		case errors.As(err, &crash) && crash.State == "signal: killed":
			crashed++
		case string(out) != "me":
			t.Fatalf("call %d: %q, %v", i, out, err)
		}
	}
	stop()
	killer.Wait()
	if out, err := p.Call(t.Context(), Call{Function: "echo", Input: [][]byte{[]byte("b")}}); string(out) != "b" {
		t.Errorf("after the kills: %q, %v", out, err)
	}
	t.Logf("%d of 100 calls lost two processes", crashed)
	p.Close()
	if len(p.all) > 0 {
		t.Errorf("%d processes are left", len(p.all))
	}
}

// TestQuestionsOfAKilledProcessDoNotCount: the process that replaces it may send as many questions as the first, and gets a new handler.
func TestQuestionsOfAKilledProcessDoNotCount(t *testing.T) {
	p := testPool(t, Limits{Questions: 20})
	begun, answered := 0, 0
	out, err := p.Call(t.Context(), Call{Function: "query", Input: [][]byte{[]byte("20")}, NewHandler: func() Handler {
		begun++
		answered = 0
		return func(context.Context, []byte) ([]byte, error) {
			if answered++; begun == 1 && answered == 15 {
				return nil, syscall.Kill(processOf(p), syscall.SIGKILL)
			}
			return []byte("me"), nil
		}
	}})
	if string(out) != "me" || err != nil || begun != 2 || answered != 20 {
		t.Errorf("got %q, %v after %d processes, of which the last sent %d questions", out, err, begun, answered)
	}
}

// TestACallThatKillsItsProcessIsTriedTwice: a third process would be killed, too.
func TestACallThatKillsItsProcessIsTriedTwice(t *testing.T) {
	p := testPool(t, Limits{})
	tried := 0
	_, err := p.Call(t.Context(), Call{Function: "query", Input: [][]byte{[]byte("20")}, NewHandler: func() Handler {
		tried++
		return func(context.Context, []byte) ([]byte, error) { return nil, syscall.Kill(processOf(p), syscall.SIGKILL) }
	}})
	if crash := new(CrashError); !errors.As(err, &crash) || tried != 2 {
		t.Errorf("got %v after %d processes", err, tried)
	}
}

// TestAStartThatFailsSaysWhy: the cause of a kill, and what the process wrote.
func TestAStartThatFailsSaysWhy(t *testing.T) {
	p := &process{cmd: exec.Command("sleep", "60")}
	if _, err := p.stderr.Write([]byte("no memory")); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	late := errors.New("it was not ready within 10s")
	p.kill(late)
	_ = p.cmd.Wait() // It was killed.
	if err := p.whyNotReady(io.EOF); !errors.Is(err, late) || !errors.Is(err, io.EOF) || !strings.Contains(err.Error(), `it said "no memory"`) {
		t.Errorf("got %v", err)
	}
	p.cause = nil
	if err := p.whyNotReady(io.EOF); !errors.As(err, new(*CrashError)) {
		t.Errorf("a process that others killed: %v", err)
	}
}

func TestProcessesEndWhenTheirParentIsKilled(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, parent)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Fscan(out, &pid); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	for range 100 {
		if gone(pid) {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	_ = syscall.Kill(pid, syscall.SIGKILL)
	t.Errorf("process %d outlives its parent", pid)
}

// gone reports whether a process has ended. It may still be a zombie.
func gone(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(text), ") Z ")
}

func BenchmarkCall(b *testing.B) {
	p := New(Options{Processes: 1})
	defer p.Close()
	input := make([]byte, 100<<10)
	for b.Loop() {
		if _, err := p.Call(b.Context(), Call{Function: "echo", Input: [][]byte{input}}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkStart(b *testing.B) {
	p := New(Options{Processes: 1})
	defer p.Close()
	for b.Loop() {
		process, err := p.launch(context.Background(), "")
		if err != nil {
			b.Fatal(err)
		}
		process.end()
	}
}

// TestACallThatIsGivenUpWaitsForNoStart: a call whose context ends returns at once, even if its process is still starting.
func TestACallThatIsGivenUpWaitsForNoStart(t *testing.T) {
	pool := New(Options{Processes: 1, Program: []string{"/bin/sh", "-c", "exec sleep 60"}, Log: logr.Discard()})
	t.Cleanup(pool.Close)
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("others have the turn")
	time.AfterFunc(100*time.Millisecond, func() { cancel(gone) })
	began := time.Now()
	if _, err := pool.Call(ctx, Call{Function: "any"}); !errors.Is(err, gone) {
		t.Errorf("got %v", err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %s", took)
	}
}
