package sandbox

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
)

const (
	// maxStack ends endless recursion before it fills the memory, in bytes.
	maxStack = 64 << 20
	// gcPercent is high because most calls take milliseconds and end before a garbage collection pays off.
	gcPercent = 400
	// collectAt: the garbage collector works harder once all but one collectAt-th of the memory is used. The rest is for what is allocated
	// during a collection. Otherwise a call that produces much garbage but keeps little would run out of memory.
	collectAt = 4
	// keptBytes is how much free heap a process keeps between two calls.
	keptBytes = 16 << 20
)

// Serve runs a worker process: it confines the process, then answers calls until its input ends. args are the arguments after Command. It
// returns the exit code.
func Serve(args []string, functions map[string]Function) int {
	if len(args) != 1 {
		fmt.Fprintln(os.Stderr, "usage: operator", Command, "<bytes of memory>; the operator starts it by itself")
		return 2
	}
	memory, err := strconv.ParseInt(args[0], 10, 64)
	if err != nil || memory <= 0 {
		fmt.Fprintln(os.Stderr, "the bytes of memory are no number:", args[0])
		return 2
	}
	runtime.GOMAXPROCS(1)
	debug.SetMaxStack(maxStack)
	debug.SetTraceback("none")
	debug.SetGCPercent(gcPercent)
	debug.SetMemoryLimit(memory / collectAt * (collectAt - 1))
	active, err := confine(memory)
	if err != nil {
		fmt.Fprintln(os.Stderr, "confining the process:", err)
		return 2
	}
	s := &server{in: bufio.NewReader(os.Stdin), out: os.Stdout, functions: functions}
	if err := s.run(active); err != nil {
		fmt.Fprintln(os.Stderr, "reading calls:", err)
		return 1
	}
	return 0
}

// server answers calls, one after the other.
type server struct {
	in        io.Reader
	out       io.Writer
	functions map[string]Function
	// kept is the heap that stays in use after a call, such as the schemas that kustomize reads once.
	kept uint64
}

func (s *server) run(active []string) error {
	if err := (frame{kind: ready, head: strings.Join(active, ",")}).writeTo(s.out); err != nil {
		return err
	}
	for {
		f, err := readFrame(s.in, maxInput)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if f.kind != call {
			return fmt.Errorf("%w: a call is expected, not kind %d", errProtocol, f.kind)
		}
		s.note("") // Report that the call has begun.
		out := s.answer(f)
		out.body = out.body[:min(len(out.body), maxInput)] // The parent's limit is lower, so it reports that the output is too long.
		if err := out.writeTo(s.out); err != nil {
			return err
		}
		if heapBytes() > s.kept+keptBytes {
			f, out = frame{}, frame{}
			debug.FreeOSMemory()
			s.kept = heapBytes()
		}
	}
}

// answer runs one call and returns its result or error. A panic becomes an error.
func (s *server) answer(f frame) (out frame) {
	function, ok := s.functions[f.head]
	if !ok {
		return frame{kind: failure, body: []byte("there is no function " + f.head)}
	}
	defer func() {
		if p := recover(); p != nil {
			out = frame{kind: failure, body: fmt.Appendf(nil, "%s panicked: %v", f.head, p)}
		}
	}()
	body, err := function(f.body, s.query, s.note)
	if err != nil {
		return frame{kind: failure, body: []byte(err.Error())}
	}
	return frame{kind: answer, body: body}
}

// query sends a question to the parent and returns its answer.
func (s *server) query(text []byte) ([]byte, error) {
	if err := (frame{kind: question, body: text}).writeTo(s.out); err != nil {
		return nil, err
	}
	f, err := readFrame(s.in, maxInput)
	switch {
	case err != nil:
		return nil, err
	case f.kind == answer:
		return f.body, nil
	case f.kind == failure:
		return nil, errors.New(string(f.body))
	}
	return nil, fmt.Errorf("%w: an answer is expected, not kind %d", errProtocol, f.kind)
}

// note reports the place. It ignores errors: if the parent is gone, the next message fails too.
func (s *server) note(place string) {
	_ = frame{kind: note, head: place}.writeTo(s.out)
}

// heapBytes returns how much memory the heap holds, in use or free.
func heapBytes() uint64 {
	samples := []metrics.Sample{
		{Name: "/memory/classes/heap/free:bytes"}, {Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/unused:bytes"},
	}
	metrics.Read(samples)
	var sum uint64
	for _, s := range samples {
		sum += s.Value.Uint64()
	}
	return sum
}
