// Package controllers sets up everything the operator runs.
package controllers

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/app"
	"github.com/kubeop/kubeop/controllers/app/notice"
	"github.com/kubeop/kubeop/controllers/app/source"
	"github.com/kubeop/kubeop/controllers/guards"
	"github.com/kubeop/kubeop/controllers/hostclaims"
	"github.com/kubeop/kubeop/controllers/project"
	"github.com/kubeop/kubeop/controllers/promotion"
	"github.com/kubeop/kubeop/controllers/registry"
	"github.com/kubeop/kubeop/controllers/repository"
	"github.com/kubeop/kubeop/controllers/rollup"
	"github.com/kubeop/kubeop/controllers/signed"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/controllers/tenant"
	"github.com/kubeop/kubeop/controllers/volumes"
	"github.com/kubeop/kubeop/controllers/writeback"
	"github.com/kubeop/kubeop/delivery/build"
	"github.com/kubeop/kubeop/delivery/fair"
	"github.com/kubeop/kubeop/delivery/fetch/image"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
	"github.com/kubeop/kubeop/delivery/isolation"
	"github.com/kubeop/kubeop/delivery/journal"
	"github.com/kubeop/kubeop/delivery/render/workload"
	"github.com/kubeop/kubeop/delivery/trials"
	"github.com/kubeop/kubeop/internal/hook"
	"github.com/kubeop/kubeop/internal/sopskey"
)

// Setup adds everything the operator runs to the manager.
func Setup(mgr ctrl.Manager, o Options) error {
	if err := installed(mgr.GetRESTMapper()); err != nil {
		return err
	}
	step.SpreadIntervals()
	s, err := newShared(mgr, o)
	if err != nil {
		return err
	}
	k, err := s.reconcilers()
	if err != nil {
		return err
	}
	for _, p := range s.parts(k) {
		if err := p.addTo(mgr); err != nil {
			return err
		}
	}
	return nil
}

// parts is the only list of what runs in the operator's process. Nothing else is added to the manager.
func (s *shared) parts(k *reconcilers) []part {
	return []part{
		{"kubeop's own kinds", byManager("cache"), everyReplica},
		{"delivered objects", objectCache(s.objects), everyReplica},
		{"metadata of credentials", objectCache(s.secrets), everyReplica},
		{"networks of the cluster", cacheBeforeAll(s.own), everyReplica},
		{"keys of the push hook", given(s.hook != nil, objectCache(s.keys)), everyReplica},
		{"objects that only deployers may watch", job(s.local), leader},

		{"volumes", controller(k.volumes), leader},
		{"repository", controller(k.repository), leader},
		{"tenant", controller(k.tenant), leader},
		{"project", controller(k.project), leader},
		{"registry", controller(k.registry), leader},
		{"app", controller(k.app), leader},
		{"report", controller(k.report), leader},
		{"notification", controller(k.notification), leader},
		{"promotion", controller(k.promotion), leader},

		{"weights of tenants", handler(s.weights.follow), everyReplica},
		{"limits of tenants", handler(s.limits.follow), everyReplica},
		{"sizes of what apps deliver", handler(s.followSizes), everyReplica},

		{"leader election", byManager("job"), everyReplica},
		{"discovery", job(s.discovery), everyReplica},
		{"first lists", job(&firstLists{s}), everyReplica},
		{"evaluation processes", given(s.Sandbox != nil, job(s.Sandbox)), everyReplica},
		{"fetches", job(s.fetches), leader},
		{"reports", job(s.reports), leader},
		{"plans of pull requests", job(s.plans), leader},
		{"quotas of tenants", job(s.store), leader},
		{"number of Events", job(s.eventLimiter()), leader},
		{"platform repository", jobFunc(s.keepPlatform), leader},
		{"key of digests", given(s.DigestKey != nil, jobFunc(s.keepDigestKey)), leader},
		{"sweep of the stores", jobFunc(s.sweep), leader},
		{"end of Helm actions", given(s.Drain > 0, jobFunc(s.drain)), leader},

		{"push hook", given(s.hook != nil, server(s.hook)), everyReplica},
		{"/metrics and /version", byManager("server"), everyReplica},
		{"/healthz and /readyz", byManager("server"), everyReplica},
		{"/debug/pprof", byManager("server"), everyReplica},
		{"ping", alive(healthz.Ping), everyReplica},
		{"caches", ready(s.cachesFilled), everyReplica},
		{"networks", ready(s.networksLearned), everyReplica},
		{"evaluation", given(s.Sandbox != nil, ready(s.Sandbox.Ready)), everyReplica},

		{"conditions and suspension", collector(&states{s.mgr.GetClient(), s.clock}), leader},
		{"budgets of tenants", collector(s.usages()), leader},
		{"durations", collectors(s.histograms), everyReplica},
		{"queues", collectors(fair.Collectors), everyReplica},
		{"fetches", collector(s.fetches), everyReplica},
		{"mirrors", collector(transport.MirrorMetrics()), everyReplica},
		{"reports", collector(s.reports), leader},
		{"sizes and refusals", collectors(step.Collectors), everyReplica},
		{"policies", collectors(notice.Collectors), everyReplica},
		{"push hook", given(s.hook != nil, collectors(hook.Collectors)), everyReplica},
		{"evaluation processes", given(s.Sandbox != nil, collectors(s.Sandbox.Collectors)), everyReplica},
	}
}

// reconcilers are the functions that add the controller of each kind to the manager.
type reconcilers struct{ volumes, repository, tenant, project, registry, app, report, notification, promotion func() error }

// reconcilers creates the controllers.
func (s *shared) reconcilers() (*reconcilers, error) {
	mgr, o := s.mgr, s.Options
	repositories, err := s.repositories()
	if err != nil {
		return nil, err
	}
	keys := tenant.NewKeys(s.direct, o.Namespace)
	tier, mutating := s.optional(isolation.ClusterPolicyKind, !o.ClusterNetworkPolicies), s.optional(guards.MutatingPolicyKind, false)
	tenants := &tenant.Reconciler{
		Client: mgr.GetClient(), Direct: s.direct, Watch: s.watch, Applier: s.applier, Steps: s.steps("tenant"),
		Kinds: s.kinds, Budgets: s.usage.Budgets, Tier: tier, Mutating: mutating, FlowControl: o.FlowControl, PodSecurity: s.podSecurity, OwnerRequests: o.OwnerRequests, Notified: s.notifier.Note, Keys: keys,
	}
	writes := writeback.New(writeback.Options{
		Queue: s.reports, Git: s.stores.Git, Network: s.network, Clock: s.clock, Client: mgr.GetClient(), Repositories: repositories,
	})
	wakeProject := func(key types.NamespacedName) { s.wake("project", key) }
	hosts := &hostclaims.Claims{
		Client: mgr.GetClient(), Direct: s.direct, Clock: s.clock, Unjudged: o.unjudged,
		WakeProject: func(key types.NamespacedName) { s.wakeAfter("project", key, rollup.Pause) },
	}
	promoter := &promotion.Promoter{
		Reader: mgr.GetClient(), Writes: writes, Clock: s.clock, Again: func(key types.NamespacedName) { s.wake("promotion", key) }, Report: wakeProject,
	}
	projects := &project.Reconciler{
		Client: mgr.GetClient(), Direct: s.direct, Watch: s.watch, Applier: s.applier, Clients: s.clients, Forget: s.forget,
		Connections: project.Connections{Admitted: o.Admitted, Networks: s.own, Tier: tier},
		Steps:       s.steps("project"), Refusals: repositories.Refusals, Quotas: project.Quotas{Kinds: s.kinds, Grants: s.grants, Store: s.store},
		Promotions: promoter.StatusOf, Hosts: hosts, Grantees: project.Grantees{Registries: s.registries, Manager: types.NamespacedName{Namespace: o.Namespace, Name: o.ManagerAccount}},
	}
	registries := &registry.Reconciler{Client: mgr.GetClient(), Secrets: s.registries.Secrets, Steps: s.steps("registry")}
	apps := s.apps(repositories, writes, hosts, keys)
	repositories.WakeApps(apps.Wake)
	s.rendered.Wake = apps.Wake
	s.reporter.Auth, s.notifier.Secret = repositories.APIAuth, repositories.Secret
	retained := &volumes.Reconciler{Direct: s.direct, Watch: s.watch, Events: mgr.GetEventRecorder("kubeop-volumes")}
	return &reconcilers{
		volumes: func() error { return retained.SetupWithManager(mgr, s.options("volumes", byItself)) },
		repository: func() error {
			return repositories.SetupWithManager(mgr, s.secrets, s.hookKeys(), s.options("repository", byItself))
		},
		tenant:       func() error { return tenants.SetupWithManager(mgr, s.secrets, s.options("tenant", byItself)) },
		project:      func() error { return projects.SetupWithManager(mgr, s.secrets, s.options("project", s.tenantOf)) },
		registry:     func() error { return registries.SetupWithManager(mgr, s.secrets, s.options("registry", byItself)) },
		app:          func() error { return apps.SetupWithManager(mgr, s.released, s.options("app", s.tenantOf)) },
		report:       func() error { return s.reporter.SetupWithManager(mgr, s.options("report", byItself)) },
		promotion:    func() error { return promoter.SetupWithManager(mgr, s.options("promotion", s.tenantOf)) },
		notification: func() error { return s.notifier.SetupWithManager(mgr, s.secrets, s.options("notification", byItself)) },
	}, nil
}

// apps creates the controller of Apps.
func (s *shared) apps(repositories *repository.Reconciler, writes *writeback.Writer, hosts *hostclaims.Claims, keys *sopskey.Keys) *app.Reconciler {
	mgr, o := s.mgr, s.Options
	return app.New(app.Options{
		Cluster: app.Cluster{
			Client: mgr.GetClient(), Direct: s.direct, Clients: s.clients, Watch: s.watch,
			Version: s.local.Version, OnChange: s.local.OnChange, OnServed: s.onServed, Explainer: s.explainer,
			PodSecurity: s.podSecurity,
		},
		Engines: app.Engines{
			Applier: s.applier, Journal: journal.New(s.direct, o.Namespace, s.clock.Now), Releases: s.releases,
			Builder: &build.Builder{Apart: s.apart, Services: s.keyService, Now: s.clock.Now, Trials: trials.New(o.BuildTrials, "these manifests"), Log: mgr.GetLogger().WithName("build")},
		},
		Tenants: app.Tenants{Limits: s.limits.usual, Weight: s.weights.of, Store: s.store, Rendered: s.rendered, Hosts: hosts, Refusals: repositories.Refusals, Keys: keys},
		Sources: s.fetcher(repositories, writes),
		Gateway: workload.GatewayOf(o.Gateway), IngressClass: o.IngressClass, Steps: s.steps("app"), Clock: s.clock, Seal: s.seal,
	})
}

// optional returns what knows whether the API server serves a kind, which kubeop does not use if off.
func (s *shared) optional(kind schema.GroupVersionKind, off bool) *guards.OptionalKind {
	k := &guards.OptionalKind{Kind: kind, Mapper: s.mapper, Off: off}
	s.onServed(k.Look)
	return k
}

// fetcher returns the Fetcher of the sources of Apps.
func (s *shared) fetcher(repositories *repository.Reconciler, writes *writeback.Writer) *source.Fetcher {
	return &source.Fetcher{
		Folder: repositories.Folder, Git: s.stores.Git, Charts: s.stores.Charts, Artifacts: s.stores.Artifacts,
		Images:     &source.ImageWriter{Writes: writes, Wake: func(key types.NamespacedName) { s.wake("app", key) }},
		Tags:       image.NewStore(s.network, s.clock.Now, s.PlainRegistries, s.apart),
		Signatures: source.Signatures{Cosign: s.cosign, Signed: &signed.Images{Client: s.mgr.GetClient()}},
		Answers:    source.NewAnswers(s.fetches, s.clock),
	}
}

// installed fails if the API server does not serve the kinds of this API.
func installed(mapper meta.RESTMapper) error {
	for _, name := range []string{v1alpha1.RepositoryKind, v1alpha1.TenantKind, v1alpha1.ProjectKind, v1alpha1.AppKind, v1alpha1.PolicyKind, v1alpha1.GuardrailsKind, v1alpha1.HostnameClaimKind, v1alpha1.RegistryKind,
		v1alpha1.PriceListKind, v1alpha1.ClusterKind} {
		kind := v1alpha1.GroupVersion.WithKind(name)
		_, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		switch {
		case meta.IsNoMatchError(err), errors.As(err, new(*apiutil.ErrResourceDiscoveryFailed)):
			return fmt.Errorf("no matches for kind %s of %s: ask an administrator of the cluster to install kubeop's CustomResourceDefinitions, which are in its chart: %w", name, v1alpha1.GroupVersion, err)
		case err != nil:
			return fmt.Errorf("asking whether kind %s is served: %w", name, err)
		}
	}
	return nil
}
