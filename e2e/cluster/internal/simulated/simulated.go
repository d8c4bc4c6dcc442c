// Package simulated creates a node that exists only in the API. kwok simulates its kubelet, and its pods are Ready as soon as they are scheduled.
package simulated

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	nodestages "sigs.k8s.io/kwok/kustomize/stage/node/fast"
	podstages "sigs.k8s.io/kwok/kustomize/stage/pod/fast"

	"github.com/kubeop/kubeop/e2e/cluster/internal/layout"
	"github.com/kubeop/kubeop/e2e/cluster/internal/network"
	"github.com/kubeop/kubeop/e2e/cluster/internal/supervise"
)

// Name is the name of the Node object.
const Name = "node"

// manifest is the Node. The annotation marks it for kwok.
const manifest = `apiVersion: v1
kind: Node
metadata:
  name: node
  annotations: {kwok.x-k8s.io/node: fake}
  labels: {kubernetes.io/hostname: node, kubernetes.io/os: linux, type: kwok}
status:
  allocatable: {cpu: "64", memory: 256Gi, pods: "5000", ephemeral-storage: 1Ti}
  capacity: {cpu: "64", memory: 256Gi, pods: "5000", ephemeral-storage: 1Ti}
`

// Write writes kwok's files below the cluster directory: its default stages of nodes and pods, and the Node.
func Write(dir layout.Dir) error {
	stages := []string{nodestages.DefaultNodeInit, podstages.DefaultPodReady, podstages.DefaultPodComplete,
		podstages.DefaultPodDelete}
	files := map[string]string{
		"kwok.yaml":           strings.Join(stages, "\n---\n"),
		"simulated-node.yaml": manifest,
	}
	for name, text := range files {
		if err := os.WriteFile(dir.Config(name), []byte(text), 0o600); err != nil {
			return fmt.Errorf("writing the simulated node: %w", err)
		}
	}
	return nil
}

// Program returns kwok.
func Program(dir layout.Dir, binary string, plan network.Plan) supervise.Program {
	return supervise.Program{
		Name: "kwok", Path: binary, Dir: string(dir), Log: dir.Log("kwok"), Grace: time.Second,
		Args: []string{"kwok", "--kubeconfig=" + dir.Kubeconfig(), "--config=" + dir.Config("kwok.yaml"),
			"--manage-all-nodes=false", "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
			"--cidr=" + plan.Pods.String(), "--node-ip=" + plan.Node.String(), "--node-port=0"},
	}
}

// Create creates the Node.
func Create(ctx context.Context, dir layout.Dir, binary string) error {
	command := exec.CommandContext(ctx, binary, "kubectl", "--kubeconfig="+dir.Kubeconfig(), "create",
		"--validate=false", "--filename="+dir.Config("simulated-node.yaml"))
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("creating the simulated node: %w: %s", err, out)
	}
	return nil
}
