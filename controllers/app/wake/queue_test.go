package wake

import (
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// TestAppsAreQueuedOnceTheControllerHasStarted: before that they are dropped, and an App that is added again during its delay is queued once.
func TestAppsAreQueuedOnceTheControllerHasStarted(t *testing.T) {
	web := types.NamespacedName{Namespace: "ns", Name: "web"}
	for name, tc := range map[string]struct {
		before, after func(*Queue)
		// at is the number of queued Apps at once, and later that after a minute.
		at, later int
	}{
		"before the start":        {before: func(q *Queue) { q.Add(web); q.AddAfter(web, time.Second) }},
		"after the start":         {after: func(q *Queue) { q.Add(web) }, at: 1, later: 1},
		"twice":                   {after: func(q *Queue) { q.Add(web); q.Add(web) }, at: 1, later: 1},
		"after a delay":           {after: func(q *Queue) { q.AddAfter(web, time.Second) }, later: 1},
		"twice during a delay":    {after: func(q *Queue) { q.AddAfter(web, time.Second); q.AddAfter(web, 2*time.Second) }, later: 1},
		"another after the delay": {after: func(q *Queue) { q.Add(web); q.AddAfter(types.NamespacedName{Name: "api"}, time.Second) }, at: 1, later: 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q, queue := &Queue{}, workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
				defer queue.ShutDown()
				if tc.before != nil {
					tc.before(q)
				}
				q.Start(queue)
				if tc.after != nil {
					tc.after(q)
				}
				synctest.Wait()
				if n := queue.Len(); n != tc.at {
					t.Errorf("%d Apps are queued at once, want %d", n, tc.at)
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				if n := queue.Len(); n != tc.later {
					t.Errorf("%d Apps are queued after a minute, want %d", n, tc.later)
				}
				if tc.later > 0 {
					if first, _ := queue.Get(); first.NamespacedName != web {
						t.Errorf("%s is queued first", first)
					}
				}
			})
		})
	}
}
