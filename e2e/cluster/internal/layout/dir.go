// Package layout defines the paths of a cluster's files and the content of cluster.json.
package layout

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Dir is the directory of one cluster. It contains all files that the cluster writes.
type Dir string

// DefaultDir is the directory if neither the flag nor CLUSTER_DIR names one.
const DefaultDir = ".cluster"

// Open returns the directory as an absolute path, because the supervisor and the components run in other working directories.
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

// State returns the path of cluster.json, the machine-readable description of the cluster.
func (d Dir) State() string { return d.Path("cluster.json") }

// Kubeconfig returns the path of the administrator's kubeconfig.
func (d Dir) Kubeconfig() string { return d.Path("kubeconfig") }

// PKI returns the path of a key or certificate of the cluster.
func (d Dir) PKI(name string) string { return d.Path("pki", name) }

// Config returns the path of a generated configuration file.
func (d Dir) Config(name string) string { return d.Path("config", name) }

// Log returns the path of a component's log.
func (d Dir) Log(component string) string { return d.Path("logs", component+".log") }

// Claim prepares the directory for a new cluster. It refuses a directory with other content, because `down` removes all content.
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

// Owned reports whether the directory contains a cluster, running or not.
func (d Dir) Owned() bool {
	_, err := os.Stat(d.State())
	return err == nil
}
