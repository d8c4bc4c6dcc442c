package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"

	"github.com/kubeop/kubeop/internal/config"
	"github.com/kubeop/kubeop/internal/manager/api"
	"github.com/kubeop/kubeop/internal/manager/readiness"
	"github.com/kubeop/kubeop/internal/manager/server"
)

// manager is a manager that listens.
type manager struct {
	*services
	config      *config.Manager
	checks      *readiness.Checks
	api, health *server.Server
	// certificates renews the certificate of the API; nil for plain HTTP.
	certificates *certwatcher.CertWatcher
}

// listen opens what the API needs and the addresses, so that a wrong setting is found before anything runs.
func listen(ctx context.Context, c *config.Manager, cluster *rest.Config) (_ *manager, err error) {
	s, err := openServices(ctx, c, cluster)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.store.Close())
		}
	}()
	checks, registry := s.readiness(c), s.metrics()
	registry.MustRegister(checks)
	handler, err := s.handler(c, checks, registry)
	if err != nil {
		return nil, err
	}
	certificates, overTLS, err := readCertificate(c)
	if err != nil {
		return nil, err
	}
	apiAddr, err := net.Listen("tcp", c.APIAddr)
	if err != nil {
		return nil, fmt.Errorf("listening on API_ADDR %s: %w", c.APIAddr, err)
	}
	healthAddr, err := net.Listen("tcp", c.HealthAddr)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("listening on HEALTH_ADDR %s: %w", c.HealthAddr, err), apiAddr.Close())
	}
	return &manager{
		services: s, config: c, checks: checks, certificates: certificates,
		api:    &server.Server{Name: "api", Listener: apiAddr, Handler: handler, TLS: overTLS, Grace: c.GracefulTimeout, Log: ctrl.Log},
		health: &server.Server{Name: "health", Listener: healthAddr, Handler: api.NewHealth(checks, registry), Grace: time.Second, Log: ctrl.Log},
	}, nil
}

// readCertificate returns the certificate of the API, and how it is served; nil for plain HTTP.
func readCertificate(c *config.Manager) (*certwatcher.CertWatcher, *tls.Config, error) {
	if c.TLSCertDir == "" {
		return nil, nil, nil
	}
	certificates, err := certwatcher.New(filepath.Join(c.TLSCertDir, "tls.crt"), filepath.Join(c.TLSCertDir, "tls.key"))
	if err != nil {
		return nil, nil, fmt.Errorf("reading the certificate in TLS_CERT_DIR: %w", err)
	}
	return certificates, &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: certificates.GetCertificate}, nil
}
