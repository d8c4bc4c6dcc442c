// Package layout says where everything of one cluster lives on disk and what cluster.json holds.
package layout

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Dir is the directory of one cluster. Everything the cluster writes is below it, so removing it removes the cluster's
// files.
type Dir string

// DefaultDir is the directory used when neither the flag nor CLUSTER_DIR names one.
const DefaultDir = ".cluster"

// Open makes path absolute: the supervisor and the components run in other working directories.
func Open(path string) (Dir, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("resolving the cluster directory %s: %w", path, err)
	}
	return Dir(abs), nil
}

// Path joins names below the directory.
func (d Dir) Path(names ...string) string {
	return filepath.Join(append([]string{string(d)}, names...)...)
}

// State is the machine-readable description of the cluster.
func (d Dir) State() string { return d.Path("cluster.json") }

// Kubeconfig is the administrator's kubeconfig.
func (d Dir) Kubeconfig() string { return d.Path("kubeconfig") }

// PKI is where the cluster's keys and certificates are.
func (d Dir) PKI(name string) string { return d.Path("pki", name) }

// Config is where generated configuration files of the components are.
func (d Dir) Config(name string) string { return d.Path("config", name) }

// Log is the log of one component.
func (d Dir) Log(component string) string { return d.Path("logs", component+".log") }

// Claim makes the directory ready for a new cluster. It refuses a directory with foreign content, because `down`
// removes all of it.
func (d Dir) Claim() error {
	entries, err := os.ReadDir(string(d))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("reading the cluster directory: %w", err)
	}
	if len(entries) > 0 {
		return fmt.Errorf("%s is not empty and holds no cluster; choose another --dir", d)
	}
	for _, name := range []string{"pki", "config", "logs", "etcd"} {
		if err := os.MkdirAll(d.Path(name), 0o700); err != nil {
			return fmt.Errorf("making the cluster directory: %w", err)
		}
	}
	if err := os.Chmod(string(d), 0o700); err != nil {
		return fmt.Errorf("closing the cluster directory to others: %w", err)
	}
	return nil
}

// Owned reports whether the directory holds a cluster, running or not.
func (d Dir) Owned() bool {
	_, err := os.Stat(d.State())
	return err == nil
}
