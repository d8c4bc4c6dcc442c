package controllers

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/refusal"
	"github.com/kubeop/kubeop/controllers/repository"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/controllers/usage"
	"github.com/kubeop/kubeop/delivery/apart"
	"github.com/kubeop/kubeop/delivery/apply"
	"github.com/kubeop/kubeop/delivery/digest"
	"github.com/kubeop/kubeop/delivery/fetch"
	"github.com/kubeop/kubeop/delivery/fetch/pool"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
	"github.com/kubeop/kubeop/delivery/health"
	"github.com/kubeop/kubeop/delivery/kube"
	"github.com/kubeop/kubeop/delivery/release"
	"github.com/kubeop/kubeop/gitops/tree"
	"github.com/kubeop/kubeop/internal/clusternet"
	"github.com/kubeop/kubeop/internal/fence"
	"github.com/kubeop/kubeop/internal/steady"
)

// shared is what the controllers have in common.
type shared struct {
	Options
	mgr     ctrl.Manager
	clock   clock.PassiveClock
	direct  client.Client
	objects cache.Cache
	watch   *kube.Watch
	local   *kube.LocalWatch
	applier *apply.Applier
	// releases is set by engine.
	releases *release.Engine
	clients  *kube.Clients
	served   discovery.CachedDiscoveryInterface
	mapper   *kube.Mapper
	stores   *fetch.Stores
	network  *transport.Network
	// own are the networks of the cluster.
	own     *clusternet.Networks
	fetches *pool.Pool
	// secrets has the metadata of the Secrets in the operator's namespace.
	secrets cache.Cache
	seal    digest.Seal

	// queues are the controllers' work queues, by the name of the controller, and weights those of the tenants in them.
	queues  sync.Map
	weights *weights
	// inStep is closed when the watches of what all use are in step.
	inStep chan struct{}
	// apart has what tenants wrote evaluated, the processes for that shared among tenants.
	apart apart.Runner
	// usage and store count what tenants have, and limits are how much they may, all set by bound.
	usage *usage.Counter
	store *usage.Store
	// rendered counts what tenants' apps deliver, set by bound.
	rendered *usage.Rendered
	limits   *limits

	// refreshed are called after each refresh.
	refreshing sync.Mutex
	refreshed  []func()
}

// background adds what runs beside the controllers.
func (s *shared) background() error {
	served, err := kube.NewDiscovery(s.mgr.GetConfig(), s.mgr.GetHTTPClient(), s.mgr.GetLogger().WithName("discovery"), clock.RealClock{}, s.refresh)
	if err != nil {
		return err
	}
	if s.DigestKey != nil {
		keep := func(ctx context.Context) error { return s.DigestKey.Keep(ctx, s.secrets, s.mgr.GetLogger()) }
		if err := s.mgr.Add(manager.RunnableFunc(keep)); err != nil {
			return err
		}
	}
	counted, err := s.apps(context.Background())
	if err != nil {
		return err
	}
	platform := func(ctx context.Context) error { return s.Platform.Keep(ctx, s.mgr.GetClient(), s.mgr.GetCache()) }
	return errors.Join(
		s.mgr.Add(served), s.mgr.Add(manager.RunnableFunc(platform)), s.mgr.Add(manager.RunnableFunc(s.sweep)), s.mgr.Add(follow{s, counted}), s.mgr.Add(s.store),
		s.weights.follow(context.Background(), s.mgr.GetCache()), s.limits.follow(context.Background(), s.mgr.GetCache()),
	)
}

// forget drops what is held of a project's namespace that is gone.
func (s *shared) forget(namespace string) {
	s.releases.Forget(namespace)
	s.clients.Forget(namespace)
	s.local.Forget(namespace)
	durations.DeleteDuration(corev1.ObjectReference{Kind: v1alpha1.AppKind, Namespace: namespace})
}

// refresh has asked anew what the API server serves.
func (s *shared) refresh(ctx context.Context) {
	s.mapper.Reset()
	s.releases.Refresh()
	if err := s.watch.Refresh(ctx); err != nil {
		s.mgr.GetLogger().Error(err, "Looking at what the API server serves")
	}
	s.refreshing.Lock()
	defer s.refreshing.Unlock()
	for _, f := range s.refreshed {
		f()
	}
}

// onServed has f called after each refresh.
func (s *shared) onServed(f func()) {
	s.refreshing.Lock()
	defer s.refreshing.Unlock()
	s.refreshed = append(s.refreshed, f)
}

// sweep removes from the stores what nobody uses any more.
func (s *shared) sweep(ctx context.Context) error {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		if err := s.stores.Sweep(ctx); err != nil {
			s.mgr.GetLogger().Error(err, "Sweeping the stores")
		}
	}, sweepEvery)
	return nil
}

func newShared(mgr ctrl.Manager, o Options) (*shared, error) {
	ours, err := labels.NewRequirement(v1alpha1.TenantLabel, selection.Exists, nil)
	if err != nil {
		return nil, err
	}
	asked, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("making the discovery client: %w", err)
	}
	// The manager's own mapper keeps kinds that are gone; this one forgets, and shares what was discovered with Helm.
	served := memory.NewMemCacheClient(asked)
	mapper := kube.NewMapper(served)
	lists := kube.NewLists(clock.RealClock{})
	objects, err := cache.New(mgr.GetConfig(), lists.Of(cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mapper,
		DefaultLabelSelector: labels.NewSelector().Add(*ours),
		DefaultTransform:     kube.Hold(mgr.GetScheme(), apply.Slim),
	}))
	if err != nil {
		return nil, fmt.Errorf("making the cache of delivered objects: %w", err)
	}
	direct, err := client.New(mgr.GetConfig(), client.Options{HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("making the client past the cache: %w", err)
	}
	watch := kube.NewWatch(lists, objects, mgr.GetClient(), direct, health.HasStatus)
	local := kube.NewLocalWatch(mgr.GetConfig(), mgr.GetHTTPClient(), mgr.GetLogger().WithName("local-watch"), clock.RealClock{})
	local.Mapper = mapper
	if err := errors.Join(mgr.Add(everywhere{objects}), mgr.Add(local)); err != nil {
		return nil, err
	}
	secrets, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mapper,
		DefaultNamespaces: map[string]cache.Config{o.Namespace: {}}, DefaultTransform: cache.TransformStripManagedFields(),
	})
	if err != nil {
		return nil, fmt.Errorf("making the cache of the repositories' Secrets: %w", err)
	}
	weights := &weights{}
	fetches := pool.New(pool.Options{Reach: pool.ReachOf, Weight: weights.of}, clock.RealClock{})
	if err := errors.Join(mgr.Add(everywhere{secrets}), mgr.Add(fetches)); err != nil {
		return nil, err
	}
	own, network, err := newNetworks(mgr, mapper, o)
	if err != nil {
		return nil, err
	}
	var seal digest.Seal
	if o.DigestKey != nil {
		seal = o.DigestKey.Seal
	}
	return &shared{
		seal: seal, served: served, mapper: mapper, Options: o, mgr: mgr, clock: steady.New(fence.SystemClock()), direct: direct, objects: objects, watch: watch,
		local: local, applier: &apply.Applier{Live: liveOf(watch, local), Seal: seal},
		clients: kube.NewClients(mgr.GetConfig(), mgr.GetScheme(), mapper),
		stores:  fetch.NewStores(o.DataDir, network, clock.RealClock{}.Now, o.FluxArtifactHosts...),
		network: network, own: own, fetches: fetches, secrets: secrets, weights: weights, inStep: make(chan struct{}),
		apart: evaluations(o, weights),
	}, nil
}

// liveOf knows Secrets by the version in which their namespace's deployer sees them, and other kinds by the operator's watch.
func liveOf(watch *kube.Watch, local *kube.LocalWatch) apply.Live {
	return func(ctx context.Context, kind schema.GroupVersionKind, key types.NamespacedName) (metav1.Object, bool, error) {
		if kind != corev1.SchemeGroupVersion.WithKind("Secret") {
			return watch.Live(ctx, kind, key)
		}
		version, err := local.Version(ctx, key.Namespace, kind.Kind, key.Name)
		var unready *kube.Unready
		switch {
		case errors.As(err, &unready) && unready.Err == nil:
			return nil, false, err
		case err != nil || version == "":
			// Where the deployer may not watch, the request that follows says why.
			return nil, err == nil, nil
		}
		return &metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, ResourceVersion: version}, true, nil
	}
}

// everywhere runs a cache on every replica, so that a new leader starts with it warm.
type everywhere struct{ cache.Cache }

// NeedLeaderElection lets every replica run it.
func (everywhere) NeedLeaderElection() bool { return false }

func (s *shared) repositories() (*repository.Reconciler, error) {
	reader, err := tree.NewReader()
	if err != nil {
		return nil, fmt.Errorf("compiling the schemas of the kinds: %w", err)
	}
	reader.Limits = s.limits.usual
	return &repository.Reconciler{
		Client: s.mgr.GetClient(), Direct: s.direct, Watch: s.watch, Applier: s.applier,
		Steps: s.steps("repository"), Git: s.stores.Git, Tree: reader, Usage: s.usage,
		Remotes: repository.NewRemotes(s.fetches, s.clock), Namespace: s.Namespace, Secrets: s.secrets, Refusals: &refusal.Registry{},
	}, nil
}

// engine makes the Helm engine and returns the channel over which it reports apps whose action has ended.
func (s *shared) engine() <-chan event.GenericEvent {
	released := make(chan event.GenericEvent)
	s.releases = release.New(release.Options{
		Config: s.mgr.GetConfig(), Discovery: s.served, Mapper: s.mapper,
		Records: s.local.Records, Releases: s.local.Releases, Explain: s.explain,
		Apart: s.apart, Trials: s.Trials,
		Workers: s.HelmWorkers, Weight: s.weights.of, Holder: uuid.NewString(), Now: s.clock.Now, Seal: s.seal, Log: s.mgr.GetLogger().WithName("helm"),
		Notify: func(name types.NamespacedName) {
			app := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}}
			go func() { released <- event.GenericEvent{Object: app} }() // The engine is not held up by a full queue.
		},
	})
	return released
}

// explainer says as a namespace's deployer what ails objects.
func (s *shared) explainer(namespace string, mask func(string) string) (health.Explainer, error) {
	deployer, err := s.clients.As(namespace)
	if err != nil {
		return health.Explainer{}, err
	}
	logs, err := health.LogsOf(s.clients.Config(namespace))
	return health.Explainer{Client: deployer, Logs: logs, Mask: mask}, err
}

// explain is what the explainer says of one object, or nothing.
func (s *shared) explain(ctx context.Context, namespace string, mask func(string) string, o *unstructured.Unstructured) string {
	explainer, err := s.explainer(namespace, mask)
	if err != nil {
		return ""
	}
	return explainer.Explain(ctx, o)
}

func (s *shared) steps(name string) *step.Runner {
	return &step.Runner{
		Client:    s.mgr.GetClient(),
		Events:    s.mgr.GetEventRecorder("kubeop-" + name),
		Durations: durations,
		Clock:     clock.RealClock{}, // It measures how long passes take, and the metric reads the machine's clock.
		Cause:     (&deletions{client: s.direct, namespace: s.Namespace, deployment: s.Deployment}).cause,
		Wake:      func(key types.NamespacedName) { s.wake(name, key) },
	}
}
