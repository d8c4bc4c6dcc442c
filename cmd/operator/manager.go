package main

import (
	"context"
	"fmt"
	"net"

	"github.com/fluxcd/pkg/runtime/logger"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/kubeop/kubeop/controllers"
	"github.com/kubeop/kubeop/internal/config"
	"github.com/kubeop/kubeop/internal/digestkey"
	"github.com/kubeop/kubeop/internal/version"
)

func setLogger(c *config.Operator) {
	logger.SetLogger(logger.NewLogger(logger.Options{LogEncoding: c.LogFormat, LogLevel: c.LogLevel}))
}

// newManager connects to the API server. The client has no rate limit: only the API server's priority and fairness knows how busy it is.
// The returned client may write without being the leader.
func newManager(c *config.Operator, scheme *runtime.Scheme) (manager.Manager, client.Client, error) {
	connection, err := ctrl.GetConfig()
	if err != nil {
		return nil, nil, fmt.Errorf("finding the cluster: %w", err)
	}
	connection.QPS, connection.Burst = -1, -1
	// As in Kubernetes' own controllers: compressing every watch event would cost the API server more than the bytes.
	connection.DisableCompression = true
	connection.UserAgent = "kubeop/" + version.Version
	unfenced := rest.CopyConfig(connection)
	options := controllers.ManagerOptions(scheme)
	options.Metrics = metrics(c)
	options.HealthProbeBindAddress, options.PprofBindAddress = c.HealthAddr, c.PprofAddr
	options.GracefulShutdownTimeout = &c.GracefulTimeout
	events := &leaseEvents{}
	if c.LeaderElect {
		if err := elect(c, connection, events, &options); err != nil {
			return nil, nil, err
		}
	}
	mgr, err := ctrl.NewManager(connection, options)
	if err != nil {
		return nil, nil, fmt.Errorf("connecting to the cluster: %w", err)
	}
	events.recorder = mgr.GetEventRecorder(leaseName)
	free, err := client.New(unfenced, client.Options{
		Scheme: scheme, Mapper: mgr.GetRESTMapper(), Cache: &client.CacheOptions{Reader: mgr.GetCache()},
	})
	if err != nil {
		return nil, nil, fmt.Errorf("connecting to the cluster: %w", err)
	}
	return mgr, free, nil
}

// listenForHook serves the push hook on every replica. The hook reports pushes with the client free.
func listenForHook(c *config.Operator, free client.Client) (controllers.Hook, error) {
	if c.HookAddr == "0" {
		return controllers.Hook{}, nil
	}
	listener, err := net.Listen("tcp", c.HookAddr)
	if err != nil {
		return controllers.Hook{}, fmt.Errorf("listening for push hooks on HOOK_ADDR %s: %w", c.HookAddr, err)
	}
	return controllers.Hook{Listener: listener, Client: free}, nil
}

// digestKey reads the key for digests or creates it. It runs before the election, because all replicas use the same key.
func digestKey(ctx context.Context, c *config.Operator, scheme *runtime.Scheme) (*digestkey.Key, error) {
	connection, err := ctrl.GetConfig()
	if err != nil {
		return nil, fmt.Errorf("finding the cluster: %w", err)
	}
	connection.UserAgent = "kubeop/" + version.Version
	direct, err := client.New(connection, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("connecting to the cluster: %w", err)
	}
	return digestkey.Ensure(ctx, direct, c.Namespace)
}
