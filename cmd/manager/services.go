package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher/metrics"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/cmd/manager/repositories"
	"github.com/kubeop/kubeop/delivery/fetch/disk"
	"github.com/kubeop/kubeop/delivery/fetch/git"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
	"github.com/kubeop/kubeop/internal/config"
	"github.com/kubeop/kubeop/internal/fence"
	"github.com/kubeop/kubeop/internal/kms"
	"github.com/kubeop/kubeop/internal/manager/api"
	"github.com/kubeop/kubeop/internal/manager/invoices"
	"github.com/kubeop/kubeop/internal/manager/kubeconfigs"
	"github.com/kubeop/kubeop/internal/manager/leader"
	"github.com/kubeop/kubeop/internal/manager/live"
	"github.com/kubeop/kubeop/internal/manager/oidc"
	"github.com/kubeop/kubeop/internal/manager/readiness"
	"github.com/kubeop/kubeop/internal/manager/sampler"
	"github.com/kubeop/kubeop/internal/manager/signing"
	"github.com/kubeop/kubeop/internal/store"
)

// services are what the API is made of.
type services struct {
	store        store.Store
	cluster      *live.Cluster
	repositories *repositories.Repositories
	signing      *signing.Keys
	issuers      *oidc.Issuers
	leader       *leader.Elector
	hooks        *hooks
	sampler      *sampler.Follower
	payers       *invoices.Roster
	budgets      *invoices.Budgets
	pods         corev1client.PodsGetter
	kubeconfigs  *kubeconfigs.Operations
}

// openServices opens the store, and what needs no connection before it is used.
func openServices(ctx context.Context, c *config.Manager, cluster *rest.Config) (*services, error) {
	issuers, err := openIssuers(c)
	if err != nil {
		return nil, err
	}
	objects, err := live.NewCluster(ctx, cluster, followedByHooks(c)...)
	if err != nil {
		return nil, err
	}
	objects.Owners.Administer(c.OIDC.Admins.Users, c.OIDC.Admins.Groups)
	pods, err := corev1client.NewForConfig(forLogs(cluster))
	if err != nil {
		return nil, fmt.Errorf("making the client for logs: %w", err)
	}
	forPeople, err := openKubeconfigs(c, cluster)
	if err != nil {
		return nil, err
	}
	written, err := openRepositories(c, cluster, objects)
	if err != nil {
		return nil, err
	}
	opened, err := openStore(ctx, c)
	if err != nil {
		return nil, err
	}
	if c.KeyFile != "" {
		if _, err := kms.Read(c.KeyFile); err != nil {
			return nil, errors.Join(fmt.Errorf("KEY_FILE: %w", err), opened.Close())
		}
	}
	hooks, err := openHooks(c, cluster.Host, opened, objects)
	if err != nil {
		return nil, errors.Join(err, opened.Close())
	}
	budgets, err := openBudgets(c, cluster, opened, objects)
	if err != nil {
		return nil, errors.Join(err, opened.Close())
	}
	payers := &invoices.Roster{Reader: objects.Reader(), Store: opened, Following: objects.Following, Now: time.Now}
	objects.Changed = func(object client.Object) {
		payers.Changed(object)
		hooks.changed(object)
	}
	return &services{
		store: opened, cluster: objects, repositories: written, issuers: issuers, hooks: hooks, payers: payers, budgets: budgets, pods: pods, kubeconfigs: forPeople,
		signing: &signing.Keys{Issuer: cmp.Or(c.PublicURL, "kubeop-manager"), File: c.KeyFile, Store: opened, Now: time.Now},
		sampler: &sampler.Follower{Cluster: c.UsageCluster, Store: opened, Config: cluster, Clocks: fence.SystemClock()},
		leader:  &leader.Elector{Leads: opened, Log: ctrl.Log.WithName("leader")},
	}, nil
}

// readiness returns what /readyz asks.
func (s *services) readiness(c *config.Manager) *readiness.Checks {
	checks := readiness.New(ctrl.Log.WithName("readiness"), time.Now)
	if c.KeyFile != "" {
		checks.Add("signing-keys", s.signing.Check)
	}
	checks.Add("store", s.store.Ping)
	checks.Add("caches", s.cluster.Following)
	if c.UsageCluster != "" {
		checks.Add("usage", s.sampler.Check)
	}
	s.hooks.check(checks)
	for _, url := range s.issuers.URLs() {
		checks.Add("issuer "+url, func(context.Context) error { return s.issuers.Check(url) })
	}
	return checks
}

// metrics returns those of the process and the caches.
func (s *services) metrics() *prometheus.Registry {
	registry := prometheus.NewRegistry()
	behind := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "kubeop_manager_caches_behind_seconds", Help: "How long the caches do not follow the API server, so that reads are answered as it was then; 0 while they follow it.",
	}, func() float64 { return s.cluster.Behind().Seconds() })
	registry.MustRegister(behind, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), metrics.ReadCertificateTotal, metrics.ReadCertificateErrors)
	registry.MustRegister(s.budgets.Metric)
	s.hooks.register(registry)
	return registry
}

// handler returns the API.
func (s *services) handler(c *config.Manager, checks *readiness.Checks, registry prometheus.Registerer) (http.Handler, error) {
	proxies, err := c.Proxies()
	if err != nil {
		return nil, err
	}
	return api.New(api.Options{
		Log: ctrl.Log.WithName("api"), Registry: registry, Checks: checks, Store: s.store, Signing: s.signing, Issuers: s.issuers, Owners: s.cluster.Owners,
		Live: &live.Operations{Index: s.cluster.Index, Measured: c.UsageCluster, Synced: s.cluster.Synced}, Repositories: s.repositories, Pods: s.pods,
		Optional:          api.Optional{Webhooks: s.hooks.api(), Kubeconfigs: s.kubeconfigs},
		RequestsPerSecond: c.RequestsPerSecond, Burst: c.Burst, Proxies: proxies, Now: time.Now,
	})
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

// The bounds of what is fetched of repositories, in bytes: of one tenant, which is also how much one pack may inflate to, and of all. They
// hold files of kubeop, so they are small, and packs are read in this process. The chart's folder for them is larger.
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

// forLogs returns the configuration of the client that reads logs. A stream of HTTP/2 takes up to 4 MiB before anybody reads it, and there
// are up to fifty for one caller. The kubelets and the API server answer only so many reads of logs a second.
func forLogs(cluster *rest.Config) *rest.Config {
	of := rest.CopyConfig(cluster)
	of.NextProtos = []string{"http/1.1"}
	of.QPS, of.Burst = 50, 200
	return of
}
