package boot

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/kubeop/kubeop/e2e/cluster/internal/gitserver"
	"github.com/kubeop/kubeop/e2e/cluster/internal/layout"
	"github.com/kubeop/kubeop/e2e/cluster/internal/ports"
	"github.com/kubeop/kubeop/e2e/cluster/internal/registry"
)

// The registry and the Git server run inside the supervisor, because they are small and should end with it.

// startRegistry serves the registry on the reserved port.
func (s *Supervisor) startRegistry(ctx context.Context) error {
	log, err := s.openLog("registry")
	if err != nil {
		return err
	}
	handler, err := registry.New(s.dir.Path("registry"), log)
	if err != nil {
		return err
	}
	if err := s.serve(ctx, s.registryPort, handler); err != nil {
		return err
	}
	s.update(func(state *layout.State) {
		state.Registry = &layout.Registry{Host: loopback(s.registryPort), Pods: s.fromPods(s.registryPort)}
	})
	return nil
}

// startGit serves the Git repositories on the reserved port.
func (s *Supervisor) startGit(ctx context.Context) error {
	log, err := s.openLog("git")
	if err != nil {
		return err
	}
	store, password := gitserver.Open(s.dir.Path("git")), rand.Text()
	if err := store.Init(password); err != nil {
		return err
	}
	server, err := gitserver.NewServer(store, log)
	if err != nil {
		return err
	}
	if err := s.serve(ctx, s.gitPort, server); err != nil {
		return err
	}
	git := &layout.Git{Host: "http://" + loopback(s.gitPort), AdminUser: gitserver.AdminUser, AdminPassword: password}
	if pods := s.fromPods(s.gitPort); pods != "" {
		git.Pods = "http://" + pods
	}
	s.update(func(state *layout.State) { state.Git = git })
	return nil
}

// serve listens on loopback and, if there is a real node, also on the host's end of the link to it.
func (s *Supervisor) serve(ctx context.Context, port int, handler http.Handler) error {
	addresses := []string{loopback(port)}
	if pods := s.fromPods(port); pods != "" {
		addresses = append(addresses, pods)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	for _, address := range addresses {
		listener, err := ports.Listen(address)
		if err != nil {
			return err
		}
		go func() {
			if err := server.Serve(listener); ctx.Err() == nil {
				logf("serving %s: %v", address, err)
			}
		}()
	}
	return nil
}

// forward makes a port on loopback reachable from the node, because the API server listens on only one address.
func forward(from, to string) error {
	listener, err := ports.Listen(from)
	if err != nil {
		return err
	}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				logf("forwarding %s: %v", from, err)
				return
			}
			go join(conn, to)
		}
	}()
	return nil
}

// join copies both ways until one side ends.
func join(conn net.Conn, to string) {
	defer conn.Close()
	target, err := net.Dial("tcp", to)
	if err != nil {
		return // the target's end is already in the log
	}
	defer target.Close()
	done := make(chan struct{}, 2)
	for _, pair := range [][2]net.Conn{{conn, target}, {target, conn}} {
		go func() {
			_, _ = io.Copy(pair[0], pair[1])
			done <- struct{}{}
		}()
	}
	<-done
}

// fromPods returns the address of a host's port for pods, or "" if no pods run.
func (s *Supervisor) fromPods(port int) string {
	if !s.plane.RealNode {
		return ""
	}
	return fmt.Sprintf("%s:%d", s.plane.Plan.Host, port)
}

func loopback(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }

func (s *Supervisor) openLog(name string) (*os.File, error) {
	log, err := os.OpenFile(s.dir.Log(name), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the log of %s: %w", name, err)
	}
	return log, nil
}
