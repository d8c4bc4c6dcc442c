// Package stage starts a whole platform for `make run` and the end-to-end tests, and removes it completely: a cluster, Git repositories,
// images and the operator.
//
// It uses only what a user has: the cluster binary, git, helm and kubectl. $KUBEOP_CLUSTER_BIN is the path of the cluster binary, by default
// .build/bin/cluster. helm, operator and hello are in the same folder, where make puts them.
package stage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// Namespace is where the operator and the credentials of the repositories are.
const Namespace = "kubeop-system"

// Options configure a stage.
type Options struct {
	// Dir holds all written files. Close removes it. Up removes it first if an earlier stage could not.
	Dir string
	// Node is real, simulated or none; "" lets the cluster choose.
	Node string
	// Audit lets the API server write Cluster.AuditLog, with a line for every request.
	Audit bool
	// Stays keeps the cluster after this process, for a caller that does not always call Close.
	Stays bool
	// Out receives the progress of the cluster.
	Out io.Writer
}

// Stage is a running platform.
type Stage struct {
	// Client acts as the cluster's administrator.
	Client  client.Client
	Cluster Cluster

	dir, root string
	bin       programs
	out       io.Writer
	operator  *Operator
	manager   *Manager
	inPods    bool
	hookHost  string
	// askpass writes the program that git asks for passwords.
	askpass       sync.Once
	askpassFailed error
}

// Up starts a cluster with Git server and registry. If Up returns a Stage with an error, the caller must call Close.
func Up(ctx context.Context, options Options) (*Stage, error) {
	root, err := findRoot()
	if err != nil {
		return nil, err
	}
	bin, err := findPrograms(root)
	if err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(options.Dir)
	if err != nil {
		return nil, fmt.Errorf("resolving %s: %w", options.Dir, err)
	}
	s := &Stage{dir: dir, root: root, bin: bin, out: options.Out}
	if err := s.clear(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the directory: %w", err)
	}
	if err := s.startCluster(ctx, options); err != nil {
		return s, err
	}
	s.Client, err = newClient(s.Cluster.Kubeconfig)
	return s, err
}

// ClusterBinary returns the path of the cluster binary.
func (s *Stage) ClusterBinary() string { return s.bin.cluster }

// Close stops the manager, the operator and the cluster and removes the directory.
func (s *Stage) Close() error {
	var stopped error
	if s.manager != nil {
		stopped = s.manager.stop()
	}
	if s.operator != nil {
		stopped = errors.Join(stopped, s.operator.Stop())
	}
	return errors.Join(stopped, s.clear())
}

// clear removes the cluster and then the directory, which "cluster down" needs.
func (s *Stage) clear() error {
	if err := s.stopCluster(); err != nil {
		return err
	}
	return os.RemoveAll(s.dir)
}

// Path joins names below the stage's directory.
func (s *Stage) Path(names ...string) string {
	return filepath.Join(append([]string{s.dir}, names...)...)
}

// Kubectl runs kubectl as the cluster's administrator and returns what it printed.
func (s *Stage) Kubectl(ctx context.Context, args ...string) (string, error) {
	return run(ctx, []string{"KUBECONFIG=" + s.Cluster.Kubeconfig}, s.bin.cluster, append([]string{"kubectl"}, args...)...)
}

// Helm runs helm as the cluster's administrator and returns what it printed.
func (s *Stage) Helm(ctx context.Context, args ...string) (string, error) {
	return run(ctx, append(s.helmHome(), "KUBECONFIG="+s.Cluster.Kubeconfig), s.bin.helm, args...)
}

// SetSecret writes a Secret into the operator's namespace.
func (s *Stage) SetSecret(ctx context.Context, name string, data map[string]string) error {
	secret := &corev1.Secret{}
	secret.Namespace, secret.Name, secret.StringData = Namespace, name, data
	err := s.Client.Create(ctx, secret)
	if client.IgnoreAlreadyExists(err) == nil && err != nil {
		err = s.Client.Update(ctx, secret)
	}
	if err != nil {
		return fmt.Errorf("writing the secret %s: %w", name, err)
	}
	return nil
}

func newClient(kubeconfig string) (client.Client, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	// Many tests poll at the same time, and none should be throttled.
	config.QPS, config.Burst = -1, -1
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("building the scheme: %w", err)
		}
	}
	return client.New(config, client.Options{Scheme: scheme})
}
