// Package plane controls the processes and the database of a cluster of e2e/cluster by its directory. It simulates what can happen
// on hosts: processes stop or hang, and the database is restored from a backup.
package plane

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// Plane is the control plane of the cluster in a directory.
type Plane struct{ Dir string }

// Signal sends a signal to a component, such as kube-apiserver. The cluster restarts a stopped component within a second.
func (p Plane) Signal(component string, signal syscall.Signal) error {
	data, err := os.ReadFile(filepath.Join(p.Dir, "cluster.json"))
	if err != nil {
		return fmt.Errorf("finding %s: %w", component, err)
	}
	var state struct {
		Components map[string]struct {
			PID int `json:"pid"`
		} `json:"components"`
	}
	if err := json.Unmarshal(data, &state); err != nil {
		return fmt.Errorf("finding %s: %w", component, err)
	}
	pid := state.Components[component].PID
	if pid == 0 {
		return fmt.Errorf("finding %s: no process of %s is known by that name", component, p.Dir)
	}
	if err := syscall.Kill(pid, signal); err != nil {
		return fmt.Errorf("sending %s to %s: %w", signal, component, err)
	}
	return nil
}
