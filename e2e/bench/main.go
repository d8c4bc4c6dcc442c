// Command bench is `make bench`. It measures the operator's cost, mainly in requests to the API server, for many apps that one
// commit adds, changes or removes. docs/bench.md explains the figures.
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

	"github.com/kubeop/kubeop/e2e/stage"
)

func main() {
	s, err := parseSettings(os.Args[1:], os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(2)
	}
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

// measureAll makes a run for each number of apps. It also reports what was measured before an error.
func measureAll(ctx context.Context, s settings) error {
	r := &report{Driver: s.driver, Type: s.kind, Chart: s.chart, Values: s.padding, CPUs: runtime.NumCPU()}
	say := stage.NewTimeline(os.Stdout)
	var failed error
	for _, size := range s.sizes {
		one := run{Apps: size}
		one.Phases, failed = s.measure(ctx, say, size, r)
		if len(one.Phases) > 0 {
			r.Runs = append(r.Runs, one)
		}
		if failed != nil {
			break
		}
	}
	r.conclude()
	r.print(os.Stdout)
	if s.json != "" {
		failed = errors.Join(failed, r.writeJSON(s.json))
	}
	if failed != nil {
		return failed
	}
	return verdict(s, r)
}

// verdict fails a run of kubeop that exceeded its budgets or whose request counts differ.
func verdict(s settings, r *report) error {
	if s.driver != "kubeop" || !s.budget {
		return nil
	}
	var all []error
	for _, line := range append(r.Broken, r.Doubts...) {
		all = append(all, errors.New(line))
	}
	if len(all) == 0 {
		return nil
	}
	return fmt.Errorf("over budget:\n%w", errors.Join(all...))
}

// measure runs the phases for a number of apps.
func (s settings) measure(ctx context.Context, say *stage.Timeline, size int, r *report) ([]phase, error) {
	if s.driver == "flux" {
		driver, err := s.flux.connect(ctx)
		if err != nil {
			return nil, err
		}
		return s.drive(ctx, say, driver, size)
	}
	return s.onOwnCluster(ctx, say, size, r)
}

// onOwnCluster measures kubeop on a cluster that exists for this run only.
func (s settings) onOwnCluster(ctx context.Context, say *stage.Timeline, size int, r *report) (phases []phase, err error) {
	dir, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return nil, fmt.Errorf("making a directory: %w", err)
	}
	say.Title("A cluster for %d apps, in %s", size, dir)
	up, err := stage.Up(ctx, stage.Options{Dir: dir, Node: "none", Audit: true, Stays: s.keep, Out: os.Stdout})
	if up == nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	var driver *kubeop
	defer func() {
		if s.keep && driver != nil && ctx.Err() == nil {
			printKept(say, up, driver.operator.PID())
			return
		}
		err = errors.Join(err, takeDown(say, up, err != nil && ctx.Err() == nil))
	}()
	if err != nil {
		return nil, err
	}
	r.Kubernetes = up.Cluster.Version
	driver, err = bringUp(ctx, up, appTypes[s.kind], s.chart == "folder")
	if err != nil {
		return nil, err
	}
	say.Say("the operator is ready, process %d; log: %s", driver.operator.PID(), driver.operator.Log)
	return s.drive(ctx, say, driver, size)
}

// drive runs the phases.
func (s settings) drive(ctx context.Context, say *stage.Timeline, d driver, size int) ([]phase, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the watch
	m, err := newMeter(d.subject())
	if err != nil {
		return nil, err
	}
	defer m.close()
	b := &bench{driver: d, meter: m, tracker: newTracker(d.progress), say: say, apps: newApps(size, s.padding), still: s.still}
	return b.run(ctx, s.phases)
}

// printKept prints how to inspect the kept cluster and how to remove it.
func printKept(say *stage.Timeline, up *stage.Stage, pid int) {
	say.Say("The cluster and the operator stay up. To look:\n  export KUBECONFIG=%s\n  tail -f %s\n  less %s\nTo take them down:\n"+
		"  kill %d; %s down --dir %s; rm -r %s",
		up.Cluster.Kubeconfig, up.Path("operator.log"), up.Cluster.AuditLog,
		pid, up.ClusterBinary(), up.Path("cluster"), up.Path())
}

// takeDown removes everything. After a failure the operator's log is kept.
func takeDown(say *stage.Timeline, up *stage.Stage, failed bool) error {
	if failed {
		if kept, err := keepLog(up); err == nil {
			say.Say("The operator's log is kept in %s", kept)
		}
	}
	say.Title("Taking everything down")
	return up.Close()
}

// keepLog saves the operator's log before its directory is removed.
func keepLog(up *stage.Stage) (string, error) {
	const kept = ".build/bench-operator.log"
	log, err := os.ReadFile(up.Path("operator.log"))
	if err != nil {
		return "", err
	}
	return kept, os.WriteFile(kept, log, 0o600)
}
