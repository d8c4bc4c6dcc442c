package boot

import (
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/kubeop/kubeop/e2e/cluster/internal/layout"
	"github.com/kubeop/kubeop/e2e/cluster/internal/node"
)

// stopTimeout is how long the supervisor may take to end all processes that it started.
const stopTimeout = 20 * time.Second

// killTimeout is how long the kernel may take to end a killed process.
const killTimeout = 10 * time.Second

// Stop ends the cluster's supervisor, which ends all other processes, and removes what a killed supervisor left behind. Only the cluster
// directory with the logs is left.
func Stop(dir layout.Dir) error {
	state, err := dir.Read()
	if err != nil {
		return err
	}
	end(state.Supervisor, stopTimeout)
	// The supervisor may have started or restarted something while it was being stopped.
	if state, err = dir.Read(); err != nil {
		return err
	}
	for _, process := range state.Components {
		end(process, 0)
	}
	return node.Remove(state.Node)
}

// Remove removes the cluster directory, after Stop or at the end of the supervisor.
func Remove(dir layout.Dir) error {
	if !dir.Owned() {
		return fmt.Errorf("%s holds no cluster", dir)
	}
	if err := os.RemoveAll(string(dir)); err != nil {
		return fmt.Errorf("removing the cluster directory: %w", err)
	}
	return nil
}

// end sends SIGTERM to the process, and kills it after the grace period.
func end(process layout.Process, grace time.Duration) {
	process.Signal(syscall.SIGTERM)
	for deadline := time.Now().Add(grace); process.Alive() && time.Now().Before(deadline); {
		time.Sleep(20 * time.Millisecond)
	}
	process.Signal(syscall.SIGKILL)
	for deadline := time.Now().Add(killTimeout); process.Alive() && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
	}
}
