// Command run is `make run`: it starts a cluster, a Git server, a registry, the operator and the manager. It delivers an application by git push, changes it,
// breaks it and removes it, and then keeps running so that you can look around.
//
//	ONCE=1                end after the tour
//	NODE=real|simulated   the kind of node that runs pods; default: real if the machine permits it
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/kubeop/kubeop/e2e/stage"
)

// dir holds all files of the run. It is removed at the end.
const dir = ".build/run"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	err := run(ctx)
	interrupted := ctx.Err() != nil
	stop()
	switch {
	case err == nil:
	case interrupted:
		fmt.Fprintln(os.Stderr, "\nInterrupted:", err)
		os.Exit(130)
	default:
		fmt.Fprintln(os.Stderr, "\nError:", err)
		os.Exit(1)
	}
}

// run always removes what it started.
func run(ctx context.Context) (err error) {
	line := stage.NewTimeline(os.Stdout)
	line.Title("A cluster, a Git server and a registry, on nothing")
	s, err := stage.Up(ctx, stage.Options{Dir: dir, Node: os.Getenv("NODE"), Out: os.Stdout})
	if s != nil {
		defer func() { err = errors.Join(err, leave(line, s, err != nil && ctx.Err() == nil)) }()
	}
	if err != nil {
		return err
	}
	line.Say("Kubernetes %s is ready; its node is %s: %s", s.Cluster.Version, s.Cluster.Node.Kind, s.Cluster.Node.Why)
	r := &tour{stage: s, line: line}
	if err := r.run(ctx); err != nil {
		return err
	}
	if os.Getenv("ONCE") != "" {
		return nil
	}
	if err := r.showAround(); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// leave removes the stage. After a failure it saves the operator's log first.
func leave(line *stage.Timeline, s *stage.Stage, failed bool) error {
	if failed {
		if kept, err := keepLog(s); err == nil {
			line.Say("The operator's log is kept in %s", kept)
		}
	}
	line.Title("Taking everything down")
	if err := s.Close(); err != nil {
		return err
	}
	line.Say("Nothing is left.")
	return nil
}

func keepLog(s *stage.Stage) (string, error) {
	const kept = ".build/run-operator.log"
	return kept, os.Rename(s.Path("operator.log"), kept)
}
