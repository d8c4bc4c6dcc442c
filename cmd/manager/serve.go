package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"golang.org/x/sync/errgroup"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"

	"github.com/kubeop/kubeop/internal/config"
	"github.com/kubeop/kubeop/internal/manager/api"
	"github.com/kubeop/kubeop/internal/manager/readiness"
	"github.com/kubeop/kubeop/internal/manager/server"
)

// manager is a manager that listens.
type manager struct {
	config       *config.Manager
	checks       *readiness.Checks
	api, health  *server.Server
	certificates *certwatcher.CertWatcher
}

// listen opens the addresses, so that a wrong one is found before anything runs.
func listen(c *config.Manager) (*manager, error) {
	m := &manager{config: c, checks: &readiness.Checks{}}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	handler, err := api.New(api.Options{
		Log: ctrl.Log.WithName("api"), Registry: registry, Checks: m.checks, RequestsPerSecond: c.RequestsPerSecond, Burst: c.Burst, Now: time.Now,
	})
	if err != nil {
		return nil, err
	}
	m.api = &server.Server{Name: "api", Handler: handler, Grace: c.GracefulTimeout, Log: ctrl.Log}
	m.health = &server.Server{Name: "health", Handler: api.NewHealth(m.checks, registry), Grace: time.Second, Log: ctrl.Log}
	if err := m.readCertificate(); err != nil {
		return nil, err
	}
	if m.api.Listener, err = net.Listen("tcp", c.APIAddr); err != nil {
		return nil, fmt.Errorf("listening on API_ADDR %s: %w", c.APIAddr, err)
	}
	if m.health.Listener, err = net.Listen("tcp", c.HealthAddr); err != nil {
		return nil, errors.Join(fmt.Errorf("listening on HEALTH_ADDR %s: %w", c.HealthAddr, err), m.api.Listener.Close())
	}
	return m, nil
}

func (m *manager) readCertificate() (err error) {
	if m.config.TLSCertDir == "" {
		return nil
	}
	certificate, key := filepath.Join(m.config.TLSCertDir, "tls.crt"), filepath.Join(m.config.TLSCertDir, "tls.key")
	if m.certificates, err = certwatcher.New(certificate, key); err != nil {
		return fmt.Errorf("reading the certificate in TLS_CERT_DIR: %w", err)
	}
	m.api.TLS = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: m.certificates.GetCertificate}
	return nil
}

// errStopping is why a stopping manager is not ready.
var errStopping = errors.New("the manager is stopping")

// serve serves until the context ends or an address fails. Probes are answered until the API has stopped.
func (m *manager) serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	drained, stopAPI := context.WithCancel(context.WithoutCancel(ctx))
	defer stopAPI()
	finished, stopHealth := context.WithCancel(context.WithoutCancel(ctx))
	defer stopHealth()
	var group errgroup.Group
	// Whatever ends first ends the others.
	group.Go(func() error {
		defer cancel()
		defer stopHealth()
		return m.api.Serve(drained)
	})
	group.Go(func() error {
		defer cancel()
		return m.health.Serve(finished)
	})
	if m.certificates != nil {
		group.Go(func() error {
			defer cancel()
			return m.certificates.Start(finished)
		})
	}
	<-ctx.Done()
	m.checks.Add("stopping", func(context.Context) error { return errStopping })
	select {
	case <-time.After(m.config.DrainDelay):
	case <-finished.Done(): // The API failed, so there is nothing to drain.
	}
	stopAPI()
	return group.Wait()
}
