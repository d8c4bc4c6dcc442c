package controllers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/fluxcd/pkg/runtime/metrics"
	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/pushes"
	"github.com/kubeop/kubeop/controllers/refusal"
	"github.com/kubeop/kubeop/controllers/registry"
	"github.com/kubeop/kubeop/controllers/report"
	"github.com/kubeop/kubeop/controllers/repository"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/digest"
	"github.com/kubeop/kubeop/delivery/fair"
	"github.com/kubeop/kubeop/delivery/kube"
	"github.com/kubeop/kubeop/delivery/release"
	"github.com/kubeop/kubeop/gitops/tree"
	"github.com/kubeop/kubeop/internal/fence"
	"github.com/kubeop/kubeop/internal/hook"
	"github.com/kubeop/kubeop/internal/steady"
)

// realClock is the machine's clock, for the parts that shared.clock does not serve:
//   - what sets timers, which that clock does not have: pools, queues, slices, discovery, the push hook, the counts of stored objects, the limit of Events
//     and the watch of delivered objects;
//   - the stores of sources, which compare the time with those of files;
//   - the step runner, because the metric of its durations reads the machine's clock; and the watch of each deployer, because the runner measures how long
//     its first list lasts.
//
// What they measure does not jump either: Go subtracts its times by the monotonic clock. But a time of one clock means nothing to the other, so these parts
// return durations.
var realClock clock.RealClock

// shared holds what the controllers share, by concern.
type shared struct {
	Options
	*cluster
	*sources
	*queues
	*budgets
	mgr ctrl.Manager
	// clock never jumps. All parts use it but those that need realClock.
	clock     clock.PassiveClock
	seal      digest.Seal
	durations *metrics.Recorder
	releases  *release.Engine
	// released sends apps whose Helm action has ended.
	released  chan event.GenericEvent
	discovery *kube.Discovery
	// keys are the keys of the push hook. keys and hook are nil if the hook is turned off.
	keys *hook.Keys
	hook *hook.Server

	afterRefresh
}

func newShared(mgr ctrl.Manager, o Options) (*shared, error) {
	s := &shared{
		Options: o, mgr: mgr, clock: steady.New(fence.SystemClock()), durations: metrics.NewRecorder(),
		queues: newQueues(o), released: make(chan event.GenericEvent),
	}
	if o.DigestKey != nil {
		s.seal = o.DigestKey.Seal
	}
	var err error
	if s.cluster, err = newCluster(mgr, o.Namespace, o.deployers(), s.seal); err != nil {
		return nil, err
	}
	if s.sources, err = newSources(mgr, s.mapper, o, s.weights.of); err != nil {
		return nil, err
	}
	if s.budgets, err = newBudgets(mgr, o, s.cluster, s.clock); err != nil {
		return nil, err
	}
	s.bound(s.limits, s.apart)
	s.reporter = &report.Reporter{
		Reader: mgr.GetClient(), Queue: s.reports, Network: s.network, Clock: s.clock,
		Wake: func(key types.NamespacedName) { s.wake("repository", key) },
	}
	s.releases = s.engine()
	s.registries = &registry.Provider{
		Client: mgr.GetClient(), Direct: s.direct, Applier: s.applier, Deployer: s.clients.As, Version: s.local.Version, OnChange: s.local.OnChange,
		Secrets: registry.NewSecrets(mgr.GetClient(), s.direct, s.secrets, o.Namespace, s.clock),
	}
	s.notifier = &report.Notifier{
		Reader: mgr.GetClient(), Queue: s.reports, Network: s.network, Clock: s.clock, Namespace: o.Namespace,
		Wake: func(key types.NamespacedName) { s.wake("tenant", key) },
	}
	if s.discovery, err = kube.NewDiscovery(mgr.GetConfig(), mgr.GetHTTPClient(), mgr.GetLogger().WithName("discovery"), realClock, s.refresh); err != nil {
		return nil, err
	}
	if o.Hook.Listener == nil {
		return s, nil
	}
	s.keys, s.hook, err = newHook(mgr, o)
	return s, err
}

// newHook returns the push hook and the cache of its keys.
func newHook(mgr ctrl.Manager, o Options) (*hook.Keys, *hook.Server, error) {
	keys, err := hook.NewKeys(mgr.GetConfig(), mgr.GetHTTPClient(), mgr.GetRESTMapper(), o.Namespace)
	if err != nil {
		return nil, nil, err
	}
	return keys, &hook.Server{
		Client: o.Hook.Client, Keys: keys, Namespace: o.Namespace, Listener: o.Hook.Listener, Clock: realClock,
		Log: mgr.GetLogger().WithName("hook"),
		Ready: func(ctx context.Context) bool {
			return mgr.GetCache().WaitForCacheSync(ctx) && keys.WaitForCacheSync(ctx)
		},
	}, nil
}

// hookKeys returns the cache of the push hook's keys, nil if the hook is turned off.
func (s *shared) hookKeys() cache.Cache {
	if s.keys == nil {
		return nil
	}
	return s.keys
}

// forget drops the state of a deleted project's namespace.
func (s *shared) forget(namespace string) {
	s.releases.Forget(namespace)
	s.clients.Forget(namespace)
	s.local.Forget(namespace)
	s.registries.Forget(namespace)
	s.durations.DeleteDuration(corev1.ObjectReference{Kind: v1alpha1.AppKind, Namespace: namespace})
}

// afterRefresh holds the functions to call after discovery was refreshed.
type afterRefresh struct {
	mu    sync.Mutex
	calls []func()
}

// onServed registers f to be called after each refresh.
func (a *afterRefresh) onServed(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls = append(a.calls, f)
}

func (a *afterRefresh) callAll() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, f := range a.calls {
		f()
	}
}

// refresh refreshes discovery.
func (s *shared) refresh(ctx context.Context) {
	s.mapper.Reset()
	s.releases.Refresh()
	if err := s.watch.Refresh(ctx); err != nil {
		s.mgr.GetLogger().Error(err, "Looking at what the API server serves")
	}
	s.callAll()
}

// sweepEvery is the time between two searches for unused files in the stores.
const sweepEvery = time.Hour

// sweep removes unused files from the stores.
func (s *shared) sweep(ctx context.Context) error {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		if err := s.stores.Sweep(ctx); err != nil {
			s.mgr.GetLogger().Error(err, "Sweeping the stores")
		}
	}, sweepEvery)
	return nil
}

// keepDigestKey restores the key of digests in its Secret when someone changes it.
func (s *shared) keepDigestKey(ctx context.Context) error {
	return s.DigestKey.Keep(ctx, s.secrets, s.mgr.GetLogger())
}

// keepPlatform restores the configured platform repository when someone changes it.
func (s *shared) keepPlatform(ctx context.Context) error {
	return s.Platform.Keep(ctx, s.mgr.GetClient(), s.mgr.GetCache())
}

// drain waits at the end of the process, before the lease is released, until running Helm actions have ended.
func (s *shared) drain(ctx context.Context) error {
	<-ctx.Done()
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.Drain)
	defer cancel()
	return s.releases.Drain(limit)
}

// cachesFilled reports an error until the caches had their first lists.
func (s *shared) cachesFilled(*http.Request) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if !s.mgr.GetCache().WaitForCacheSync(ctx) {
		return errors.New("the caches are not filled yet")
	}
	return nil
}

// domains returns those of each tenant.
func (s *shared) domains() (map[string][]string, error) {
	tenants := &v1alpha1.TenantList{}
	if err := s.mgr.GetClient().List(context.Background(), tenants, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the domains of the tenants: %w", err)
	}
	of := map[string][]string{}
	for i := range tenants.Items {
		of[tenants.Items[i].Name] = tenants.Items[i].Spec.Domains
	}
	return of, nil
}

func (s *shared) repositories() (*repository.Reconciler, error) {
	reader, err := tree.NewReader()
	if err != nil {
		return nil, fmt.Errorf("compiling the schemas of the kinds: %w", err)
	}
	reader.Placement.Cluster = &s.Cluster
	reader.Limits, reader.Platform, reader.Domains = s.limits.usual, s.clients.Platform(), s.domains
	remotes := repository.NewRemotes(s.fetches, s.clock)
	remotes.Network = s.network
	r := &repository.Reconciler{
		Client: s.mgr.GetClient(), Direct: s.direct, Watch: s.watch, Applier: s.applier,
		Steps: s.steps("repository"), Git: s.stores.Git, Tree: reader, Usage: s.usage,
		Remotes: remotes, Namespace: s.Namespace, Secrets: s.secrets, Refusals: &refusal.Index{},
		Beside: repository.Beside{
			Hook: &pushes.Hook{Namespace: s.Namespace, Secrets: s.secrets, Keys: s.hookKeys()}, CommitStatuses: s.reporter.StatusOf,
		},
	}
	r.PullRequests = s.pullRequests(r)
	return r, nil
}

// engine creates the Helm engine.
func (s *shared) engine() *release.Engine {
	return release.New(release.Options{
		Config: s.mgr.GetConfig(), Discovery: s.served, Mapper: s.mapper,
		Records: s.local.Records, Releases: s.local.Releases, Explain: s.explain,
		Apart: s.apart, Trials: s.Trials,
		Workers: fair.Bounds{Places: s.HelmWorkers, Weight: s.weights.of}, Holder: uuid.NewString(), Now: s.clock.Now, Seal: s.seal, Log: s.mgr.GetLogger().WithName("helm"),
		Notify: func(name types.NamespacedName) {
			app := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}}
			go func() { s.released <- event.GenericEvent{Object: app} }() // A goroutine, because a full queue must not block the engine.
		},
	})
}

func (s *shared) steps(name string) *step.Runner {
	return &step.Runner{
		Client:    s.mgr.GetClient(),
		Events:    s.mgr.GetEventRecorder("kubeop-" + name),
		Durations: s.durations,
		Clock:     realClock,
		Cause:     newDeletions(s.direct, s.Namespace, s.Deployment).cause,
		Wake:      func(key types.NamespacedName) { s.wake(name, key) },
	}
}
