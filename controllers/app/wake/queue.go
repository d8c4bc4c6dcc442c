// Package wake queues Apps for a Reconcile. All code that may notice that an App needs a Reconcile has the Queue; wake.go of package app
// lists the callers.
package wake

import (
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Queue is the work queue of the App controller. Before Start it drops added Apps, because a controller that starts reconciles every App
// anyway.
type Queue struct {
	Clock clock.PassiveClock

	queue atomic.Pointer[workqueue.TypedRateLimitingInterface[reconcile.Request]]
	// mended has the time at which Retry was last called for each App. unserved has the Apps that wait until the API server serves a kind.
	mended, unserved sync.Map
}

// Start connects the controller's work queue.
func (q *Queue) Start(queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	q.queue.Store(&queue)
}

// Add queues an App.
func (q *Queue) Add(app types.NamespacedName) {
	if queue := q.queue.Load(); queue != nil {
		(*queue).Add(reconcile.Request{NamespacedName: app})
	}
}

// AddAfter queues an App after a delay. Calls during the delay cause no further Reconcile.
func (q *Queue) AddAfter(app types.NamespacedName, after time.Duration) {
	if queue := q.queue.Load(); queue != nil {
		(*queue).AddAfter(reconcile.Request{NamespacedName: app}, after)
	}
}
