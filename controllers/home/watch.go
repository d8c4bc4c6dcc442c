package home

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/kubeop/kubeop/delivery/fieldmanager"
	"github.com/kubeop/kubeop/delivery/kube"
)

// WakeOnChange lets a controller reconcile the Tenant or Project that madeFor returns for an object, whenever somebody changes fields of the
// object that kubeop owns. It covers the kinds that the watch follows now and those that it follows later.
func WakeOnChange(watch *kube.Watch, c controller.Controller, madeFor handler.MapFunc) {
	watch.OnKind(func(_ schema.GroupVersionKind, informer cache.Informer) error {
		return c.Watch(&source.Informer{Informer: informer, Handler: handler.EnqueueRequestsFromMapFunc(madeFor), Predicates: []predicate.Predicate{fieldmanager.OwnedFieldsChanged}})
	})
}
