package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"golang.org/x/sys/unix"
)

// TestServeRefusesArgumentsThatAreNoSize: a person may start the command by hand, and gets the usage and not a confined process.
func TestServeRefusesArgumentsThatAreNoSize(t *testing.T) {
	usage := "usage: operator " + Command + " <bytes of memory>; the operator starts it by itself\n"
	for name, tc := range map[string]struct {
		args []string
		says string
	}{
		"none": {nil, usage}, "two": {[]string{"1", "2"}, usage}, "no number": {[]string{"much"}, "the bytes of memory are no number: much\n"},
		"zero": {[]string{"0"}, "the bytes of memory are no number: 0\n"}, "negative": {[]string{"-1"}, "the bytes of memory are no number: -1\n"},
	} {
		t.Run(name, func(t *testing.T) {
			file, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
			if err != nil {
				t.Fatal(err)
			}
			stderr := os.Stderr
			os.Stderr = file
			code := Serve(tc.args, nil)
			os.Stderr = stderr
			if said, err := os.ReadFile(file.Name()); code != 2 || err != nil || string(said) != tc.says {
				t.Errorf("the exit code is %d, and it says %q, %v; want 2 and %q", code, said, err, tc.says)
			}
		})
	}
}

// TestAProcessHasTheLimitsOfItsKind looks at a process from outside, as the kernel sees it.
func TestAProcessHasTheLimitsOfItsKind(t *testing.T) {
	p := New(Options{Processes: 1, Limits: Limits{Memory: 192 << 20}, Log: logr.Discard()})
	t.Cleanup(p.Close)
	if _, err := p.Call(t.Context(), Call{Function: "echo"}); err != nil {
		t.Fatal(err)
	}
	pid := processOf(p)
	for name, want := range map[string]struct {
		resource int
		value    uint64
	}{
		"core dumps": {unix.RLIMIT_CORE, 0}, "written files": {unix.RLIMIT_FSIZE, 0}, "open files": {unix.RLIMIT_NOFILE, 16},
		"locked memory": {unix.RLIMIT_MEMLOCK, 0},
	} {
		var got unix.Rlimit
		if err := unix.Prlimit(pid, want.resource, nil, &got); err != nil {
			t.Fatal(err)
		}
		if got.Cur != want.value || got.Max != want.value {
			t.Errorf("the limit of %s is %d, at most %d, want %d", name, got.Cur, got.Max, want.value)
		}
	}
	var data unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_DATA, nil, &data); err != nil {
		t.Fatal(err)
	}
	// A Go program has some writable memory before it allocates anything.
	if data.Max != data.Cur || data.Cur <= 192<<20 {
		t.Errorf("the limit of memory is %d, at most %d", data.Cur, data.Max)
	}
	if score, err := os.ReadFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid)); err != nil || strings.TrimSpace(string(score)) != "1000" {
		t.Errorf("the kernel does not kill it first when memory is short: %q, %v", score, err)
	}
	// The system call returns 20 less the nice value.
	if got, err := unix.Getpriority(unix.PRIO_PROCESS, pid); err != nil || got > 20-niceness {
		t.Errorf("it runs with a nice value of %d, want at least %d; %v", 20-got, niceness, err)
	}
	if group, err := unix.Getpgid(pid); err != nil || group != pid {
		t.Errorf("it is in the process group %d, %v: a signal to the operator's group ends it", group, err)
	}
	if folder, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid)); err != nil || folder != "/" {
		t.Errorf("it works in %s, %v", folder, err)
	}
}

// conversation has a server read these messages, and returns what it wrote and its error.
func conversation(t *testing.T, functions map[string]Function, sent ...frame) ([]frame, error) {
	t.Helper()
	var in, out bytes.Buffer
	for _, f := range sent {
		if err := f.writeTo(&in); err != nil {
			t.Fatal(err)
		}
	}
	s := &server{in: &in, out: &out, functions: functions}
	ended := s.run([]string{withLock, withFilter})
	var written []frame
	for out.Len() > 0 {
		f, err := readFrame(&out, maxInput)
		if err != nil {
			t.Fatal(err)
		}
		written = append(written, f)
	}
	return written, ended
}

func TestAWorkerAnswersEachCall(t *testing.T) {
	functions := map[string]Function{
		"echo": hostile["echo"], "query": hostile["query"], "panic": hostile["panic"],
		"notes": func(in []byte, _ func([]byte) ([]byte, error), note func(string)) ([]byte, error) {
			note("values.yaml")
			return in, nil
		},
	}
	one := frame{kind: call, head: "query", body: []byte("1")}
	for name, tc := range map[string]struct {
		sent []frame
		want string
		err  error
	}{
		"no call":                       {nil, "ready:landlock,seccomp:", nil},
		"two calls":                     {[]frame{{kind: call, head: "echo", body: []byte("a")}, {kind: call, head: "echo", body: []byte("b")}}, "ready:landlock,seccomp: note:: answer::a note:: answer::b", nil},
		"a place":                       {[]frame{{kind: call, head: "notes", body: []byte("a")}}, "ready:landlock,seccomp: note:: note:values.yaml: answer::a", nil},
		"a panic":                       {[]frame{{kind: call, head: "panic"}}, "ready:landlock,seccomp: note:: failure::panic panicked: no", nil},
		"a question":                    {[]frame{one, {kind: answer, body: []byte("me")}}, "ready:landlock,seccomp: note:: question::who answer::me", nil},
		"a question that is refused":    {[]frame{one, {kind: failure, body: []byte("not you")}}, "ready:landlock,seccomp: note:: question::who failure::not you", nil},
		"another message for a call":    {[]frame{{kind: answer}}, "ready:landlock,seccomp:", errProtocol},
		"another message for an answer": {[]frame{one, {kind: note}}, "ready:landlock,seccomp: note:: question::who failure::the message is none of this protocol: an answer is expected, not kind 3", nil},
		"no answer":                     {[]frame{one}, "ready:landlock,seccomp: note:: question::who failure::EOF", nil},
	} {
		t.Run(name, func(t *testing.T) {
			written, err := conversation(t, functions, tc.sent...)
			var got []string
			for _, f := range written {
				kinds := map[kind]string{ready: "ready", note: "note", question: "question", answer: "answer", failure: "failure"}
				got = append(got, fmt.Sprintf("%s:%s:%s", kinds[f.kind], f.head, f.body))
			}
			if text := strings.Join(got, " "); text != tc.want || !errors.Is(err, tc.err) {
				t.Errorf("it wrote %s, %v\nwant     %s, %v", text, err, tc.want, tc.err)
			}
		})
	}
}

// broken accepts no byte.
type broken struct{}

var errBroken = errors.New("the pipe is broken")

func (broken) Write([]byte) (int, error) { return 0, errBroken }

func TestAWorkerWithoutParentEnds(t *testing.T) {
	if err := (&server{in: &bytes.Buffer{}, out: broken{}}).run(nil); !errors.Is(err, errBroken) {
		t.Errorf("it could not say that it is ready: %v", err)
	}
	if _, err := (&server{in: &bytes.Buffer{}, out: broken{}}).query([]byte("who")); !errors.Is(err, errBroken) {
		t.Errorf("it could not ask: %v", err)
	}
	if err := (&server{in: strings.NewReader("\x01"), out: &bytes.Buffer{}}).run(nil); err == nil {
		t.Error("half a message ends it without an error")
	}
}
