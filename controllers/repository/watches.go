package repository

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	"github.com/kubeop/kubeop/controllers/credentials"
	"github.com/kubeop/kubeop/controllers/usage"
	"github.com/kubeop/kubeop/delivery/fieldmanager"
	"github.com/kubeop/kubeop/gitops/identity"
)

// SetupWithManager sets up the controller. Its triggers are Repositories, changes by others to declared objects, new namespaces (projects
// and apps may wait for them), the Secrets that Repositories name (in secrets), keys of the push hook, and answers of remotes. keys is nil if
// the operator serves no hook.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, secrets, keys cache.Cache, options controller.Options) error {
	if err := index(context.Background(), mgr.GetFieldIndexer()); err != nil {
		return err
	}
	r.credentials = credentials.Cache{Reader: r.Direct, Metadata: r.Secrets, Named: r.names, Clock: r.Steps.Clock}
	b := ctrl.NewControllerManagedBy(mgr)
	if keys != nil {
		b = b.WatchesRawSource(source.Kind(keys, &corev1.Secret{}, handler.TypedEnqueueRequestsFromMapFunc(
			func(ctx context.Context, key *corev1.Secret) []reconcile.Request { return r.naming(ctx, key) })))
	}
	c, err := b.
		For(&v1alpha1.Repository{}, builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}))).
		Watches(&v1alpha1.Policy{}, r.changedByOthers(), builder.WithPredicates(notOurs)).
		Watches(&v1alpha1.Registry{}, r.changedByOthers(), builder.WithPredicates(notOurs)).
		Watches(&v1alpha1.PriceList{}, r.changedByOthers(), builder.WithPredicates(notOurs)).
		Watches(&v1alpha1.Cluster{}, r.changedByOthers(), builder.WithPredicates(notOurs)).
		Watches(&v1alpha1.Cluster{}, handler.EnqueueRequestsFromMapFunc(r.all), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.Tenant{}, r.changedByOthers(), builder.WithPredicates(notOurs)).
		Watches(&v1alpha1.Tenant{}, handler.EnqueueRequestsFromMapFunc(own), builder.WithPredicates(termsChanged)).
		Watches(&v1alpha1.Policy{}, handler.EnqueueRequestsFromMapFunc(r.Usage.Budgets.UnderPolicy), builder.WithPredicates(usage.QuotaChanged)).
		Watches(&v1alpha1.Project{}, r.changedByOthers(), builder.WithPredicates(notOurs)).
		Watches(&v1alpha1.App{}, r.changedByOthers(), builder.WithPredicates(notOurs)).
		WatchesRawSource(source.Kind(secrets, credentials.MetadataOnly(), handler.TypedEnqueueRequestsFromMapFunc(
			func(ctx context.Context, secret *metav1.PartialObjectMetadata) []reconcile.Request {
				return r.naming(ctx, secret)
			}))).
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
		return c.Watch(&source.Informer{Informer: informer, Handler: newNamespaces})
	})
	return nil
}

// own maps a tenant to the tenant's own repository. For the platform repository, changes of the Tenants that it declares are a trigger of
// their own.
func own(_ context.Context, tenant client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: tenant.GetName()}}}
}

// all are all Repositories: where their projects are follows from the Clusters.
func (r *Reconciler) all(ctx context.Context, _ client.Object) (requests []reconcile.Request) {
	repositories := &v1alpha1.RepositoryList{}
	if err := r.Client.List(ctx, repositories, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing the repositories after a Cluster changed") // They are reconciled when their interval is over.
	}
	for i := range repositories.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&repositories.Items[i])})
	}
	return requests
}

// termsChanged passes updates of a Tenant that change its policies, its clusters, its limits, its budget, what its projects may have of that, its freeze windows, or whether it is frozen.
var termsChanged = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false },
	UpdateFunc: func(e event.UpdateEvent) bool {
		was, is := e.ObjectOld.(*v1alpha1.Tenant), e.ObjectNew.(*v1alpha1.Tenant)
		return was.Spec.Frozen != is.Spec.Frozen || !equality.Semantic.DeepEqual(was.Spec.Policies, is.Spec.Policies) ||
			!equality.Semantic.DeepEqual(was.Spec.Limits, is.Spec.Limits) || !equality.Semantic.DeepEqual(was.Spec.Freeze, is.Spec.Freeze) ||
			!equality.Semantic.DeepEqual(was.Spec.Clusters, is.Spec.Clusters) ||
			!equality.Semantic.DeepEqual(was.Spec.Budget, is.Spec.Budget) || !equality.Semantic.DeepEqual(was.Spec.Quota, is.Spec.Quota)
	},
	DeleteFunc: func(event.DeleteEvent) bool { return false },
}

// wakes sets the function that wakes a repository when its remote has answered.
func (r *Reconciler) wakes(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	r.Commits.Wake = func(name types.NamespacedName) { queue.Add(reconcile.Request{NamespacedName: name}) }
	r.Previews.WakeBy(r.Commits.Wake)
	return nil
}

// changesPause collects changes that occur together, such as the deletions of one commit.
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

// notOurs passes changes of the spec, labels and annotations, and deletions. A new object comes from this controller, unless kubeop's field
// manager is missing, as after a restore from a backup.
var notOurs = predicate.Funcs{
	CreateFunc: func(e event.CreateEvent) bool { return !fieldmanager.Applied(e.Object) },
	UpdateFunc: func(e event.UpdateEvent) bool {
		return predicate.GenerationChangedPredicate{}.Update(e) || predicate.LabelChangedPredicate{}.Update(e) || predicate.AnnotationChangedPredicate{}.Update(e)
	},
}

// namespacePause collects namespaces that are created at the same time, as in a first sync.
const namespacePause = 100 * time.Millisecond

// newNamespaces wakes the repositories that may declare an object in a new namespace.
var newNamespaces = handler.Funcs{
	CreateFunc: func(_ context.Context, e event.CreateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		for _, name := range []string{v1alpha1.PlatformRepository, e.Object.GetLabels()[v1alpha1.TenantLabel]} {
			q.AddAfter(reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}, namespacePause)
		}
	},
}
