// Package controllers sets up everything the operator runs.
package controllers

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/fluxcd/pkg/runtime/controller"
	"github.com/fluxcd/pkg/runtime/jitter"
	"github.com/fluxcd/pkg/runtime/metrics"
	"github.com/google/uuid"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlcontroller "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/app"
	"github.com/kubeop/kubeop/controllers/project"
	"github.com/kubeop/kubeop/controllers/repository"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/controllers/tenant"
	"github.com/kubeop/kubeop/delivery/apply"
	"github.com/kubeop/kubeop/delivery/fetch"
	"github.com/kubeop/kubeop/delivery/kube"
	"github.com/kubeop/kubeop/delivery/release"
	"github.com/kubeop/kubeop/gitops/tree"
)

const (
	firstBackoff = time.Second
	lastBackoff  = 5 * time.Minute
	// intervalJitter spreads the intervals of objects that were made at the same time.
	intervalJitter = 0.05
)

// Options are the settings of the controllers.
type Options struct {
	// DataDir holds the local stores of Git objects and charts.
	DataDir string
	// Namespace is the operator's own, which holds the credentials of repositories.
	Namespace string
	// Concurrency is how many objects of each kind are reconciled at once; HelmWorkers how many Helm actions run at once.
	Concurrency, HelmWorkers int
	// IngressNamespace is the namespace of the ingress controller, which may reach every project's pods; "" lets none in.
	IngressNamespace string
	// Platform is where the platform repository is; without a URL whoever applies the Repository named platform decides.
	Platform repository.Platform
}

// shared is what the controllers have in common.
type shared struct {
	Options
	mgr     ctrl.Manager
	clock   clock.PassiveClock
	direct  client.Client
	objects cache.Cache
	watch   *kube.Watch
	applier *apply.Applier
	clients *kube.Clients
	git     *fetch.GitStore
	metrics *metrics.Recorder
}

// Setup adds every controller to the manager: the one list of what the operator runs. The Engine it returns is to be
// drained before the process ends.
func Setup(mgr ctrl.Manager, o Options) (*release.Engine, error) {
	s, err := newShared(mgr, o)
	if err != nil {
		return nil, err
	}
	repositories, err := s.repositories()
	if err != nil {
		return nil, err
	}
	engine, released, err := s.engine()
	if err != nil {
		return nil, err
	}
	tenants := &tenant.Reconciler{
		Client: mgr.GetClient(), Direct: s.direct, Watch: s.watch, Applier: s.applier, Steps: s.steps("tenant"),
	}
	projects := &project.Reconciler{
		Client: mgr.GetClient(), Direct: s.direct, Watch: s.watch, Applier: s.applier, Clients: s.clients,
		Steps: s.steps("project"), IngressNamespace: o.IngressNamespace,
	}
	apps := &app.Reconciler{
		Client: mgr.GetClient(), Direct: s.direct, Clients: s.clients, Watch: s.watch, Applier: s.applier, Releases: engine,
		Steps: s.steps("app"), Clock: s.clock, Folder: repositories.Folder, Git: s.git,
		Charts:   fetch.NewChartStore(filepath.Join(o.DataDir, "charts")),
		Commits:  &fetch.Recent[fetch.Commit]{Now: s.clock.Now},
		Archives: &fetch.Recent[fetch.ChartArchive]{Now: s.clock.Now},
	}
	for name, setup := range map[string]func() error{
		"repository": func() error { return repositories.SetupWithManager(mgr, s.objects, s.options()) },
		"tenant":     func() error { return tenants.SetupWithManager(mgr, s.objects, s.options()) },
		"project":    func() error { return projects.SetupWithManager(mgr, s.objects, s.options()) },
		"app":        func() error { return apps.SetupWithManager(mgr, s.objects, released, s.options()) },
	} {
		if err := setup(); err != nil {
			return nil, fmt.Errorf("setting up the %s controller: %w", name, err)
		}
	}
	return engine, mgr.Add(manager.RunnableFunc(func(ctx context.Context) error { return o.Platform.Declare(ctx, mgr.GetClient()) }))
}

func newShared(mgr ctrl.Manager, o Options) (*shared, error) {
	jitter.SetGlobalIntervalJitter(intervalJitter, nil)
	ours, err := labels.NewRequirement(v1alpha1.TenantLabel, selection.Exists, nil)
	if err != nil {
		return nil, err
	}
	objects, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		DefaultLabelSelector: labels.NewSelector().Add(*ours),
		DefaultTransform:     apply.Slim,
	})
	if err != nil {
		return nil, fmt.Errorf("making the cache of delivered objects: %w", err)
	}
	direct, err := client.New(mgr.GetConfig(), client.Options{HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return nil, fmt.Errorf("making the client past the cache: %w", err)
	}
	watch := kube.NewWatch(objects, mgr.GetClient(), direct)
	return &shared{
		Options: o, mgr: mgr, clock: clock.RealClock{}, direct: direct, objects: objects, watch: watch,
		applier: &apply.Applier{Live: watch.Live},
		clients: kube.NewClients(mgr.GetConfig(), mgr.GetScheme(), mgr.GetRESTMapper()),
		git:     fetch.NewGitStore(filepath.Join(o.DataDir, "git")),
		metrics: recorder,
	}, mgr.Add(everywhere{objects})
}

// recorder is Flux's; it registers with the process's metrics once.
var recorder = metrics.MustMakeRecorder()

// everywhere runs a cache on every replica, so that a new leader starts with it warm.
type everywhere struct{ cache.Cache }

// NeedLeaderElection lets every replica run it.
func (everywhere) NeedLeaderElection() bool { return false }

func (s *shared) repositories() (*repository.Reconciler, error) {
	reader, err := tree.NewReader()
	if err != nil {
		return nil, fmt.Errorf("compiling the schemas of the kinds: %w", err)
	}
	return &repository.Reconciler{
		Client: s.mgr.GetClient(), Direct: s.direct, Watch: s.watch, Applier: s.applier,
		Steps: s.steps("repository"), Git: s.git, Tree: reader,
		Commits: &fetch.Recent[fetch.Commit]{Now: s.clock.Now}, Namespace: s.Namespace,
	}, nil
}

// engine returns the Helm engine and the channel over which it reports apps whose action has ended.
func (s *shared) engine() (*release.Engine, <-chan event.GenericEvent, error) {
	client, err := discovery.NewDiscoveryClientForConfigAndClient(s.mgr.GetConfig(), s.mgr.GetHTTPClient())
	if err != nil {
		return nil, nil, fmt.Errorf("making the discovery client: %w", err)
	}
	released := make(chan event.GenericEvent)
	return release.New(release.Options{
		Config: s.mgr.GetConfig(), Discovery: memory.NewMemCacheClient(client), Mapper: s.mgr.GetRESTMapper(),
		Workers: s.HelmWorkers, Holder: uuid.NewString(), Now: s.clock.Now, Log: s.mgr.GetLogger().WithName("helm"),
		Notify: func(name types.NamespacedName) {
			app := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}}
			go func() { released <- event.GenericEvent{Object: app} }() // The engine is not held up by a full queue.
		},
	}), released, nil
}

func (s *shared) steps(name string) *step.Runner {
	return &step.Runner{
		Client:  s.mgr.GetClient(),
		Events:  s.mgr.GetEventRecorder("kubeop-" + name),
		Metrics: controller.NewMetrics(s.mgr, s.metrics, v1alpha1.Finalizer),
		Clock:   s.clock,
	}
}

func (s *shared) options() ctrlcontroller.Options {
	return ctrlcontroller.Options{
		MaxConcurrentReconciles: s.Concurrency,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstBackoff, lastBackoff),
	}
}
