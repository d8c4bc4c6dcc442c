package app

import (
	"context"

	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	"github.com/kubeop/kubeop/delivery/health"
)

// SetupWithManager has the controller woken by its Apps, by what they deliver, by their project, and by ended Helm
// actions, which come over released.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, objects cache.Cache, released <-chan event.GenericEvent, options controller.Options) error {
	c, err := ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.App{}, builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}))).
		Watches(&v1alpha1.Project{}, handler.EnqueueRequestsFromMapFunc(r.appsOf), builder.WithPredicates(readyChanged)).
		WatchesRawSource(source.Channel(released, &handler.EnqueueRequestForObject{})).
		WithOptions(options).
		Build(reconcile.AsReconciler(r.Client, r))
	if err != nil {
		return err
	}
	r.Watch.OnKind(func(kind *metav1.PartialObjectMetadata) error {
		if health.HasStatus(kind.GroupVersionKind()) {
			return c.Watch(source.Kind(objects, kind, handler.TypedEnqueueRequestsFromMapFunc(appOf)))
		}
		return c.Watch(source.Kind(objects, kind, handler.TypedEnqueueRequestsFromMapFunc(appOf), apply.HandsOn))
	})
	// Pods are not applied but made by what is, and what they suffer is what an app waits for.
	return mgr.Add(follower{func(ctx context.Context) error {
		return r.Watch.Follow(ctx, corev1.SchemeGroupVersion.WithKind("Pod"))
	}})
}

// follower runs once, on the leader.
type follower struct {
	start func(context.Context) error
}

// Start runs the function.
func (f follower) Start(ctx context.Context) error { return f.start(ctx) }

// appOf maps an object to the app that delivers it.
func appOf(_ context.Context, o *metav1.PartialObjectMetadata) []reconcile.Request {
	name := o.Labels[v1alpha1.AppLabel]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: o.Namespace, Name: name}}}
}

// appsOf maps a project to its apps.
func (r *Reconciler) appsOf(ctx context.Context, project client.Object) []reconcile.Request {
	apps := &v1alpha1.AppList{}
	namespace := project.(*v1alpha1.Project).Status.Namespace
	if err := r.Client.List(ctx, apps, client.InNamespace(namespace)); err != nil || namespace == "" {
		return nil
	}
	var requests []reconcile.Request
	for i := range apps.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&apps.Items[i])})
	}
	return requests
}

// readyChanged lets a project's change through when it becomes ready or stops being so.
var readyChanged = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		was, is := e.ObjectOld.(*v1alpha1.Project), e.ObjectNew.(*v1alpha1.Project)
		return conditions.IsReady(was) != conditions.IsReady(is)
	},
}
