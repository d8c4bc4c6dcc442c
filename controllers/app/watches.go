package app

import (
	"context"
	"fmt"

	"github.com/fluxcd/pkg/runtime/conditions"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/apply"
	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/delivery/health"
)

// SetupWithManager has the controller woken by its Apps, by what they deliver and depend on, by their project, by the
// ConfigMaps and Secrets they are made from, and by ended Helm actions, which come over released.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, released <-chan event.GenericEvent, options controller.Options) error {
	if err := mgr.GetFieldIndexer().IndexField(context.Background(), &v1alpha1.App{}, byGitURL, gitURLs); err != nil {
		return fmt.Errorf("indexing apps by their Git repository: %w", err)
	}
	r.builders.Weight = r.Weight
	c, err := ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.App{}, builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}))).
		Watches(&v1alpha1.Project{}, handler.EnqueueRequestsFromMapFunc(r.appsOf), builder.WithPredicates(readyChanged)).
		Watches(&v1alpha1.Tenant{}, handler.EnqueueRequestsFromMapFunc(r.appsOfTenant), builder.WithPredicates(limitsChanged)).
		Watches(&v1alpha1.Repository{}, handler.Funcs{UpdateFunc: r.wakePushed}, builder.WithPredicates(pushTold)).
		Watches(&v1alpha1.Project{}, handler.EnqueueRequestsFromMapFunc(r.waitingFor(v1alpha1.ProjectKind)), builder.WithPredicates(r.standingChanged(v1alpha1.ProjectKind))).
		Watches(&v1alpha1.App{}, handler.EnqueueRequestsFromMapFunc(r.waitingFor(v1alpha1.AppKind)), builder.WithPredicates(r.standingChanged(v1alpha1.AppKind))).
		WatchesRawSource(source.Channel(released, &handler.EnqueueRequestForObject{})).
		WatchesRawSource(source.Func(r.wakeOnChange)).
		WatchesRawSource(r.Refusals.Wakes(v1alpha1.AppKind)).
		WithOptions(options).
		Build(reconcile.AsReconciler(r.Client, r))
	if err != nil {
		return err
	}
	r.Watch.OnKind(func(kind schema.GroupVersionKind, informer cache.Informer) error {
		if health.HasStatus(kind) {
			return c.Watch(&source.Informer{Informer: informer, Handler: handler.EnqueueRequestsFromMapFunc(r.concerned(kind.GroupKind()))})
		}
		return c.Watch(&source.Informer{Informer: informer, Handler: handler.EnqueueRequestsFromMapFunc(appOf), Predicates: []predicate.Predicate{apply.HandsOn}})
	})
	return nil
}

// appOf maps an object to the app that delivers it.
func appOf(_ context.Context, o client.Object) []reconcile.Request {
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

// concerned maps an object to the app that delivers it and the apps that depend on it.
func (r *Reconciler) concerned(kind schema.GroupKind) handler.MapFunc {
	return func(ctx context.Context, o client.Object) []reconcile.Request {
		return append(appOf(ctx, o), requestsFor(r.dependentsOf(o, kind))...)
	}
}

// waitingFor maps an App or a Project to the apps that depend on it.
func (r *Reconciler) waitingFor(kind string) handler.MapFunc {
	return func(_ context.Context, o client.Object) []reconcile.Request {
		return requestsFor(r.dependentsOf(o, v1alpha1.GroupVersion.WithKind(kind).GroupKind()))
	}
}

// standingChanged lets a change of an App or Project through when others depend on it and it becomes ready or stops being
// so. Expressions may look at anything, so what they judge is let through at each change.
func (r *Reconciler) standingChanged(kind string) predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			if standsAs(e.ObjectOld) != standsAs(e.ObjectNew) {
				return true
			}
			return len(r.dependents.users(reference{e.ObjectNew.GetNamespace(), kind + byExpression, e.ObjectNew.GetName()})) > 0
		},
	}
}

func requestsFor(apps []client.ObjectKey) []reconcile.Request {
	requests := make([]reconcile.Request, 0, len(apps))
	for _, app := range apps {
		requests = append(requests, reconcile.Request{NamespacedName: app})
	}
	return requests
}

// appsOf maps a project to its apps.
func (r *Reconciler) appsOf(ctx context.Context, project client.Object) []reconcile.Request {
	namespace := project.(*v1alpha1.Project).Status.Namespace
	if namespace == "" {
		return nil
	}
	apps := &v1alpha1.AppList{}
	if err := r.Client.List(ctx, apps, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil
	}
	var requests []reconcile.Request
	for i := range apps.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&apps.Items[i])})
	}
	return requests
}

// appsOfTenant maps a tenant to all its apps.
func (r *Reconciler) appsOfTenant(ctx context.Context, tenant client.Object) (requests []reconcile.Request) {
	projects := &v1alpha1.ProjectList{}
	if err := r.Client.List(ctx, projects, client.InNamespace(v1alpha1.HomeNamespace(tenant.GetName())), client.UnsafeDisableDeepCopy); err != nil {
		return nil
	}
	for i := range projects.Items {
		requests = append(requests, r.appsOf(ctx, &projects.Items[i])...)
	}
	return requests
}

// limitsChanged lets a Tenant through whose apps may hold more, or less, than before.
var limitsChanged = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false },
	UpdateFunc: func(e event.UpdateEvent) bool {
		was, is := e.ObjectOld.(*v1alpha1.Tenant).Spec.Limits, e.ObjectNew.(*v1alpha1.Tenant).Spec.Limits
		before, after := budget.Limits{}.With(&was), budget.Limits{}.With(&is)
		return before.App != after.App || before.RenderedBytes != after.RenderedBytes
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
