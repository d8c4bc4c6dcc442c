package rollup

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// createPause is Pause for apps that are created.
const createPause = Pause / 2

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// Handler wakes the object of an app after a pause, in which further events cause no further Reconcile.
func Handler(ownerOf func(labels map[string]string) []reconcile.Request) handler.Funcs {
	wake := func(app client.Object, q queue, after time.Duration) {
		for _, r := range ownerOf(app.GetLabels()) {
			q.AddAfter(r, after)
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { wake(e.Object, q, createPause) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) { wake(e.ObjectNew, q, Pause) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { wake(e.Object, q, Pause) },
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

// Pace bounds how often changed numbers are written to the status of an owner that other events wake meanwhile: once in Pause. The zero value has written
// none. Safe for concurrent use.
type Pace struct {
	mu sync.Mutex
	at map[types.UID]time.Time
}

// Take returns 0 if changed numbers may be written now, and otherwise after how long.
func (p *Pace) Take(owner types.UID, now time.Time) (rest time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if rest = p.at[owner].Add(Pause).Sub(now); rest > 0 && rest <= Pause {
		return rest
	}
	if p.at == nil {
		p.at = map[types.UID]time.Time{}
	}
	p.at[owner] = now
	return 0
}

// Forget drops a deleted owner.
func (p *Pace) Forget(owner types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.at, owner)
}
