package project

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// takesEffect is after how long the API server certainly judges by changed Guardrails. It is also the pause after a look, or a revocation, that failed.
const takesEffect = 10 * time.Second

// looks are when the NetworkPolicies in namespaces are to be looked at again. For a moment after a change of the Guardrails the API server still accepts
// what the earlier ones allow, also after narrow looked. So narrow has to look again, and looks knows that until it did: the work queue forgets a delay
// when an event wakes the project earlier, and a failed Reconcile is retried as late as retryInterval says, which is the tenant's. Safe for concurrent
// use.
type looks struct {
	mu sync.Mutex
	// at is when NetworkPolicies of a namespace are to be looked at; the zero time if no look is due.
	at map[string]time.Time
	// wake reconciles a project after a time, or earlier. It is set before the first Reconcile.
	wake func(reconcile.Request, time.Duration)
}

// ask makes a look due.
func (l *looks) ask(namespace string, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.at == nil {
		l.at = map[string]time.Time{}
	}
	l.at[namespace] = at
}

// known reports whether a look at the namespace was due since the operator started.
func (l *looks) known(namespace string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, known := l.at[namespace]
	return known
}

// looked ends a look that began at a time. It counts if it was due then.
func (l *looks) looked(namespace string, began time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if at, known := l.at[namespace]; known && !began.Before(at) {
		l.at[namespace] = time.Time{}
	}
}

func (l *looks) forget(namespace string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.at, namespace)
}

// askAgain makes another look due if what NetworkPolicies of apps may open has changed, which may also have been just before the operator started.
func (r *Reconciler) askAgain(s *scope) {
	if s.network.allowed == nil || r.looks.known(s.namespace) && equality.Semantic.DeepEqual(s.network.allowed, s.rules.opened) {
		return
	}
	r.looks.ask(s.namespace, r.Steps.Clock.Now().Add(takesEffect))
}

// remind wakes the project when the next look is due, and when its scope is due again, however this Reconcile ended: the runner of steps does not ask the
// scope after a failure, nor while something is missing. The work queue keeps the earlier of two times.
func (r *Reconciler) remind(s *scope) {
	r.looks.mu.Lock()
	defer r.looks.mu.Unlock()
	request := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(s.project)}
	if again := s.Again(); again > 0 {
		r.looks.wake(request, again)
	}
	at := r.looks.at[s.namespace]
	if at.IsZero() {
		return
	}
	after := at.Sub(r.Steps.Clock.Now())
	if after <= 0 {
		after = takesEffect // It was due, and failed.
	}
	r.looks.wake(request, after)
}

// onLooks wakes a project when a look at its NetworkPolicies is due.
func (r *Reconciler) onLooks() source.Source {
	return source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		r.looks.mu.Lock()
		defer r.looks.mu.Unlock()
		r.looks.wake = queue.AddAfter
		return nil
	})
}
