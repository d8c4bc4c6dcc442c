// Package controllers sets up everything the operator runs.
package controllers

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/app"
	"github.com/kubeop/kubeop/controllers/project"
	"github.com/kubeop/kubeop/controllers/repository"
	"github.com/kubeop/kubeop/controllers/tenant"
	"github.com/kubeop/kubeop/controllers/volumes"
	"github.com/kubeop/kubeop/delivery/apart"
	"github.com/kubeop/kubeop/delivery/apply"
	"github.com/kubeop/kubeop/delivery/build"
	"github.com/kubeop/kubeop/delivery/fetch/image"
	"github.com/kubeop/kubeop/delivery/journal"
	"github.com/kubeop/kubeop/delivery/quota"
	"github.com/kubeop/kubeop/delivery/release"
	"github.com/kubeop/kubeop/delivery/render"
	"github.com/kubeop/kubeop/delivery/trials"
	"github.com/kubeop/kubeop/internal/digestkey"
)

// sweepEvery is the time between two searches for what nobody uses any more in the stores.
const sweepEvery = time.Hour

// Options are the settings of the controllers.
type Options struct {
	// DataDir holds the local stores of Git objects and charts.
	DataDir string
	// Namespace is the operator's own, which holds the credentials of repositories.
	Namespace string
	// Concurrency is how many objects of each kind are reconciled at once for one tenant, and half of how many are for all; HelmWorkers
	// how many Helm actions run at once.
	Concurrency, HelmWorkers int
	// Evaluate has what tenants wrote evaluated in processes of their own. Trials and BuildTrials are where it is remembered which charts,
	// and which manifests, cannot be; see release.Options and build.Builder.
	Evaluate            func(ctx context.Context, c apart.Call) ([]byte, error)
	Trials, BuildTrials string
	// EvaluateProcesses is how many evaluations run at once, shared by tenant. 0: there is no limit but that of the callers.
	EvaluateProcesses int
	// TenantLimits are those of tenants whose Tenant does not set them.
	TenantLimits v1alpha1.TenantLimits
	// IngressNamespace is the namespace of the ingress controller, which may reach every project's pods; "" lets none in.
	IngressNamespace string
	// AllowedAddresses may be reached by the URLs of tenants although they are refused by default, see fetch.Network.
	AllowedAddresses []netip.Prefix
	// ClusterNetworks are the networks of pods, Services and nodes as administrators know them; none: every private network may be one.
	ClusterNetworks []netip.Prefix
	// TokenServices are the hosts that are sent the credentials of registries, by registry, see fetch.Network.
	TokenServices map[string]string
	// OwnService is the name of the operator's Service, which they may not reach; "" when there is none.
	OwnService string
	// FluxArtifactHosts are the hosts of artifacts of Flux's sources, see artifact.Store.
	FluxArtifactHosts []string
	// Gateway is the Gateway that serves the hosts of Image apps, as "namespace/name" or "namespace/name/section"; "" leaves
	// them to an Ingress.
	Gateway string
	// PlainRegistries are the registries, as host or host:port, that image policies ask without TLS.
	PlainRegistries []string
	// FlowControl: the API server has the priority levels of the chart, and each tenant is to have FlowSchemas.
	FlowControl bool
	// Deployment is the name of the operator's own Deployment, in its namespace: while that is being deleted, or gone, kubeop is
	// being uninstalled and nothing is removed. "" where it runs as none.
	Deployment string
	// DigestKey seals the digests that statuses tell; nil tells them as they are.
	DigestKey *digestkey.Key
	// Platform is where the platform repository is; without a URL whoever applies the Repository named platform decides.
	Platform repository.Platform
}

// ManagerOptions are what the controllers rely on in their manager: a Reconcile reads what the one before it wrote, or waits for
// the cache to have it; and the cache holds of the fields' owners those that matter here.
func ManagerOptions(scheme *runtime.Scheme) ctrl.Options {
	consistent := true
	return ctrl.Options{
		Scheme: scheme,
		Client: client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: &consistent}},
		Cache: cache.Options{DefaultTransform: apply.SlimFields, ByObject: map[client.Object]cache.ByObject{
			// It says what tenants' accounts can create. No other role is read from the cache.
			&rbacv1.ClusterRole{}: {Field: fields.OneTermEqualSelector("metadata.name", v1alpha1.Deployer)},
		}},
	}
}

// Setup adds every controller to the manager: the one list of what the operator runs. The Engine it returns is to be
// drained before the process ends.
func Setup(mgr ctrl.Manager, o Options) (*release.Engine, error) {
	if err := installed(mgr.GetRESTMapper()); err != nil {
		return nil, err
	}
	spreadIntervals()
	s, err := newShared(mgr, o)
	if err == nil {
		err = s.bound()
	}
	if err != nil {
		return nil, err
	}
	if err := errors.Join(register(&states{reader: mgr.GetClient(), elected: mgr.Elected()}), register(s.fetches), registerQueues(), register(s.usages())); err != nil {
		return nil, fmt.Errorf("registering metrics: %w", err)
	}
	repositories, err := s.repositories()
	if err != nil {
		return nil, err
	}
	released := s.engine()
	kinds := &quota.Kinds{Roles: mgr.GetClient(), Served: s.served, Now: s.clock.Now}
	tenants := &tenant.Reconciler{
		Client: mgr.GetClient(), Direct: s.direct, Watch: s.watch, Applier: s.applier, Steps: s.steps("tenant"),
		Kinds: kinds, FlowControl: o.FlowControl,
	}
	projects := &project.Reconciler{
		Client: mgr.GetClient(), Direct: s.direct, Watch: s.watch, Applier: s.applier, Clients: s.clients, Forget: s.forget,
		Steps: s.steps("project"), IngressNamespace: o.IngressNamespace, Networks: s.own, Refusals: repositories.Refusals, Kinds: kinds, Store: s.store,
	}
	apps := &app.Reconciler{
		Client: mgr.GetClient(), Direct: s.direct, Clients: s.clients, Applier: s.applier, Releases: s.releases,
		Builder: &build.Builder{Apart: s.apart, Trials: trials.New(o.BuildTrials, "these manifests"), Log: mgr.GetLogger().WithName("build")},
		Journal: journal.New(s.direct, o.Namespace, s.clock.Now),
		Watch:   s.watch, Version: s.local.Version, OnChange: s.local.OnChange, Explainer: s.explainer,
		Steps: s.steps("app"), Weight: s.weights.of, Clock: s.clock, Seal: s.seal, Folder: repositories.Folder, Git: s.stores.Git, Refusals: repositories.Refusals, Limits: s.limits.usual, Store: s.store, Rendered: s.rendered,
		Charts:    s.stores.Charts,
		Artifacts: s.stores.Artifacts,
		Sources:   app.NewSources(s.fetches, s.clock),
		OnServed:  s.onServed,
		Gateway:   render.GatewayOf(o.Gateway),
		Tags:      image.NewStore(s.network, s.clock.Now, o.PlainRegistries, s.apart),
	}
	repositories.WakeApps(apps.Wake)
	s.rendered.Wake = apps.Wake
	retained := &volumes.Reconciler{Direct: s.direct, Watch: s.watch, Events: mgr.GetEventRecorder("kubeop-volumes")}
	for name, setup := range map[string]func() error{
		"volumes":    func() error { return retained.SetupWithManager(mgr, s.options("volumes", byItself)) },
		"repository": func() error { return repositories.SetupWithManager(mgr, s.secrets, s.options("repository", byItself)) },
		"tenant":     func() error { return tenants.SetupWithManager(mgr, s.options("tenant", byItself)) },
		"project":    func() error { return projects.SetupWithManager(mgr, s.options("project", s.tenantOf)) },
		"app":        func() error { return apps.SetupWithManager(mgr, released, s.options("app", s.tenantOf)) },
	} {
		if err := setup(); err != nil {
			return nil, fmt.Errorf("setting up the %s controller: %w", name, err)
		}
	}
	return s.releases, s.background()
}

// installed fails if the API server does not serve the kinds of this API.
func installed(mapper meta.RESTMapper) error {
	for _, name := range []string{v1alpha1.RepositoryKind, v1alpha1.TenantKind, v1alpha1.ProjectKind, v1alpha1.AppKind} {
		kind := v1alpha1.GroupVersion.WithKind(name)
		_, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		switch {
		case meta.IsNoMatchError(err), errors.As(err, new(*apiutil.ErrResourceDiscoveryFailed)):
			return fmt.Errorf("no matches for kind %s of %s: install kubeop's CustomResourceDefinitions, which are in its chart: %w", name, v1alpha1.GroupVersion, err)
		case err != nil:
			return fmt.Errorf("asking whether kind %s is served: %w", name, err)
		}
	}
	return nil
}
