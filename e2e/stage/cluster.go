package stage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// Cluster is the part of cluster.json that a stage uses; e2e/cluster describes the rest.
type Cluster struct {
	Version      string  `json:"version"`
	ReadySeconds float64 `json:"readySeconds"`
	Kubeconfig   string  `json:"kubeconfig"`
	APIServer    string  `json:"apiServer"`
	CAFile       string  `json:"caFile"`
	LogsDir      string  `json:"logsDir"`
	// AuditLog is "" unless Options.Audit is set.
	AuditLog string `json:"auditLog"`
	Node     struct {
		Kind string `json:"kind"`
		Why  string `json:"why"`
	} `json:"node"`
	// Registry and Git have the addresses for the host and for pods.
	Registry struct {
		Host string `json:"host"`
		Pods string `json:"pods"`
	} `json:"registry"`
	Git struct {
		Host string `json:"host"`
		Pods string `json:"pods"`
	} `json:"git"`
}

// RealPods reports whether pods really run, and are not simulated.
func (c *Cluster) RealPods() bool { return c.Node.Kind == "real" }

// startCluster starts a cluster. It also ends when this process is killed, unless Options.Stays is set.
func (s *Stage) startCluster(ctx context.Context, options Options) error {
	args := []string{"up", "--dir", s.clusterDir(), "--registry", "--git", fmt.Sprintf("--audit=%t", options.Audit)}
	if !options.Stays {
		args = append(args, "--parent-pid", strconv.Itoa(os.Getpid()))
	}
	if options.Node != "" {
		args = append(args, "--node", options.Node)
	}
	command := exec.CommandContext(ctx, s.bin.cluster, args...)
	command.Stdout, command.Stderr = s.out, s.out
	// Stop it with a signal instead of killing it, so that it can clean up.
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	if err := command.Run(); err != nil {
		return fmt.Errorf("starting the cluster: %w", err)
	}
	data, err := os.ReadFile(filepath.Join(s.clusterDir(), "cluster.json"))
	if err != nil {
		return fmt.Errorf("reading the cluster's state: %w", err)
	}
	if err := json.Unmarshal(data, &s.Cluster); err != nil {
		return fmt.Errorf("reading the cluster's state: %w", err)
	}
	return nil
}

func (s *Stage) stopCluster() error {
	if _, err := os.Stat(s.clusterDir()); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	_, err := run(context.Background(), nil, s.bin.cluster, "down", "--dir", s.clusterDir())
	return err
}

func (s *Stage) clusterDir() string { return s.Path("cluster") }

// PushImage builds an image of static binaries, pushes it as name:tag to the cluster's registry and returns the reference for pods.
func (s *Stage) PushImage(ctx context.Context, name string, binaries ...string) (string, error) {
	args := append([]string{"image", "push", "--dir", s.clusterDir(), "--name", name}, binaries...)
	out, err := run(ctx, nil, s.bin.cluster, args...)
	if err != nil {
		return "", err
	}
	lines := strings.Split(out, "\n")
	return lines[len(lines)-1], nil
}

// PushHello pushes the sample application as hello:<tag>.
func (s *Stage) PushHello(ctx context.Context, tag string) (string, error) {
	return s.PushImage(ctx, "hello:"+tag, s.bin.hello)
}
