package app

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	runtimesource "sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/app/dependency"
	"github.com/kubeop/kubeop/controllers/app/project"
	"github.com/kubeop/kubeop/controllers/app/source"
	"github.com/kubeop/kubeop/controllers/app/wake"
	"github.com/kubeop/kubeop/controllers/hostclaims"
	"github.com/kubeop/kubeop/controllers/refusal"
	"github.com/kubeop/kubeop/delivery/fieldmanager"
	"github.com/kubeop/kubeop/delivery/health"
)

// debounce delays a Reconcile, so that a burst of changes, such as several ConfigMaps of one kubectl apply, causes only one.
const debounce = 300 * time.Millisecond

// wakes has the watches and events that wake Apps.
type wakes struct {
	cluster      Cluster
	queue        *wake.Queue
	refusals     *refusal.Index
	sources      *source.Fetcher
	dependencies *dependency.Checker
	hosts        *hostclaims.Claims
}

// Wake adds an App to the work queue.
func (r *Reconciler) Wake(app types.NamespacedName) { r.wakes.queue.Add(app) }

// SetupWithManager adds the controller. It is the one list of what wakes an App. ended delivers the Apps whose Helm action ended.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, ended <-chan event.GenericEvent, options controller.Options) error {
	w := r.wakes
	if err := mgr.GetFieldIndexer().IndexField(context.Background(), &v1alpha1.App{}, source.ByURL, source.URLs); err != nil {
		return fmt.Errorf("indexing apps by their Git repository: %w", err)
	}
	c, err := ctrl.NewControllerManagedBy(mgr).
		// The App's own spec and annotations: suspension, requests, confirmations, the commit that declares it.
		For(&v1alpha1.App{}, builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}))).
		// The App's project becomes ready or has other pull Secrets, the limits of its tenant or the policies of its project change, or its source repository has a new push.
		Watches(&v1alpha1.Project{}, handler.EnqueueRequestsFromMapFunc(w.ofProject), builder.WithPredicates(project.ReadyChanged)).
		Watches(&v1alpha1.Tenant{}, handler.EnqueueRequestsFromMapFunc(w.ofTenant), builder.WithPredicates(project.TermsChanged)).
		Watches(&v1alpha1.Guardrails{}, handler.EnqueueRequestsFromMapFunc(w.ofGuardrails), builder.WithPredicates(hostclaims.RulesChanged)).
		Watches(&v1alpha1.Repository{}, handler.Funcs{CreateFunc: w.sources.WakeNoted, UpdateFunc: w.sources.WakePushed}, builder.WithPredicates(source.PushReported)).
		// The Guardrails have the host names that the App waits for, a host name that it waits for or has is free, or an administrator gave its project one.
		Watches(&v1alpha1.Guardrails{}, handler.EnqueueRequestsFromMapFunc(w.hosts.OnListed)).
		Watches(&v1alpha1.HostnameClaim{}, handler.EnqueueRequestsFromMapFunc(w.hosts.OnDecided), builder.WithPredicates(hostclaims.Decided)).
		// A Project or an App that the App depends on.
		Watches(&v1alpha1.Project{}, handler.EnqueueRequestsFromMapFunc(w.dependents(v1alpha1.ProjectKind)), builder.WithPredicates(w.dependencies.Changed(v1alpha1.ProjectKind))).
		Watches(&v1alpha1.App{}, handler.EnqueueRequestsFromMapFunc(w.dependents(v1alpha1.AppKind)), builder.WithPredicates(w.dependencies.Changed(v1alpha1.AppKind))).
		// A Helm action of the App ended; a newer version of the App is refused, or no longer refused.
		WatchesRawSource(runtimesource.Channel(ended, &handler.EnqueueRequestForObject{})).
		WatchesRawSource(w.refusals.Wakes(v1alpha1.AppKind)).
		// Events that do not come from the manager's cache: see start.
		WatchesRawSource(runtimesource.Func(w.start)).
		WithOptions(options).
		Build(reconcile.AsReconciler(w.cluster.Client, r))
	if err != nil {
		return err
	}
	// The project's quota, and the objects that the App delivers or depends on.
	w.cluster.Watch.OnKind(project.FollowQuotas(w.queue, c, w.within))
	w.cluster.Watch.OnKind(func(kind schema.GroupVersionKind, informer cache.Informer) error {
		if health.HasStatus(kind) {
			return c.Watch(&runtimesource.Informer{Informer: informer, Handler: handler.EnqueueRequestsFromMapFunc(w.concerned(kind.GroupKind()))})
		}
		return c.Watch(&runtimesource.Informer{Informer: informer, Handler: handler.EnqueueRequestsFromMapFunc(wake.Delivering), Predicates: []predicate.Predicate{fieldmanager.OwnedFieldsChanged}})
	})
	return nil
}

// start wakes Apps on changes of the ConfigMaps, Secrets and Flux sources that they use, on changes of their own Secrets and release
// records, when a source answers or changes, and when the API server serves new kinds. Sibling Apps and ended builds use the same queue.
func (w *wakes) start(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	w.queue.Start(queue)
	w.sources.Start()
	w.cluster.OnServed(w.queue.KindsServed)
	w.cluster.OnChange(func(namespace, kind, name string, labels map[string]string) {
		apps := w.sources.Users(namespace, kind, name)
		if app := labels[v1alpha1.AppLabel]; app != "" {
			apps = append(apps, types.NamespacedName{Namespace: namespace, Name: app})
		}
		for _, app := range apps {
			w.queue.AddAfter(app, debounce)
		}
	})
	return nil
}

// concerned maps an object to the App that delivers it and to the Apps that depend on it.
func (w *wakes) concerned(kind schema.GroupKind) handler.MapFunc {
	return func(ctx context.Context, o client.Object) []reconcile.Request {
		return append(wake.Delivering(ctx, o), wake.Requests(w.dependencies.Dependents(o, kind))...)
	}
}

// dependents maps an App or a Project to the Apps that depend on it.
func (w *wakes) dependents(kind string) handler.MapFunc {
	return func(_ context.Context, o client.Object) []reconcile.Request {
		return wake.Requests(w.dependencies.Dependents(o, v1alpha1.GroupVersion.WithKind(kind).GroupKind()))
	}
}

// ofProject maps a project to its Apps.
func (w *wakes) ofProject(ctx context.Context, of client.Object) []reconcile.Request {
	namespace := of.(*v1alpha1.Project).Status.Namespace
	if namespace == "" {
		return nil // The project has no Apps yet.
	}
	return w.within(ctx, namespace)
}

// ofGuardrails maps the Guardrails of a project to its Apps.
func (w *wakes) ofGuardrails(ctx context.Context, rules client.Object) []reconcile.Request {
	return w.within(ctx, rules.GetNamespace())
}

// within returns the Apps of a namespace. If listing them fails, the error is logged, and they are reconciled at their interval.
func (w *wakes) within(ctx context.Context, namespace string) (requests []reconcile.Request) {
	apps := &v1alpha1.AppList{}
	if err := w.cluster.Client.List(ctx, apps, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing the apps of a project that changed; they are reconciled at their interval", "project", namespace)
		return nil
	}
	for i := range apps.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&apps.Items[i])})
	}
	return requests
}

// ofTenant maps a tenant to all its Apps.
func (w *wakes) ofTenant(ctx context.Context, tenant client.Object) (requests []reconcile.Request) {
	projects := &v1alpha1.ProjectList{}
	if err := w.cluster.Client.List(ctx, projects, client.InNamespace(v1alpha1.HomeNamespace(tenant.GetName())), client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing the projects of a tenant that changed; their apps are reconciled at their interval", "tenant", tenant.GetName())
		return nil
	}
	for i := range projects.Items {
		requests = append(requests, w.ofProject(ctx, &projects.Items[i])...)
	}
	return requests
}
