// Package boot starts a cluster inside its supervisor, keeps it running and stops it.
package boot

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/kubeop/kubeop/e2e/cluster/internal/layout"
)

// Options are the options of `up`. The supervisor reads them from a file in the cluster directory.
type Options struct {
	// Name identifies the cluster on this machine.
	Name string `json:"name"`
	// Node is the kind of node, and Why the reason in plain words.
	Node layout.NodeKind `json:"node"`
	Why  string          `json:"why"`
	// Registry and Git turn these servers on.
	Registry bool `json:"registry"`
	Git      bool `json:"git"`
	// Kubernetes is the minor version whose APIs and features the control plane has; "" is that of the binary.
	Kubernetes string `json:"kubernetes,omitempty"`
	// Audit turns the API server's audit log on.
	Audit bool `json:"audit"`
	// ParentPID is a process with whose end the cluster stops; 0 means none.
	ParentPID int `json:"parentPID,omitempty"`
	// Version is the Kubernetes version, for cluster.json.
	Version string `json:"version"`
}

// Save stores the options in the cluster directory.
func (o Options) Save(dir layout.Dir) error {
	data, err := json.Marshal(o)
	if err != nil {
		return fmt.Errorf("encoding the options: %w", err)
	}
	if err := os.WriteFile(dir.Config("options.json"), data, 0o600); err != nil {
		return fmt.Errorf("writing the options: %w", err)
	}
	return nil
}

// LoadOptions returns the options that Save stored.
func LoadOptions(dir layout.Dir) (Options, error) {
	var options Options
	data, err := os.ReadFile(dir.Config("options.json"))
	if err != nil {
		return options, fmt.Errorf("reading the options: %w", err)
	}
	if err := json.Unmarshal(data, &options); err != nil {
		return options, fmt.Errorf("parsing the options: %w", err)
	}
	return options, nil
}
