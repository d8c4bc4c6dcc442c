package report

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/credentials"
	"github.com/kubeop/kubeop/controllers/declared"
)

// pause collects the changes of a Repository and its apps, of which a delivery makes many.
const pause = time.Second

// SetupWithManager sets up the controller. Its triggers are Repositories and what those that report declare.
func (r *Reporter) SetupWithManager(mgr ctrl.Manager, options controller.Options) error {
	declared := waking(func(o client.Object) string {
		return known(o.GetLabels()[v1alpha1.RepositoryLabel], r.reports)
	})
	return ctrl.NewControllerManagedBy(mgr).
		Named("report").
		For(&v1alpha1.Repository{}).
		Watches(&v1alpha1.Tenant{}, declared).
		Watches(&v1alpha1.Project{}, declared).
		Watches(&v1alpha1.App{}, declared).
		WithOptions(options).
		Complete(r)
}

// SetupWithManager sets up the controller. Its triggers are Tenants, and the apps and Repositories of those with receivers. What failed is sent
// again at once when the Secret of its receiver (in secrets) changes.
func (n *Notifier) SetupWithManager(mgr ctrl.Manager, secrets cache.Cache, options controller.Options) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("notification").
		For(&v1alpha1.Tenant{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.App{}, waking(func(o client.Object) string { return known(o.GetLabels()[v1alpha1.TenantLabel], n.notifies) })).
		Watches(&v1alpha1.Repository{}, waking(func(o client.Object) string { return known(o.GetName(), n.notifies) })).
		WatchesRawSource(source.Kind(secrets, credentials.MetadataOnly(), handler.TypedEnqueueRequestsFromMapFunc(n.hurry))).
		WithOptions(options).
		Complete(n)
}

// known returns the name if it is one of those that matter, else "".
func known(name string, is func(string) bool) string {
	if name != "" && is(name) {
		return name
	}
	return ""
}

// waking wakes the object of the name that of returns for an object; "" is none.
func waking(of func(client.Object) string) handler.Funcs {
	return declared.Later(pause, func(_ context.Context, o client.Object) []types.NamespacedName {
		if name := of(o); name != "" {
			return []types.NamespacedName{{Name: name}}
		}
		return nil
	})
}
