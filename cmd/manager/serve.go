package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher/metrics"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/cmd/manager/repositories"
	"github.com/kubeop/kubeop/delivery/fetch/disk"
	"github.com/kubeop/kubeop/delivery/fetch/git"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
	"github.com/kubeop/kubeop/internal/config"
	"github.com/kubeop/kubeop/internal/kms"
	"github.com/kubeop/kubeop/internal/manager/api"
	"github.com/kubeop/kubeop/internal/manager/leader"
	"github.com/kubeop/kubeop/internal/manager/live"
	"github.com/kubeop/kubeop/internal/manager/oidc"
	"github.com/kubeop/kubeop/internal/manager/readiness"
	"github.com/kubeop/kubeop/internal/manager/server"
	"github.com/kubeop/kubeop/internal/manager/signing"
	"github.com/kubeop/kubeop/internal/manager/tokens"
	"github.com/kubeop/kubeop/internal/store"
)

// manager is a manager that listens.
type manager struct {
	config       *config.Manager
	checks       *readiness.Checks
	api, health  *server.Server
	store        store.Store
	cluster      *live.Cluster
	repositories *repositories.Repositories
	signing      *signing.Keys
	issuers      *oidc.Issuers
	leader       *leader.Elector
	hooks        *hooks
	pods         corev1client.PodsGetter
	certificates *certwatcher.CertWatcher
}

// listen opens the store and the addresses, so that a wrong setting is found before anything runs.
func listen(ctx context.Context, c *config.Manager, cluster *rest.Config) (_ *manager, err error) {
	m := &manager{config: c, checks: readiness.New(ctrl.Log.WithName("readiness"), time.Now)}
	if m.issuers, err = openIssuers(c); err != nil {
		return nil, err
	}
	if m.cluster, err = live.NewCluster(ctx, cluster, followedByHooks(c)...); err != nil {
		return nil, err
	}
	m.cluster.Owners.Administer(c.OIDC.Admins.Users, c.OIDC.Admins.Groups)
	if m.pods, err = corev1client.NewForConfig(forLogs(cluster)); err != nil {
		return nil, fmt.Errorf("making the client for logs: %w", err)
	}
	if m.repositories, err = openRepositories(c, cluster, m.cluster); err != nil {
		return nil, err
	}
	if m.store, err = openStore(ctx, c); err != nil {
		return nil, err
	}
	m.leader = &leader.Elector{Leads: m.store, Log: ctrl.Log.WithName("leader")}
	m.signing = &signing.Keys{Issuer: cmp.Or(c.PublicURL, "kubeop-manager"), File: c.KeyFile, Store: m.store, Now: time.Now}
	if c.KeyFile != "" {
		if _, err := kms.Read(c.KeyFile); err != nil {
			return nil, errors.Join(fmt.Errorf("KEY_FILE: %w", err), m.store.Close())
		}
		m.checks.Add("signing-keys", m.signing.Check)
	}
	if m.hooks, err = openHooks(c, cluster.Host, m.store, m.cluster); err != nil {
		return nil, errors.Join(err, m.store.Close())
	}
	if err := m.listen(); err != nil {
		return nil, errors.Join(err, m.store.Close())
	}
	return m, nil
}

func (m *manager) listen() error {
	c := m.config
	m.checks.Add("store", m.store.Ping)
	m.checks.Add("caches", m.cluster.Following)
	for _, url := range m.issuers.URLs() {
		m.checks.Add("issuer "+url, func(context.Context) error { return m.issuers.Check(url) })
	}
	registry := prometheus.NewRegistry()
	behind := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "kubeop_manager_caches_behind_seconds", Help: "How long the caches do not follow the API server, so that reads are answered as it was then; 0 while they follow it.",
	}, func() float64 { return m.cluster.Behind().Seconds() })
	registry.MustRegister(behind, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), m.checks, metrics.ReadCertificateTotal, metrics.ReadCertificateErrors)
	m.hooks.register(registry)
	proxies, err := c.Proxies()
	if err != nil {
		return err
	}
	handler, err := api.New(api.Options{
		Log: ctrl.Log.WithName("api"), Registry: registry, Checks: m.checks, Store: m.store, Signing: m.signing, Issuers: m.issuers, Owners: m.cluster.Owners, Live: &live.Operations{Index: m.cluster.Index, Synced: m.cluster.Synced}, Repositories: m.repositories, Pods: m.pods, Webhooks: m.hooks.api(),
		RequestsPerSecond: c.RequestsPerSecond, Burst: c.Burst, Proxies: proxies, Now: time.Now,
	})
	if err != nil {
		return err
	}
	m.api = &server.Server{Name: "api", Handler: handler, Grace: c.GracefulTimeout, Log: ctrl.Log}
	m.health = &server.Server{Name: "health", Handler: api.NewHealth(m.checks, registry), Grace: time.Second, Log: ctrl.Log}
	if err := m.readCertificate(); err != nil {
		return err
	}
	if m.api.Listener, err = net.Listen("tcp", c.APIAddr); err != nil {
		return fmt.Errorf("listening on API_ADDR %s: %w", c.APIAddr, err)
	}
	if m.health.Listener, err = net.Listen("tcp", c.HealthAddr); err != nil {
		return errors.Join(fmt.Errorf("listening on HEALTH_ADDR %s: %w", c.HealthAddr, err), m.api.Listener.Close())
	}
	return nil
}

// openIssuers returns the issuers of ID tokens. They are asked later, so that nothing depends on them but who signs in by them.
func openIssuers(c *config.Manager) (*oidc.Issuers, error) {
	var all []oidc.Settings
	for _, issuer := range c.OIDC.Issuers {
		all = append(all, oidc.Settings(issuer))
	}
	issuers, err := oidc.New(all, time.Now)
	if err != nil {
		return nil, fmt.Errorf("OIDC: %w", err)
	}
	return issuers, nil
}

// openRepositories returns the repositories of a cluster. Their credentials are read when they are needed.
func openRepositories(c *config.Manager, cluster *rest.Config, objects *live.Cluster) (*repositories.Repositories, error) {
	allowed, err := c.Allowed()
	if err != nil {
		return nil, err
	}
	scheme, mapper := runtime.NewScheme(), meta.NewDefaultRESTMapper(nil)
	if err := corev1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	// The kind is known, so a start does not depend on the API server.
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Secret"), meta.RESTScopeNamespace)
	secrets, err := client.New(cluster, client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("making the client for Secrets: %w", err)
	}
	dir := cmp.Or(c.CacheDir, filepath.Join(c.DataDir, "git"))
	return repositories.New(objects.Reader(), secrets, c.Namespace, openGit(dir, &transport.Network{Allowed: allowed})), nil
}

// The bounds of what is fetched of repositories, in bytes: of one tenant, which is also how much one pack may inflate to, and of all. They hold files of kubeop, so they are small, and
// packs are read in this process. The chart's folder for them is larger.
const (
	maxFetched    = 256 << 20
	maxAllFetched = 768 << 20
	maxFiles      = 20_000
)

// openGit returns the store of what is fetched of repositories.
func openGit(dir string, network *transport.Network) *git.Store {
	store := git.NewStore(dir, network)
	store.Disk = disk.New(time.Now, store)
	store.Disk.Limits = disk.Limits{Bytes: maxFetched, Total: maxAllFetched, Files: maxFiles}
	store.Disk.Find(dir)
	store.LimitPacks(func(string) int64 { return maxFetched })
	return store
}

// hourly runs do every hour, until the context ends. Its errors are logged.
func hourly(ctx context.Context, what string, do func(context.Context) error) error {
	again := time.NewTicker(time.Hour)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-again.C:
			if err := do(ctx); err != nil && ctx.Err() == nil {
				ctrl.Log.Error(err, what)
			}
		}
	}
}

// sweep removes what was fetched and not used for days, of this manager's.
func (m *manager) sweep(ctx context.Context) error {
	return hourly(ctx, "Removing what was fetched and is not used", func(ctx context.Context) error {
		return errors.Join(m.repositories.Git.Disk.Sweep(ctx), m.repositories.Forget(ctx))
	})
}

// sweepStore removes what ended from the store, at once and then every hour: a lead may be lost more often.
func (m *manager) sweepStore(ctx context.Context) error {
	const what = "Removing what ended from the store"
	sweep := func(ctx context.Context) error { return m.store.Sweep(ctx, time.Now()) }
	if err := sweep(ctx); err != nil && ctx.Err() == nil {
		ctrl.Log.Error(err, what)
	}
	return hourly(ctx, what, sweep)
}

// forLogs returns the configuration of the client that reads logs. A stream of HTTP/2 takes up to 4 MiB before anybody reads it, and there are up to fifty for one
// caller. The kubelets and the API server answer only so many reads of logs a second.
func forLogs(cluster *rest.Config) *rest.Config {
	of := rest.CopyConfig(cluster)
	of.NextProtos = []string{"http/1.1"}
	of.QPS, of.Burst = 50, 200
	return of
}

// offerSetup logs the code for the first administrator, unless there is one: the holder of a token, or people of an issuer.
func (m *manager) offerSetup(ctx context.Context) error {
	if admins := m.config.OIDC.Admins; len(m.issuers.URLs()) > 0 && len(admins.Users)+len(admins.Groups) > 0 {
		return nil
	}
	code, expires, err := (&tokens.Operations{Store: m.store, Now: time.Now}).OfferSetup(ctx)
	if err != nil || code == "" {
		return err
	}
	ctrl.Log.Info("There is no administrator yet. POST /v1/setup with this code answers a token with the scope admin, once.", "code", code, "expires", expires)
	return nil
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

// serve serves until the context ends or an address fails. Probes are answered until the API has stopped.
func (m *manager) serve(ctx context.Context) (err error) {
	defer func() { err = errors.Join(err, m.store.Close()) }()
	// A stop that comes this early is no failure.
	if err := m.offerSetup(ctx); err != nil && ctx.Err() == nil {
		return errors.Join(err, m.api.Listener.Close(), m.health.Listener.Close())
	}
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
	group.Go(func() error {
		defer cancel()
		return m.cluster.Start(finished)
	})
	group.Go(func() error { return m.sweep(finished) })
	group.Go(func() error { return m.leader.Run(finished, "sweep", m.sweepStore) })
	group.Go(func() error { return m.hooks.run(logr.NewContext(ctx, ctrl.Log.WithName("webhooks")), m.leader) })
	group.Go(func() error { return m.signing.Run(logr.NewContext(finished, ctrl.Log.WithName("signing"))) })
	group.Go(func() error { return m.issuers.Run(logr.NewContext(finished, ctrl.Log.WithName("oidc"))) })
	if m.certificates != nil {
		group.Go(func() error {
			defer cancel()
			return m.certificates.Start(finished)
		})
	}
	<-ctx.Done()
	m.checks.Stop()
	select {
	case <-time.After(m.config.DrainDelay):
	case <-finished.Done(): // The API failed, so there is nothing to drain.
	}
	stopAPI()
	return group.Wait()
}
