package stage

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// process is a program of kubeop that runs on the host.
type process struct {
	// name is for messages. log is the path of its log, and health its address for /readyz.
	name, program, log, health string
	env                        []string

	command *exec.Cmd
	ended   chan error
}

// start starts it, for the first time or after it ended, and waits until it is ready.
func (p *process) start(ctx context.Context) error {
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("opening the log of the %s: %w", p.name, err)
	}
	defer log.Close()
	p.command = exec.Command(p.program)
	p.command.Env, p.command.Stdout, p.command.Stderr = append(os.Environ(), p.env...), log, log
	// It has its own process group, so that Ctrl-C does not reach it and it is stopped in order.
	p.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.command.Start(); err != nil {
		return fmt.Errorf("starting the %s: %w", p.name, err)
	}
	p.ended = make(chan error, 1)
	go func(command *exec.Cmd, ended chan<- error) { ended <- command.Wait() }(p.command, p.ended)
	return Until(ctx, time.Minute, "the "+p.name+" is ready", p.ready)
}

func (p *process) ready(ctx context.Context) error {
	select {
	case err := <-p.ended:
		p.ended <- err
		return Final(fmt.Errorf("it ended (%w); its log is %s", orDone(err), p.log))
	default:
	}
	_, err := Get(ctx, "http://"+p.health+"/readyz")
	return err
}

// pid is the PID of the process, or 0 if it does not run.
func (p *process) pid() int {
	if p.command == nil || p.command.Process == nil {
		return 0
	}
	return p.command.Process.Pid
}

func (p *process) end(signal syscall.Signal, within time.Duration) error {
	if p.pid() == 0 {
		return nil
	}
	_ = p.command.Process.Signal(signal)
	select {
	case <-p.ended:
		p.command = nil
		return nil
	case <-time.After(within):
	}
	_ = p.command.Process.Kill()
	<-p.ended
	p.command = nil
	return fmt.Errorf("the %s did not stop within %s and was killed", p.name, within)
}

func orDone(err error) error {
	if err == nil {
		return errors.New("without an error")
	}
	return err
}
