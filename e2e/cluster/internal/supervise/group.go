// Package supervise keeps the processes of one cluster running and stops them.
package supervise

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/kubeop/kubeop/e2e/cluster/internal/layout"
)

// Program is a process to keep running.
type Program struct {
	Name string
	Path string
	Args []string
	Env  []string
	Dir  string
	// Log receives standard output and error.
	Log string
	// Stdin is the process's input, if set. Such a process is not restarted, because its input is used up.
	Stdin io.Reader
	// Attr are additional attributes of the process, such as new namespaces.
	Attr *syscall.SysProcAttr
	// Grace is how long the process may take to end after SIGTERM. With 0 it is killed at once.
	Grace time.Duration
}

// Group is a set of running programs.
type Group struct {
	// Changed is called with every started process.
	Changed func(name string, process layout.Process)
	// Logf reports exits and restarts.
	Logf func(format string, args ...any)

	starts   chan func()
	mu       sync.Mutex
	running  []*member
	stopping bool
}

type member struct {
	program  Program
	command  *exec.Cmd
	restarts int
	gone     chan struct{}
}

// restartDelay prevents that a component that cannot start uses up the processors.
const restartDelay = time.Second

// NewGroup returns an empty group.
//
// Its programs end with it. The kernel kills a program when the thread that started it ends, so one goroutine that is locked to its thread starts
// all of them.
func NewGroup() *Group {
	group := &Group{starts: make(chan func()), Logf: func(string, ...any) {}}
	go func() {
		runtime.LockOSThread()
		for start := range group.starts {
			start()
		}
	}()
	return group
}

// Start starts the program and keeps it running until Stop. It returns the PID.
func (g *Group) Start(program Program) (int, error) {
	m := &member{program: program, gone: make(chan struct{})}
	if err := g.launch(m); err != nil {
		return 0, err
	}
	g.mu.Lock()
	g.running = append(g.running, m)
	g.mu.Unlock()
	go g.keep(m)
	return m.command.Process.Pid, nil
}

func (g *Group) launch(m *member) error {
	log, err := os.OpenFile(m.program.Log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("opening the log of %s: %w", m.program.Name, err)
	}
	defer log.Close()
	command := exec.Command(m.program.Path, m.program.Args...)
	command.Env = append(os.Environ(), m.program.Env...)
	command.Dir, command.Stdin, command.Stdout, command.Stderr = m.program.Dir, m.program.Stdin, log, log
	command.SysProcAttr = dieWithParent(m.program.Attr)
	done := make(chan error)
	g.starts <- func() { done <- command.Start() }
	if err := <-done; err != nil {
		return fmt.Errorf("starting %s: %w", m.program.Name, err)
	}
	m.command = command
	if g.Changed != nil {
		process := layout.ProcessOf(command.Process.Pid)
		process.Restarts = m.restarts
		g.Changed(m.program.Name, process)
	}
	return nil
}

// keep waits for the program's end and restarts it, unless the group is stopping.
func (g *Group) keep(m *member) {
	defer close(m.gone)
	for {
		err := m.command.Wait()
		if g.isStopping() {
			return
		}
		g.Logf("%s ended unexpectedly: %v", m.program.Name, err)
		if m.program.Stdin != nil {
			return
		}
		time.Sleep(restartDelay)
		if !g.restart(m) {
			return
		}
	}
}

// restart restarts the program. It holds the lock meanwhile, so that Stop does not miss the new process.
func (g *Group) restart(m *member) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stopping {
		return false
	}
	m.restarts++
	if err := g.launch(m); err != nil {
		g.Logf("%v", err)
		return false
	}
	return true
}

func (g *Group) isStopping() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.stopping
}

// Stop ends the programs in reverse order of their start, and waits until all have ended.
func (g *Group) Stop(ctx context.Context) {
	g.mu.Lock()
	g.stopping = true
	running := g.running
	g.mu.Unlock()
	for i := len(running) - 1; i >= 0; i-- {
		running[i].stop(ctx)
	}
}

func (m *member) stop(ctx context.Context) {
	if m.program.Grace > 0 {
		_ = m.command.Process.Signal(syscall.SIGTERM)
		ctx, cancel := context.WithTimeout(ctx, m.program.Grace)
		defer cancel()
		select {
		case <-m.gone:
			return
		case <-ctx.Done():
		}
	}
	_ = m.command.Process.Kill()
	<-m.gone
}
