package sandbox

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// startTime is how long a process may take until it is ready. It is long because the machine may be busy.
const startTime = 30 * time.Second

// niceness gives the operator priority over its processes.
const niceness = 5

// spawnError means that the system did not start the program. It may have refused the namespaces.
type spawnError struct{ error }

func (e *spawnError) Unwrap() error { return e.error }

// process is a worker process, on the parent's side.
type process struct {
	cmd *exec.Cmd
	// program is the Program of its calls.
	program string
	in      *os.File
	out     *bufio.Reader
	pipe    *os.File
	stderr  head
	// active lists what confines the process.
	active []string
	// ended is closed when the process has ended and was waited for.
	ended chan struct{}

	mu    sync.Mutex
	cause error
}

// start starts a process and waits until it has confined itself. If ctx ends first, it kills the process. own gives the process namespaces of
// its own.
func start(ctx context.Context, command []string, memory int64, own bool) (*process, error) {
	p := &process{ended: make(chan struct{})}
	args := append(command[1:len(command):len(command)], strconv.FormatInt(memory, 10))
	p.cmd = exec.Command(command[0], args...) // the operator's own programs
	p.cmd.Env, p.cmd.Dir, p.cmd.Stderr = []string{}, "/", &p.stderr
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if own {
		p.cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET | syscall.CLONE_NEWIPC
	}
	if err := p.spawn(); err != nil {
		return nil, fmt.Errorf("starting a process that evaluates: %w", &spawnError{err})
	}
	// This fails if the process has already ended. readFrame reports that below.
	_ = unix.Setpriority(unix.PRIO_PGRP, p.cmd.Process.Pid, niceness)
	go func() {
		_ = p.cmd.Wait() // ProcessState says how it ended.
		close(p.ended)
	}()
	late := time.AfterFunc(startTime, func() { p.kill(errors.New("it was not ready within " + startTime.String())) })
	unwanted := context.AfterFunc(ctx, func() { p.kill(context.Cause(ctx)) })
	f, err := readFrame(p.out, 0)
	late.Stop()
	if !unwanted() {
		p.end()
		return nil, context.Cause(ctx)
	}
	if err == nil && f.kind != ready {
		err = fmt.Errorf("%w: kind %d from a process that starts", errProtocol, f.kind)
	}
	if err != nil {
		p.end()
		return nil, fmt.Errorf("starting a process that evaluates: %w", p.whyNotReady(err))
	}
	if own {
		p.active = append(p.active, namespaces)
	}
	if f.head != "" {
		p.active = append(p.active, strings.Split(f.head, ",")...)
	}
	return p, nil
}

// whyNotReady returns why the process did not start: a *CrashError if it was killed from outside.
func (p *process) whyNotReady(err error) error {
	status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if ok && status.Signaled() && p.causeOf() == nil && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)) {
		return &CrashError{State: p.cmd.ProcessState.String()}
	}
	return fmt.Errorf("%w; it said %q", errors.Join(err, p.causeOf()), p.stderr.String())
}

// spawn starts the program with pipes for its input and output. They are not cmd's own, because cmd.Wait would close those.
func (p *process) spawn() error {
	stdin, in, err := os.Pipe()
	if err != nil {
		return err
	}
	out, stdout, err := os.Pipe()
	if err != nil {
		return errors.Join(err, stdin.Close(), in.Close())
	}
	p.in, p.pipe, p.out = in, out, bufio.NewReader(out)
	p.cmd.Stdin, p.cmd.Stdout = stdin, stdout
	err = p.cmd.Start()
	err = errors.Join(err, stdin.Close(), stdout.Close())
	if err != nil {
		return errors.Join(err, in.Close(), out.Close())
	}
	return nil
}

// kill kills the process. causeOf returns the cause of the first kill.
func (p *process) kill(cause error) {
	p.mu.Lock()
	if p.cause == nil {
		p.cause = cause
	}
	p.mu.Unlock()
	_ = p.cmd.Process.Kill() // It fails only if the process has ended.
}

func (p *process) causeOf() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cause
}

// end kills the process, waits until it has ended, and closes the pipes.
func (p *process) end() {
	_ = p.cmd.Process.Kill()
	<-p.ended
	_ = p.in.Close()
	_ = p.pipe.Close()
}

func (p *process) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// head keeps the beginning of what is written to it, where Go's runtime reports why it aborts. It is searched for known texts and never
// logged, because it may contain values of tenants.
type head struct {
	mu   sync.Mutex
	text bytes.Buffer
}

const maxStderr = 4 << 10

// Write accepts everything and keeps the first maxStderr bytes.
func (h *head) Write(text []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.text.Write(text[:min(len(text), maxStderr-h.text.Len())])
	return len(text), nil
}

// String returns the beginning.
func (h *head) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.String()
}
