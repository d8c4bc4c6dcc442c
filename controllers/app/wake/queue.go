// Package wake queues Apps for a Reconcile. Everything that may notice that an App is out of date has the Queue; wake.go of package app
// lists it.
package wake

import (
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Queue is the work queue of the App controller. The zero value drops what is added until Start: a controller that starts reconciles
// every App.
type Queue struct {
	queue atomic.Pointer[workqueue.TypedRateLimitingInterface[reconcile.Request]]
}

// Start has Apps added to the controller's work queue from now on.
func (q *Queue) Start(queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	q.queue.Store(&queue)
}

// Add has an App reconciled.
func (q *Queue) Add(app types.NamespacedName) {
	if queue := q.queue.Load(); queue != nil {
		(*queue).Add(reconcile.Request{NamespacedName: app})
	}
}

// AddAfter has an App reconciled after a while, once for all calls meanwhile.
func (q *Queue) AddAfter(app types.NamespacedName, after time.Duration) {
	if queue := q.queue.Load(); queue != nil {
		(*queue).AddAfter(reconcile.Request{NamespacedName: app}, after)
	}
}
