package boot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/kubeop/kubeop/e2e/cluster/internal/control"
	"github.com/kubeop/kubeop/e2e/cluster/internal/layout"
	"github.com/kubeop/kubeop/e2e/cluster/internal/network"
	"github.com/kubeop/kubeop/e2e/cluster/internal/node"
	"github.com/kubeop/kubeop/e2e/cluster/internal/supervise"
)

// Supervisor is the process of a cluster that starts and ends all its other processes.
type Supervisor struct {
	dir      layout.Dir
	options  Options
	plane    control.Plane
	group    *supervise.Group
	progress *Progress
	client   kubernetes.Interface

	// registryPort and gitPort are reserved ports on loopback.
	registryPort, gitPort int
	// apiReady is closed when the API server answers, and linked when the link to the node exists.
	apiReady, linked chan struct{}
	// nodeInput is the standard input of a real node's init, which ends when this is closed.
	nodeInput *os.File

	mu    sync.Mutex
	state *layout.State
}

// Run starts the cluster and writes its progress. It runs until it gets a signal to stop, or until the parent process in the options ends.
func Run(dir layout.Dir, progress io.WriteCloser) error {
	options, err := LoadOptions(dir)
	if err != nil {
		return err
	}
	state, err := dir.Read()
	if err != nil {
		return err
	}
	avoidProxies()
	s := &Supervisor{dir: dir, options: options, group: supervise.NewGroup(), progress: NewProgress(progress), state: state}
	s.group.Changed, s.group.Logf = s.recordProcess, logf
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, orphaned := s.followParent(ctx)

	if err := s.boot(ctx); err != nil {
		s.fail(err)
	} else {
		s.update(func(state *layout.State) {
			state.Phase, state.ReadySeconds = layout.Ready, time.Since(state.StartedAt).Seconds()
		})
		s.progress.Say(ReadyLine)
		_ = progress.Close()
		<-ctx.Done()
		s.update(func(state *layout.State) { state.Phase = layout.Stopping })
		s.stop()
	}
	if orphaned() {
		logf("the process this cluster depends on has ended: removing the cluster")
		return Remove(dir)
	}
	return err
}

// fail stops what was started and keeps the directory, because its logs contain the cause.
func (s *Supervisor) fail(err error) {
	logf("%v", err)
	s.stop()
	s.update(func(state *layout.State) { state.Phase, state.Components = layout.Failed, nil })
	s.progress.Say("%v", err)
}

// stop ends all processes, and removes what the kernel would otherwise remove only some time later.
func (s *Supervisor) stop() {
	s.group.Stop(context.Background())
	if err := node.Remove(s.state.Node); err != nil {
		logf("%v", err)
	}
}

// followParent returns a context that ends when the parent process in the options ends. orphaned reports whether it has ended.
func (s *Supervisor) followParent(ctx context.Context) (_ context.Context, orphaned func() bool) {
	if s.options.ParentPID == 0 {
		return ctx, func() bool { return false }
	}
	errOrphaned := errors.New("the parent process has ended")
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		if err := supervise.WaitForEnd(ctx, s.options.ParentPID); err != nil {
			logf("%v", err)
			return
		}
		cancel(errOrphaned)
	}()
	return ctx, func() bool { return errors.Is(context.Cause(ctx), errOrphaned) }
}

// avoidProxies makes the cluster's components ignore a proxy of the environment. Only the package manager may need it.
func avoidProxies() {
	inside := "localhost,127.0.0.0/8," + network.Ranges + ",.svc,.cluster.local"
	for _, name := range []string{"NO_PROXY", "no_proxy"} {
		if set := os.Getenv(name); set != "" {
			inside = set + "," + inside
		}
		_ = os.Setenv(name, inside)
	}
}

// update changes cluster.json.
func (s *Supervisor) update(change func(*layout.State)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s.state)
	if err := s.dir.Write(s.state); err != nil {
		logf("%v", err)
	}
}

func (s *Supervisor) recordProcess(name string, process layout.Process) {
	s.update(func(state *layout.State) {
		if state.Components == nil {
			state.Components = map[string]layout.Process{}
		}
		state.Components[name] = process
	})
}

// logf writes to the supervisor's log, which is its standard error.
func logf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, time.Now().Format(time.RFC3339)+" "+format+"\n", args...)
}
