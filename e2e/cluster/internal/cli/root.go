// Package cli is the command line of the cluster.
package cli

import (
	"cmp"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/kubeop/kubeop/e2e/cluster/internal/layout"
)

const about = `A real Kubernetes in one binary, for development and tests.

A cluster lives in one directory (--dir, else $CLUSTER_DIR, else ./.cluster) with its own certificates and free ports,
so that several run side by side. "down" removes every trace of it.

The binary also is etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kubelet, kube-proxy, kubectl, coredns
and kwok: call it by that name through a symlink, or give the name as the first argument.`

const examples = `  cluster up                                  # real node as root on Linux, else a simulated one
  cluster up --node none --dir /tmp/test      # control plane only, ready in seconds
  KUBECONFIG=$(cluster kubeconfig) cluster kubectl get nodes
  cluster repo create demo --user dev --password secret
  cluster image push --name demo:v1 ./demo
  cluster down`

// Main runs the command line and returns its exit status.
func Main(args []string) int {
	// The programs that a real node needs are in sbin, which is not in the PATH of a root shell started by su.
	_ = os.Setenv("PATH", os.Getenv("PATH")+":/usr/local/sbin:/usr/sbin:/sbin")
	root := newRoot()
	root.SetArgs(args)
	if err := root.Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		return 1
	}
	return 0
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use: "cluster", Short: "A real Kubernetes in one binary", Long: about, Example: examples,
		SilenceUsage: true, SilenceErrors: true,
	}
	dir := root.PersistentFlags().String("dir", cmp.Or(os.Getenv("CLUSTER_DIR"), layout.DefaultDir), "the cluster's directory")
	open := func() (layout.Dir, error) { return layout.Open(*dir) }
	root.AddCommand(newUp(open), newDown(open), newStatus(open), newKubeconfig(open), newLogs(open), newSupervise(open),
		newRepo(open), newImage(open), newNode(open))
	return root
}

// opener returns the cluster directory. Call it after the flags are parsed.
type opener func() (layout.Dir, error)

// running returns the directory and the state of a running cluster.
func (o opener) running() (layout.Dir, *layout.State, error) {
	dir, err := o()
	if err != nil {
		return "", nil, err
	}
	if !dir.Owned() {
		return "", nil, fmt.Errorf("no cluster in %s: start one with \"cluster up\"", dir)
	}
	state, err := dir.Read()
	if err != nil {
		return "", nil, err
	}
	if !state.Supervisor.Alive() {
		return "", nil, fmt.Errorf("the cluster in %s does not run: start it anew with \"cluster up\"", dir)
	}
	return dir, state, nil
}
