package rollup

import (
	"context"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// countPause is Pause for apps that are created or deleted.
const countPause = Pause / 2

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// Handler wakes the object of an app after a pause, in which further events cause no further Reconcile.
func Handler(ownerOf func(labels map[string]string) []reconcile.Request) handler.Funcs {
	wake := func(app client.Object, q queue) {
		for _, r := range ownerOf(app.GetLabels()) {
			q.AddAfter(r, countPause)
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { wake(e.Object, q) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			for _, r := range ownerOf(e.ObjectNew.GetLabels()) {
				q.AddAfter(r, Pause)
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { wake(e.Object, q) },
	}
}

// Changed passes updates of an App that change what is counted of it.
var Changed = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		was, is := unreadyOf(e.ObjectOld.(*v1alpha1.App)), unreadyOf(e.ObjectNew.(*v1alpha1.App))
		if was == nil || is == nil {
			return was != is
		}
		return *was != *is
	},
}
