package report

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// pause collects the changes of a Repository and its apps, of which a delivery makes many.
const pause = time.Second

// SetupWithManager sets up the controller. Its triggers are Repositories and what those that report declare.
func (r *Reporter) SetupWithManager(mgr ctrl.Manager, options controller.Options) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("report").
		For(&v1alpha1.Repository{}).
		Watches(&v1alpha1.Tenant{}, r.declared()).
		Watches(&v1alpha1.Project{}, r.declared()).
		Watches(&v1alpha1.App{}, r.declared()).
		WithOptions(options).
		Complete(r)
}

// declared wakes the Repository that declares an object, if it reports.
func (r *Reporter) declared() handler.Funcs {
	wake := func(o client.Object, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		if name := o.GetLabels()[v1alpha1.RepositoryLabel]; name != "" && r.reports(name) {
			q.AddAfter(reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}, pause)
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			wake(e.Object, q)
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			wake(e.ObjectNew, q)
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			wake(e.Object, q)
		},
	}
}
