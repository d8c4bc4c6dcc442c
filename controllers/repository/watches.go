package repository

import (
	"context"

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
)

// SetupWithManager has the controller woken by its Repositories, by hands on what they declare, and by new namespaces, for
// which projects and apps may be waiting.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, objects cache.Cache, options controller.Options) error {
	declared := handler.EnqueueRequestsFromMapFunc(declaredBy)
	c, err := ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.Repository{}, builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}))).
		Watches(&v1alpha1.Tenant{}, declared, builder.WithPredicates(handsOn)).
		Watches(&v1alpha1.Project{}, declared, builder.WithPredicates(handsOn)).
		Watches(&v1alpha1.App{}, declared, builder.WithPredicates(handsOn)).
		WithOptions(options).
		Build(reconcile.AsReconciler(r.Client, r))
	if err != nil {
		return err
	}
	r.Watch.OnKind(func(kind *metav1.PartialObjectMetadata) error {
		if kind.Kind != "Namespace" {
			return nil
		}
		return c.Watch(source.Kind(objects, kind, handler.TypedEnqueueRequestsFromMapFunc(waitingFor), comes))
	})
	return nil
}

// declaredBy maps an object to the repository that declares it.
func declaredBy(_ context.Context, o client.Object) []reconcile.Request {
	name := o.GetLabels()[v1alpha1.RepositoryLabel]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: name}}}
}

// handsOn lets changes of the spec, labels and annotations through, and deletions; new objects come from here.
var handsOn = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false },
	UpdateFunc: func(e event.UpdateEvent) bool {
		return predicate.GenerationChangedPredicate{}.Update(e) || predicate.LabelChangedPredicate{}.Update(e) || predicate.AnnotationChangedPredicate{}.Update(e)
	},
}

// waitingFor maps a namespace to the repositories that may declare something in it.
func waitingFor(_ context.Context, o *metav1.PartialObjectMetadata) []reconcile.Request {
	return []reconcile.Request{
		{NamespacedName: types.NamespacedName{Name: v1alpha1.PlatformRepository}},
		{NamespacedName: types.NamespacedName{Name: o.Labels[v1alpha1.TenantLabel]}},
	}
}

// comes lets only new objects through.
var comes = predicate.TypedFuncs[*metav1.PartialObjectMetadata]{
	UpdateFunc: func(event.TypedUpdateEvent[*metav1.PartialObjectMetadata]) bool { return false },
	DeleteFunc: func(event.TypedDeleteEvent[*metav1.PartialObjectMetadata]) bool { return false },
}
