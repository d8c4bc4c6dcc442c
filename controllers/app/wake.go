package app

import (
	"context"
	"fmt"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
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
	"github.com/kubeop/kubeop/controllers/app/source"
	"github.com/kubeop/kubeop/controllers/app/wake"
	"github.com/kubeop/kubeop/controllers/refusal"
	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/delivery/fieldmanager"
	"github.com/kubeop/kubeop/delivery/health"
)

// debounce gathers changes that come in a burst, such as those of several ConfigMaps by one kubectl apply, into one Reconcile.
const debounce = 300 * time.Millisecond

// wakes are what wakes Apps.
type wakes struct {
	cluster      Cluster
	queue        *wake.Queue
	refusals     *refusal.Index
	sources      *source.Fetcher
	dependencies *dependency.Checker
}

// Wake has an App reconciled.
func (r *Reconciler) Wake(app types.NamespacedName) { r.wakes.queue.Add(app) }

// SetupWithManager adds the controller. It is the one list of what wakes an App; ended Helm actions come over released.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, ended <-chan event.GenericEvent, options controller.Options) error {
	w := r.wakes
	if err := mgr.GetFieldIndexer().IndexField(context.Background(), &v1alpha1.App{}, source.ByGitURL, source.GitURLs); err != nil {
		return fmt.Errorf("indexing apps by their Git repository: %w", err)
	}
	c, err := ctrl.NewControllerManagedBy(mgr).
		// Its own spec and annotations: suspension, requests, confirmations, the commit that declares it.
		For(&v1alpha1.App{}, builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}))).
		// Its project becomes ready, its tenant may have more, a repository that it is made from was pushed to.
		Watches(&v1alpha1.Project{}, handler.EnqueueRequestsFromMapFunc(w.ofProject), builder.WithPredicates(readyChanged)).
		Watches(&v1alpha1.Tenant{}, handler.EnqueueRequestsFromMapFunc(w.ofTenant), builder.WithPredicates(termsChanged)).
		Watches(&v1alpha1.Repository{}, handler.Funcs{UpdateFunc: w.sources.WakePushed}, builder.WithPredicates(source.PushReported)).
		// A Project or an App that it depends on.
		Watches(&v1alpha1.Project{}, handler.EnqueueRequestsFromMapFunc(w.dependents(v1alpha1.ProjectKind)), builder.WithPredicates(w.dependencies.Changed(v1alpha1.ProjectKind))).
		Watches(&v1alpha1.App{}, handler.EnqueueRequestsFromMapFunc(w.dependents(v1alpha1.AppKind)), builder.WithPredicates(w.dependencies.Changed(v1alpha1.AppKind))).
		// A Helm action of its own that ended; a newer version of it that is refused, or no longer.
		WatchesRawSource(runtimesource.Channel(ended, &handler.EnqueueRequestForObject{})).
		WatchesRawSource(w.refusals.Wakes(v1alpha1.AppKind)).
		// What is no object of the manager's cache: see start.
		WatchesRawSource(runtimesource.Func(w.start)).
		WithOptions(options).
		Build(reconcile.AsReconciler(w.cluster.Client, r))
	if err != nil {
		return err
	}
	// What it delivers, and other objects that it depends on.
	w.cluster.Watch.OnKind(func(kind schema.GroupVersionKind, informer cache.Informer) error {
		if health.HasStatus(kind) {
			return c.Watch(&runtimesource.Informer{Informer: informer, Handler: handler.EnqueueRequestsFromMapFunc(w.concerned(kind.GroupKind()))})
		}
		return c.Watch(&runtimesource.Informer{Informer: informer, Handler: handler.EnqueueRequestsFromMapFunc(delivering), Predicates: []predicate.Predicate{fieldmanager.OwnedFieldsChanged}})
	})
	return nil
}

// start has Apps woken by ConfigMaps, Secrets and Flux sources that they are made from, by their own Secrets and release records, by sources that
// answer or change, and by kinds that are served now. Siblings that wait for each other, and builds that ended, use the queue, too.
func (w *wakes) start(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	w.queue.Start(queue)
	w.sources.Start()
	w.cluster.OnServed(w.sources.Served)
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

// delivering maps an object to the App that delivers it.
func delivering(_ context.Context, o client.Object) []reconcile.Request {
	labels, namespace := o.GetLabels(), o.GetNamespace()
	name := labels[v1alpha1.AppLabel]
	if name == "" {
		return nil
	}
	if namespace == "" {
		namespace = v1alpha1.ProjectNamespace(labels[v1alpha1.TenantLabel], labels[v1alpha1.ProjectLabel])
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}}
}

// concerned maps an object to the App that delivers it and the Apps that depend on it.
func (w *wakes) concerned(kind schema.GroupKind) handler.MapFunc {
	return func(ctx context.Context, o client.Object) []reconcile.Request {
		return append(delivering(ctx, o), requestsFor(w.dependencies.Dependents(o, kind))...)
	}
}

// dependents maps an App or a Project to the Apps that depend on it.
func (w *wakes) dependents(kind string) handler.MapFunc {
	return func(_ context.Context, o client.Object) []reconcile.Request {
		return requestsFor(w.dependencies.Dependents(o, v1alpha1.GroupVersion.WithKind(kind).GroupKind()))
	}
}

func requestsFor(apps []types.NamespacedName) []reconcile.Request {
	requests := make([]reconcile.Request, 0, len(apps))
	for _, app := range apps {
		requests = append(requests, reconcile.Request{NamespacedName: app})
	}
	return requests
}

// ofProject maps a project to its Apps. One that has no namespace yet has none.
func (w *wakes) ofProject(ctx context.Context, project client.Object) []reconcile.Request {
	namespace := project.(*v1alpha1.Project).Status.Namespace
	if namespace == "" {
		return nil
	}
	apps := &v1alpha1.AppList{}
	if err := w.cluster.Client.List(ctx, apps, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil
	}
	var requests []reconcile.Request
	for i := range apps.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&apps.Items[i])})
	}
	return requests
}

// ofTenant maps a tenant to all its Apps.
func (w *wakes) ofTenant(ctx context.Context, tenant client.Object) (requests []reconcile.Request) {
	projects := &v1alpha1.ProjectList{}
	if err := w.cluster.Client.List(ctx, projects, client.InNamespace(v1alpha1.HomeNamespace(tenant.GetName())), client.UnsafeDisableDeepCopy); err != nil {
		return nil
	}
	for i := range projects.Items {
		requests = append(requests, w.ofProject(ctx, &projects.Items[i])...)
	}
	return requests
}

// termsChanged passes Tenants on that changed how much their Apps may hold, or the Pod Security level of their namespaces.
var termsChanged = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false },
	UpdateFunc: func(e event.UpdateEvent) bool {
		was, is := &e.ObjectOld.(*v1alpha1.Tenant).Spec, &e.ObjectNew.(*v1alpha1.Tenant).Spec
		before, after := budget.Limits{}.With(&was.Limits), budget.Limits{}.With(&is.Limits)
		return was.PodSecurity != is.PodSecurity || before.App != after.App || before.RenderedBytes != after.RenderedBytes
	},
	DeleteFunc: func(event.DeleteEvent) bool { return false },
}

// readyChanged lets a project's change through when it becomes ready or stops being so.
var readyChanged = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		was, is := e.ObjectOld.(*v1alpha1.Project), e.ObjectNew.(*v1alpha1.Project)
		return conditions.IsReady(was) != conditions.IsReady(is)
	},
}
