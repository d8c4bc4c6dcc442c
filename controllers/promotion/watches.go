package promotion

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// pause collects the changes of a project's apps, of which a delivery makes many.
const pause = time.Second

// SetupWithManager sets up the controller. Its triggers are Projects, and the apps of those that promote and are promoted from.
func (p *Promoter) SetupWithManager(mgr ctrl.Manager, options controller.Options) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("promotion").
		For(&v1alpha1.Project{}, builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}))).
		Watches(&v1alpha1.App{}, p.apped()).
		WithOptions(options).
		Complete(p)
}

// apped wakes the Projects that an App's change concerns.
func (p *Promoter) apped() handler.Funcs {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	wake := func(ctx context.Context, o client.Object, q queue) {
		for _, project := range p.concerned(ctx, o.GetNamespace()) {
			q.AddAfter(reconcile.Request{NamespacedName: project}, pause)
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { wake(ctx, e.Object, q) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) { wake(ctx, e.ObjectNew, q) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { wake(ctx, e.Object, q) },
	}
}

// concerned returns the Projects of the same tenant that promote from or to the project with the namespace.
func (p *Promoter) concerned(ctx context.Context, namespace string) (keys []types.NamespacedName) {
	tenant := v1alpha1.TenantOf(namespace)
	projects := &v1alpha1.ProjectList{}
	if p.Reader.List(ctx, projects, client.InNamespace(v1alpha1.HomeNamespace(tenant)), client.UnsafeDisableDeepCopy) != nil {
		return nil // The cache is not filled yet: every Project comes with its first list.
	}
	for i := range projects.Items {
		project := &projects.Items[i]
		if to := project.Spec.Promotion; to != nil && (v1alpha1.ProjectNamespace(tenant, to.From) == namespace || v1alpha1.ProjectNamespace(tenant, project.Name) == namespace) {
			keys = append(keys, client.ObjectKeyFromObject(project))
		}
	}
	return keys
}
