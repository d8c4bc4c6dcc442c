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
	// maxStack ends what calls itself without end before it has filled the memory.
	maxStack = 64 << 20
	// gcPercent is for calls that last milliseconds: most end before anything is collected.
	gcPercent = 400
	// collectAt leaves one part in so many of the memory to what is allocated while garbage is collected: without that a call fails
	// that holds little and lets go of much.
	collectAt = 4
	// keptBytes is the heap that a process keeps between two calls, beside what stays in use.
	keptBytes = 16 << 20
)

// Serve is the life of such a process: it confines itself, then answers calls until its input ends. Args are those after Command.
// Serve returns the exit code.
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
	// kept is the heap that stays whatever is returned, such as the schemas that kustomize reads once.
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
		s.note("") // It has begun.
		out := s.answer(f)
		out.body = out.body[:min(len(out.body), maxInput)] // The parent takes less, and says so.
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

// answer runs one call. A panic is an error of the call.
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
	body, err := function(f.body, s.ask, s.note)
	if err != nil {
		return frame{kind: failure, body: []byte(err.Error())}
	}
	return frame{kind: answer, body: body}
}

func (s *server) ask(text []byte) ([]byte, error) {
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

// note is sent without waiting. A parent that is gone is noticed by the next message that matters.
func (s *server) note(place string) {
	_ = frame{kind: note, head: place}.writeTo(s.out)
}

// heapBytes is what the heap has taken from the system and not returned.
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
