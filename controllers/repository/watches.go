package repository

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
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
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/fieldmanager"
	"github.com/kubeop/kubeop/gitops/identity"
)

// SetupWithManager has the controller woken by its Repositories, by changes that others make to what they declare, and by new namespaces, for
// which projects and apps may be waiting, by the Secrets that they name, which are in secrets, and by remotes that have answered.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, secrets cache.Cache, options controller.Options) error {
	if err := index(context.Background(), mgr.GetFieldIndexer()); err != nil {
		return err
	}
	r.credentials = credentials{Reader: r.Direct, metadata: r.Secrets, named: r.names, clock: r.Steps.Clock}
	c, err := ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.Repository{}, builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}))).
		Watches(&v1alpha1.Tenant{}, r.changedByOthers(), builder.WithPredicates(notOurs)).
		Watches(&v1alpha1.Tenant{}, handler.EnqueueRequestsFromMapFunc(own), builder.WithPredicates(limitsChanged)).
		Watches(&v1alpha1.Project{}, r.changedByOthers(), builder.WithPredicates(notOurs)).
		Watches(&v1alpha1.App{}, r.changedByOthers(), builder.WithPredicates(notOurs)).
		WatchesRawSource(source.Kind(secrets, secretMetadata(), handler.TypedEnqueueRequestsFromMapFunc(r.naming))).
		WatchesRawSource(source.Func(r.wakes)).
		WithOptions(options).
		Build(reconcile.AsReconciler(r.Client, r))
	if err != nil {
		return err
	}
	r.Watch.OnKind(func(kind schema.GroupVersionKind, informer cache.Informer) error {
		if kind.Kind != "Namespace" {
			return nil
		}
		return c.Watch(&source.Informer{Informer: informer, Handler: homes})
	})
	return nil
}

// own maps a tenant to its own repository. The platform repository is woken by each Tenant that it declares.
func own(_ context.Context, tenant client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: tenant.GetName()}}}
}

// limitsChanged lets a Tenant through that may have more, or less, than before.
var limitsChanged = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false },
	UpdateFunc: func(e event.UpdateEvent) bool {
		was, is := e.ObjectOld.(*v1alpha1.Tenant), e.ObjectNew.(*v1alpha1.Tenant)
		return !equality.Semantic.DeepEqual(was.Spec.Limits, is.Spec.Limits)
	},
	DeleteFunc: func(event.DeleteEvent) bool { return false },
}

// wakes has a repository woken when its remote has answered.
func (r *Reconciler) wakes(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	r.Commits.Wake = func(name types.NamespacedName) { queue.Add(reconcile.Request{NamespacedName: name}) }
	return nil
}

// changesPause gathers changes that come together, such as the deletions of one commit.
const changesPause = time.Second

// changedByOthers maps a changed object to the repositories that declare it, now or before the change.
func (r *Reconciler) changedByOthers() handler.Funcs {
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			r.touch(e.Object, e.Object.GetLabels(), q)
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			r.touch(e.ObjectNew, e.ObjectNew.GetLabels(), q)
			if was := e.ObjectOld.GetLabels(); was[v1alpha1.RepositoryLabel] != e.ObjectNew.GetLabels()[v1alpha1.RepositoryLabel] {
				r.touch(e.ObjectNew, was, q)
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			r.touch(e.Object, e.Object.GetLabels(), q)
		},
	}
}

func (r *Reconciler) touch(o client.Object, labels map[string]string, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	ref, ok := identity.Of(o)
	if name := labels[v1alpha1.RepositoryLabel]; ok && name != "" {
		r.records.touch(name, ref)
		q.AddAfter(reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}, changesPause)
	}
}

// notOurs lets changes of the spec, labels and annotations through, and deletions. New objects come from here, but for those that
// are restored from a backup.
var notOurs = predicate.Funcs{
	CreateFunc: func(e event.CreateEvent) bool { return !fieldmanager.Applied(e.Object) },
	UpdateFunc: func(e event.UpdateEvent) bool {
		return predicate.GenerationChangedPredicate{}.Update(e) || predicate.LabelChangedPredicate{}.Update(e) || predicate.AnnotationChangedPredicate{}.Update(e)
	},
}

// homesPause gathers namespaces that are made at the same time, as in a first sync.
const homesPause = 100 * time.Millisecond

// homes wakes the repositories that may declare something in a namespace that was made.
var homes = handler.Funcs{
	CreateFunc: func(_ context.Context, e event.CreateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		for _, name := range []string{v1alpha1.PlatformRepository, e.Object.GetLabels()[v1alpha1.TenantLabel]} {
			q.AddAfter(reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}, homesPause)
		}
	},
}
