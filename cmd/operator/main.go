// Command operator runs kubeop's controllers on the cluster of its kubeconfig, or of the pod that it runs in. Its configuration is the
// environment; internal/config documents the variables.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	_ "time/tzdata" // Time zones of freeze windows, also where the image or the machine has none.

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers"
	"github.com/kubeop/kubeop/delivery/isolation"
	"github.com/kubeop/kubeop/internal/config"
	"github.com/kubeop/kubeop/internal/definitions"
	"github.com/kubeop/kubeop/internal/heap"
	"github.com/kubeop/kubeop/internal/sandbox"
	"github.com/kubeop/kubeop/internal/version"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == sandbox.Command {
		os.Exit(sandbox.Serve(os.Args[2:], functions))
	}
	work := run
	if len(os.Args) > 1 && os.Args[1] == definitions.Command {
		work = applyDefinitions
	}
	if err := work(ctrl.SetupSignalHandler()); err != nil {
		fmt.Fprintln(os.Stderr, "kubeop:", err)
		os.Exit(failure)
	}
}

func run(ctx context.Context) error {
	c, err := config.Load(ctx)
	if err != nil {
		return err
	}
	setLogger(c)
	heap.Tune(c.GCPercent, heap.Small)
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))

	mgr, free, err := newManager(c, scheme)
	if err != nil {
		return err
	}
	settings, err := options(c)
	if err != nil {
		return err
	}
	if settings.DigestKey, err = digestKey(ctx, c, scheme); err != nil {
		return err
	}
	if settings.Hook, err = listenForHook(c, free); err != nil {
		return err
	}
	if settings.Evaluation, err = evaluation(c); err != nil {
		return err
	}
	if err := controllers.Setup(mgr, settings); err != nil {
		return err
	}
	ctrl.Log.Info("Starting kubeop", "version", version.Version, "commit", version.Commit)
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("running the controllers: %w", err)
	}
	return nil
}

// options returns the controllers' part of the configuration.
func options(c *config.Operator) (controllers.Options, error) {
	// Load has checked them.
	allowed, err := c.Allowed()
	cluster, also := c.Cluster()
	tokens, too := c.Tokens()
	limits, as := c.Limits()
	admitted, why := admitted(c)
	return controllers.Options{
		Process:     controllers.Process{DataDir: c.DataDir, Namespace: c.Namespace, Cluster: c.ClusterName, Deployment: c.Deployment, ManagerAccount: c.ManagerAccount, Drain: c.GracefulTimeout},
		Concurrency: c.Concurrency, HelmWorkers: c.HelmWorkers, TenantLimits: limits,
		Admitted: admitted, Gateway: c.Gateway, IngressClass: c.IngressClass, FlowControl: c.FlowControl, OwnerRequests: c.OwnerRequests,
		PlatformApps: c.PlatformApps, Platform: controllers.Platform(c.Platform),
		Network: controllers.Network{
			AllowedAddresses: allowed, ClusterNetworks: cluster, TokenServices: tokens, OwnService: c.Service,
			FluxArtifactHosts: c.FluxArtifactHosts, PlainRegistries: c.PlainRegistries, TrustedRoot: c.TrustedRoot, ClusterNetworkPolicies: c.ClusterNetworkPolicies,
		},
	}, errors.Join(err, also, too, as, why)
}

// admitted returns labels of the namespaces whose pods may reach every project's pods.
func admitted(c *config.Operator) (all []map[string]string, err error) {
	for _, of := range []struct{ name, setting string }{{"INGRESS_NAMESPACE", c.IngressNamespace}, {"MONITORING_NAMESPACE", c.MonitoringNamespace}} {
		marks, why := isolation.Namespaces(of.setting)
		if why != nil {
			err = errors.Join(err, fmt.Errorf("reading %s: %w", of.name, why))
		}
		all = append(all, marks...)
	}
	return all, err
}
