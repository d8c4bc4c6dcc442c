package boot

import (
	"context"
	"fmt"
	"os"

	"github.com/kubeop/kubeop/e2e/cluster/internal/control"
	"github.com/kubeop/kubeop/e2e/cluster/internal/image"
	"github.com/kubeop/kubeop/e2e/cluster/internal/layout"
	"github.com/kubeop/kubeop/e2e/cluster/internal/node"
	"github.com/kubeop/kubeop/e2e/cluster/internal/simulated"
)

// startRealNode starts a node and waits until it accepts pods and the cluster's DNS answers.
func (s *Supervisor) startRealNode(ctx context.Context) error {
	n := node.Node{
		Dir: s.dir, Binary: s.plane.Binary, Cluster: s.options.Name, Plan: s.plane.Plan,
		APIPort: s.plane.APIPort, RegistryPort: s.registryPort,
	}
	// Record the node before creating it, so that `down` knows what to remove if this process is killed.
	s.update(func(state *layout.State) { state.Node = n.State(s.options.Why) })
	if err := image.CheckStatic(n.Binary); err != nil {
		return fmt.Errorf("the cluster's DNS runs this binary in a pod: %w", err)
	}
	if err := s.findTools(ctx, &n); err != nil {
		return err
	}
	if err := n.Write(); err != nil {
		return err
	}
	stdin, input, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("making a pipe: %w", err)
	}
	defer stdin.Close()
	pid, err := s.group.Start(n.Program(stdin))
	if err != nil {
		return err
	}
	s.nodeInput = input
	if err := s.connect(n, pid); err != nil {
		return err
	}
	if err := reached(ctx, s.apiReady); err != nil {
		return err
	}
	return s.finishRealNode(ctx, n)
}

func (s *Supervisor) findTools(ctx context.Context, n *node.Node) (err error) {
	if n.Tools, err = node.FindTools(); err == nil {
		return nil
	}
	s.progress.Say("  %v; installing them from Debian (about 20 s) ...", err)
	log, err := s.openLog("install")
	if err != nil {
		return err
	}
	defer log.Close()
	return s.progress.Step("installed", func() error {
		n.Tools, err = node.Install(ctx, log)
		return err
	})
}

// connect links the node to the host and makes the API server reachable from it.
func (s *Supervisor) connect(n node.Node, pid int) error {
	if err := n.Enclose(pid); err != nil {
		return err
	}
	if err := n.Connect(pid); err != nil {
		return err
	}
	if err := forward(s.fromPods(n.APIPort), loopback(n.APIPort)); err != nil {
		return err
	}
	close(s.linked)
	return s.sendToNode(node.Connected)
}

// finishRealNode does the steps that need the API server.
func (s *Supervisor) finishRealNode(ctx context.Context, n node.Node) error {
	if err := s.sendToNode(node.APIReady); err != nil {
		return err
	}
	if err := n.InstallDNS(ctx); err != nil {
		return err
	}
	err := s.progress.Step("containerd, kubelet and kube-proxy", func() error {
		return control.WaitForNode(ctx, s.client, node.Name)
	})
	if err != nil {
		return err
	}
	return s.progress.Step("cluster DNS", func() error { return node.WaitForDNS(ctx, n.Plan) })
}

func (s *Supervisor) sendToNode(line string) error {
	if _, err := fmt.Fprintln(s.nodeInput, line); err != nil {
		return fmt.Errorf("sending to the node: %w", err)
	}
	return nil
}

// startSimulatedNode starts a node and waits until it accepts pods.
func (s *Supervisor) startSimulatedNode(ctx context.Context) error {
	s.update(func(state *layout.State) { state.Node.Name = simulated.Name })
	if err := simulated.Write(s.dir); err != nil {
		return err
	}
	if err := reached(ctx, s.apiReady); err != nil {
		return err
	}
	return s.progress.Step("simulated node", func() error {
		if _, err := s.group.Start(simulated.Program(s.dir, s.plane.Binary, s.plane.Plan)); err != nil {
			return err
		}
		if err := simulated.Create(ctx, s.dir, s.plane.Binary); err != nil {
			return err
		}
		return control.WaitForNode(ctx, s.client, simulated.Name)
	})
}
