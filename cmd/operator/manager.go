package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/fluxcd/pkg/runtime/logger"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/kubeop/kubeop/delivery/release"
	"github.com/kubeop/kubeop/internal/config"
	"github.com/kubeop/kubeop/internal/hook"
	"github.com/kubeop/kubeop/internal/version"
)

func setLogger(c *config.Operator) {
	logger.SetLogger(logger.NewLogger(logger.Options{LogEncoding: c.LogFormat, LogLevel: c.LogLevel}))
}

// newManager connects to the API server. There is no limit on requests by the client: the API server's own priority and
// fairness is the one place that knows how busy it is.
func newManager(c *config.Operator, scheme *runtime.Scheme) (manager.Manager, error) {
	rest, err := ctrl.GetConfig()
	if err != nil {
		return nil, fmt.Errorf("finding the cluster: %w", err)
	}
	rest.QPS, rest.Burst = -1, -1
	rest.UserAgent = "kubeop/" + version.Version
	consistent := true
	mgr, err := ctrl.NewManager(rest, ctrl.Options{
		Scheme:                        scheme,
		Metrics:                       metricsserver.Options{BindAddress: c.MetricsAddr, ExtraHandlers: map[string]http.Handler{"/version": version.Handler()}},
		HealthProbeBindAddress:        c.HealthAddr,
		LeaderElection:                c.LeaderElect,
		LeaderElectionID:              "kubeop-operator",
		LeaderElectionNamespace:       c.Namespace,
		LeaderElectionReleaseOnCancel: true,
		GracefulShutdownTimeout:       &c.GracefulTimeout,
		// A Reconcile reads what the one before it wrote, or waits for the cache to have it.
		Client: client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: &consistent}},
	})
	if err != nil {
		return nil, fmt.Errorf("connecting to the cluster: %w", err)
	}
	return mgr, nil
}

// addRunnables adds what runs beside the controllers: probes, the push hook, and the drain that lets a running Helm action
// end before the lease is given up.
func addRunnables(mgr manager.Manager, c *config.Operator, engine *release.Engine) error {
	err := errors.Join(
		mgr.AddHealthzCheck("ping", healthz.Ping),
		mgr.AddReadyzCheck("caches", func(*http.Request) error { return synced(mgr) }),
		mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
			<-ctx.Done()
			limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.GracefulTimeout)
			defer cancel()
			return engine.Drain(limit)
		})),
	)
	if err != nil || c.HookAddr == "0" {
		return err
	}
	listener, err := net.Listen("tcp", c.HookAddr)
	if err != nil {
		return fmt.Errorf("listening for push hooks on HOOK_ADDR %s: %w", c.HookAddr, err)
	}
	return mgr.Add(&hook.Server{
		Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), Namespace: c.Namespace,
		Listener: listener, Clock: clock.RealClock{}, Log: ctrl.Log.WithName("hook"),
	})
}

// synced reports an error until the caches hold what the API server has.
func synced(mgr manager.Manager) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if !mgr.GetCache().WaitForCacheSync(ctx) {
		return errors.New("the caches are not filled yet")
	}
	return nil
}
