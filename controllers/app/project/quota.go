package project

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/kubeop/kubeop/controllers/app/wake"
	"github.com/kubeop/kubeop/delivery/kube"
	"github.com/kubeop/kubeop/delivery/quota"
)

// FollowQuotas returns a function for OnKind of a kube.Watch that retries the Apps of a namespace when the quota of the namespace allows more.
func FollowQuotas(q *wake.Queue, c controller.Controller, apps func(ctx context.Context, namespace string) []reconcile.Request) func(schema.GroupVersionKind, cache.Informer) error {
	raised := func(ctx context.Context, e event.UpdateEvent, _ workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		for _, app := range apps(ctx, e.ObjectNew.GetNamespace()) {
			q.Retry(app.NamespacedName, 0)
		}
	}
	return func(kind schema.GroupVersionKind, informer cache.Informer) error {
		if kind != corev1.SchemeGroupVersion.WithKind("ResourceQuota") {
			return nil
		}
		return c.Watch(&source.Informer{Informer: informer, Handler: handler.Funcs{UpdateFunc: raised}, Predicates: []predicate.Predicate{quotaRaised}})
	}
}

// quotaRaised lets the change of a project's quota through with which the namespace may have more. It compares what the status says: the API server refuses
// objects by that, and not by the spec.
var quotaRaised = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false },
	DeleteFunc: func(event.DeleteEvent) bool { return false },
	UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectNew.GetName() == quota.Name && allowsMore(hard(e.ObjectOld), hard(e.ObjectNew))
	},
}

// hard returns what a quota of a kube.Watch allows now.
func hard(o client.Object) corev1.ResourceList {
	live := &corev1.ResourceQuota{}
	if err := kube.DecodeHeld(o, live); err != nil {
		return nil
	}
	return live.Status.Hard
}

// allowsMore reports whether a resource has a higher limit than before, or no longer has one. A quota without limits in its status is new, and allows nothing.
func allowsMore(was, is corev1.ResourceList) bool {
	if len(was) == 0 {
		return len(is) > 0
	}
	for resource, limit := range was {
		if now, limited := is[resource]; !limited && len(is) > 0 || now.Cmp(limit) > 0 {
			return true
		}
	}
	return false
}
