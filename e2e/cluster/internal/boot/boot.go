package boot

import (
	"context"
	"fmt"
	"os"

	"golang.org/x/sync/errgroup"

	"github.com/kubeop/kubeop/e2e/cluster/internal/control"
	"github.com/kubeop/kubeop/e2e/cluster/internal/layout"
	"github.com/kubeop/kubeop/e2e/cluster/internal/network"
	"github.com/kubeop/kubeop/e2e/cluster/internal/node"
	"github.com/kubeop/kubeop/e2e/cluster/internal/pki"
	"github.com/kubeop/kubeop/e2e/cluster/internal/ports"
)

// boot starts all components: as many as possible in parallel, and each after those that it needs.
func (s *Supervisor) boot(ctx context.Context) error {
	if err := s.prepare(); err != nil {
		return err
	}
	s.apiReady, s.linked = make(chan struct{}), make(chan struct{})
	work, ctx := errgroup.WithContext(ctx)
	work.Go(func() error { return s.startControlPlane(ctx) })
	work.Go(func() error { return s.startServers(ctx) })
	switch s.options.Node {
	case layout.Real:
		work.Go(func() error { return s.startRealNode(ctx) })
	case layout.Simulated:
		close(s.linked)
		work.Go(func() error { return s.startSimulatedNode(ctx) })
	default:
		close(s.linked)
	}
	return work.Wait()
}

// prepare chooses addresses and writes keys and configuration.
func (s *Supervisor) prepare() error {
	binary, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding the cluster binary: %w", err)
	}
	reserved, err := ports.Reserve(3)
	if err != nil {
		return err
	}
	s.registryPort, s.gitPort = reserved[1], reserved[2]
	s.plane = control.Plane{
		Dir: s.dir, Binary: binary, Plan: network.Default(), Audit: s.options.Audit, Kubernetes: s.options.Kubernetes,
		APIPort: reserved[0], RealNode: s.options.Node == layout.Real,
	}
	if s.plane.RealNode {
		if s.plane.Plan, err = node.ChoosePlan(); err != nil {
			return err
		}
	}
	if err := s.makeKeys(); err != nil {
		return err
	}
	s.update(func(state *layout.State) {
		state.APIServer, state.AuditLog = s.plane.Server(), s.plane.AuditLog()
	})
	return s.plane.WriteConfig()
}

func (s *Supervisor) makeKeys() error {
	request := pki.Request{
		Server: s.plane.Server(), NodeServer: s.plane.NodeServer(),
		Hosts: []string{s.plane.Plan.API().String(), s.plane.Plan.Host.String()},
	}
	if s.plane.RealNode {
		request.NodeName, request.NodeAddress = node.Name, s.plane.Plan.Node.String()
	}
	return pki.Make(s.dir, request)
}

// startControlPlane returns when the API server is ready and the controllers work.
func (s *Supervisor) startControlPlane(ctx context.Context) error {
	client, err := control.Client(s.dir.Kubeconfig())
	if err != nil {
		return err
	}
	s.client = client
	err = s.progress.Step("etcd and kube-apiserver", func() error {
		if _, err := s.group.Start(s.plane.Etcd()); err != nil {
			return err
		}
		if _, err := s.group.Start(s.plane.APIServer()); err != nil {
			return err
		}
		return control.WaitForAPI(ctx, client)
	})
	if err != nil {
		return err
	}
	close(s.apiReady)
	name := "kube-controller-manager"
	if s.options.Node != layout.None {
		name += " and kube-scheduler"
	}
	return s.progress.Step(name, func() error {
		if _, err := s.group.Start(s.plane.ControllerManager()); err != nil {
			return err
		}
		if s.options.Node != layout.None {
			if _, err := s.group.Start(s.plane.Scheduler()); err != nil {
				return err
			}
		}
		return control.WaitForControllers(ctx, client)
	})
}

// startServers starts the servers that the options request.
func (s *Supervisor) startServers(ctx context.Context) error {
	if err := reached(ctx, s.linked); err != nil {
		return err
	}
	if s.options.Registry {
		if err := s.startRegistry(ctx); err != nil {
			return err
		}
	}
	if s.options.Git {
		return s.startGit(ctx)
	}
	return nil
}

// reached waits until another goroutine of the boot has reached a point.
func reached(ctx context.Context, point <-chan struct{}) error {
	select {
	case <-point:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
