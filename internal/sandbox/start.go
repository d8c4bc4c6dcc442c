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

// startTime is how long a process may take until it is ready; the machine may be busy.
const startTime = 30 * time.Second

// niceness has the processes leave the processor to the operator when both want it.
const niceness = 5

// spawnError says that the system refused to start the program as it was to be started.
type spawnError struct{ error }

func (e *spawnError) Unwrap() error { return e.error }

// process is a worker as its parent sees it.
type process struct {
	cmd *exec.Cmd
	// program is that of its Call.
	program string
	in      *os.File
	out     *bufio.Reader
	pipe    *os.File
	stderr  head
	// active is what confines it.
	active []string
	// ended is closed when it has ended and been waited for.
	ended chan struct{}

	mu    sync.Mutex
	cause error
}

// start starts a process and waits until it has confined itself, or the end of ctx, which ends it.
func start(ctx context.Context, command []string, memory int64, own bool) (*process, error) {
	p := &process{ended: make(chan struct{})}
	args := append(command[1:len(command):len(command)], strconv.FormatInt(memory, 10))
	p.cmd = exec.Command(command[0], args...) //nolint:gosec // it is this very binary
	p.cmd.Env, p.cmd.Dir, p.cmd.Stderr = []string{}, "/", &p.stderr
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if own {
		p.cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET | syscall.CLONE_NEWIPC
	}
	if err := p.spawn(); err != nil {
		return nil, fmt.Errorf("starting a process that evaluates: %w", &spawnError{err})
	}
	// A process that has ended by now says why below.
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
	if err != nil || f.kind != ready {
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

// whyNotReady is a *CrashError when the process was killed.
func (p *process) whyNotReady(err error) error {
	status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if ok && status.Signaled() && p.causeOf() == nil && (err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)) {
		return &CrashError{State: p.cmd.ProcessState.String()}
	}
	return fmt.Errorf("%w; it said %q", errors.Join(err, p.causeOf()), p.stderr.String())
}

// spawn starts the program with a pipe at each end. Waiting for it closes none of ours.
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

// kill ends the process. The first cause is the one that counts.
func (p *process) kill(cause error) {
	p.mu.Lock()
	if p.cause == nil {
		p.cause = cause
	}
	p.mu.Unlock()
	_ = p.cmd.Process.Kill() // One that has ended is what was wanted.
}

func (p *process) causeOf() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cause
}

// end kills the process, waits until it is gone and closes the pipes.
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

// head keeps the beginning of what is written to it: Go's runtime says first why it gives up. It is looked at for known words,
// and never logged: values of tenants may be in it.
type head struct {
	mu   sync.Mutex
	text bytes.Buffer
}

const maxStderr = 4 << 10

// Write takes everything and keeps maxStderr bytes.
func (h *head) Write(text []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.text.Write(text[:min(len(text), maxStderr-h.text.Len())])
	return len(text), nil
}

// String is what was kept.
func (h *head) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.String()
}
