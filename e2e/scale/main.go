// Command scale is `make bench-scale`. It measures the operator's cost for thousands of small apps of many tenants, and whether the cost of a
// push depends only on what it changed. docs/bench.md explains the figures.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"github.com/go-logr/logr"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kubeop/kubeop/e2e/stage"
)

func main() {
	s, err := parseSettings(os.Args[1:], os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench-scale:", err)
		os.Exit(2)
	}
	ctrllog.SetLogger(logr.Discard()) // This is the client's log, not the operator's.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	err = measureAll(ctx, s)
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

// measureAll makes a run for each size and reports them side by side. It also reports what was measured before an error.
func measureAll(ctx context.Context, s settings) error {
	r := &report{Layout: s.layout, CPUs: runtime.NumCPU()}
	say := stage.NewTimeline(os.Stdout)
	var failed error
	for i, tenants := range s.tenants {
		one := newRun(tenants, s)
		if i < len(s.tenants)-1 {
			one.idleFor = 0
		}
		failed = s.onOwnCluster(ctx, say, one)
		r.Runs = append(r.Runs, one)
		if failed != nil {
			break
		}
	}
	r.conclude()
	r.print(os.Stdout)
	if s.json != "" {
		failed = errors.Join(failed, r.writeJSON(s.json))
	}
	if failed != nil || !s.budget || len(r.Broken) == 0 {
		return failed
	}
	var all []error
	for _, line := range r.Broken {
		all = append(all, errors.New(line))
	}
	return fmt.Errorf("over budget:\n%w", errors.Join(all...))
}

// onOwnCluster measures on a cluster that exists for this run only.
func (s settings) onOwnCluster(ctx context.Context, say *stage.Timeline, r *run) (err error) {
	dir, err := os.MkdirTemp("", "scale-")
	if err != nil {
		return fmt.Errorf("making a directory: %w", err)
	}
	say.Title("A cluster for %d apps of %d tenants, in %s", r.Apps, r.Tenants, dir)
	up, err := stage.Up(ctx, stage.Options{Dir: dir, Node: "none", Audit: true, Stays: s.keep, Out: os.Stdout})
	if up == nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	defer func() {
		if s.keep && ctx.Err() == nil {
			say.Say("Cluster and operator stay up: export KUBECONFIG=%s\nTo take them down: kill the operator, then %s down --dir %s",
				up.Cluster.Kubeconfig, up.ClusterBinary(), up.Path("cluster"))
			return
		}
		if err != nil && ctx.Err() == nil {
			keepLog(say, up)
		}
		err = errors.Join(err, up.Close())
	}()
	if err != nil {
		return err
	}
	b, err := bringUp(ctx, up, say, r)
	if err != nil {
		return err
	}
	defer b.close()
	return b.run(ctx)
}

// keepLog copies the operator's log, because its directory is about to be removed.
func keepLog(say *stage.Timeline, up *stage.Stage) {
	const kept = ".build/bench-scale-operator.log"
	log, err := os.ReadFile(up.Path("operator.log"))
	if err == nil {
		err = os.WriteFile(kept, log, 0o600)
	}
	if err != nil {
		say.Say("The operator's log is lost: %v", err)
		return
	}
	say.Say("The operator's log is kept in %s", kept)
}
