package fair

import (
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
)

// WorkQueue is the work queue of a controller that tenants share. It returns ready objects in the order of Queue, and at most as many of
// one tenant at once as Places would admit. Get waits for both, so a controller may have as many workers as there are places.
//
// The queue holds an object once, however often it is added, like controller-runtime's priority queue: the earlier of two times and the
// higher of two priorities count, and an object that is added while it is being processed is returned again afterwards. A priority below 0,
// as for the events of a first list, puts an object behind the other objects of the same tenant, but not behind those of other tenants.
// controller-runtime's queue orders only by priority and arrival. client-go's queue accepts another order, but does not limit what a tenant
// has in progress, and processes an object again when its delay ends although an event came first. Safe for concurrent use.
type WorkQueue[T comparable] struct {
	tenantOf func(T) string
	limiter  workqueue.TypedRateLimiter[T]
	clock    clock.WithDelayedExecution
	meter    meter

	mu     sync.Mutex
	more   *sync.Cond
	shares shares
	queue  Queue[*work[T]]
	// known are the objects that are queued, delayed, or added again while in progress. busy are the objects in progress, with their
	// tenants.
	known   map[T]*work[T]
	busy    map[T]string
	delayed delays[T]
	timer   clock.Timer
	rings   time.Time
	ended   bool
}

var _ priorityqueue.PriorityQueue[string] = (*WorkQueue[string])(nil)

// work is an object that waits to be processed.
type work[T comparable] struct {
	key      T
	tenant   string
	priority int
	// at is when the object becomes ready; zero if it is ready. since is when it became ready.
	at, since time.Time
	// entry is the object's entry in the queue; nil if it is not there. index is its index in delayed.
	entry *Entry[*work[T]]
	index int
}

// NewWorkQueue returns the work queue of a resource. The resource is its label in metrics. tenantOf must not block, and not use the queue.
func NewWorkQueue[T comparable](resource string, b Bounds, tenantOf func(T) string, limiter workqueue.TypedRateLimiter[T], c clock.WithDelayedExecution) *WorkQueue[T] {
	q := &WorkQueue[T]{
		tenantOf: tenantOf, limiter: limiter, clock: c, meter: newMeter(resource), shares: shares{Bounds: b},
		queue: Queue[*work[T]]{Weight: b.Weight, Burst: b.Burst}, known: map[T]*work[T]{}, busy: map[T]string{},
	}
	q.more = sync.NewCond(&q.mu)
	return q
}

// AddWithOpts implements priorityqueue.PriorityQueue.
func (q *WorkQueue[T]) AddWithOpts(o priorityqueue.AddOpts, keys ...T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ended {
		return
	}
	now := q.clock.Now()
	for _, key := range keys {
		after := o.After
		if o.RateLimited {
			if limited := q.limiter.When(key); after == 0 || limited < after {
				after = limited
			}
		}
		q.add(key, ptr.Deref(o.Priority, 0), now, after)
	}
	q.arm(now)
	q.updateMetrics()
}

func (q *WorkQueue[T]) add(key T, priority int, now time.Time, after time.Duration) {
	w := q.known[key]
	if w == nil {
		w = &work[T]{key: key, priority: priority}
		q.known[key] = w
		if after > 0 {
			w.at = now.Add(after)
			q.delayed.add(w)
			return
		}
		q.ready(w, now)
		return
	}
	raised := w.priority < 0 && priority >= 0
	w.priority = max(w.priority, priority)
	switch {
	case !w.at.IsZero() && after <= 0:
		q.delayed.remove(w)
		q.ready(w, now)
	case !w.at.IsZero():
		q.delayed.sooner(w, now.Add(after))
	case raised && w.entry != nil:
		q.queue.Remove(w.entry)
		q.enqueue(w)
	}
}

// ready queues an object. If it is being processed, Done queues it.
func (q *WorkQueue[T]) ready(w *work[T], now time.Time) {
	w.at, w.since = time.Time{}, now
	if _, busy := q.busy[w.key]; !busy {
		q.enqueue(w)
	}
}

func (q *WorkQueue[T]) enqueue(w *work[T]) {
	w.tenant = q.tenantOf(w.key)
	if w.priority < 0 {
		w.entry = q.queue.AddBehind(w.tenant, w)
	} else {
		w.entry = q.queue.Add(w.tenant, w)
	}
	q.more.Signal()
}

// GetWithPriority implements priorityqueue.PriorityQueue.
func (q *WorkQueue[T]) GetWithPriority() (key T, priority int, shutdown bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for !q.ended {
		if w, ok := q.queue.Next(q.admit); ok {
			delete(q.known, w.key)
			q.busy[w.key] = w.tenant
			q.shares.take(w.tenant)
			q.meter.waited(q.clock.Since(w.since))
			q.updateMetrics()
			if q.queue.Len() > 0 {
				q.more.Signal() // Only one worker was woken, but there may be turns for more.
			}
			return w.key, w.priority, false
		}
		q.more.Wait()
	}
	return key, 0, true
}

func (q *WorkQueue[T]) admit(tenant string, _ *work[T]) Verdict {
	if q.shares.admits(tenant) {
		return Take
	}
	return SkipTenant
}

// Done implements workqueue.TypedInterface.
func (q *WorkQueue[T]) Done(key T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	tenant, busy := q.busy[key]
	if !busy {
		return
	}
	delete(q.busy, key)
	q.shares.leave(tenant)
	if w := q.known[key]; w != nil && w.at.IsZero() {
		q.enqueue(w)
	}
	q.more.Signal()
	q.updateMetrics()
}

// arm sets the timer to the end of the next delay.
func (q *WorkQueue[T]) arm(now time.Time) {
	if len(q.delayed) == 0 {
		return
	}
	next := q.delayed[0].at
	if q.timer != nil {
		if !next.Before(q.rings) {
			return
		}
		q.timer.Stop()
	}
	q.rings = next
	q.timer = q.clock.AfterFunc(next.Sub(now), func() { go q.due() })
}

// due makes objects ready whose delay is over.
func (q *WorkQueue[T]) due() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ended {
		return
	}
	q.timer = nil
	now := q.clock.Now()
	for len(q.delayed) > 0 && !q.delayed[0].at.After(now) {
		w := q.delayed[0]
		q.delayed.remove(w)
		q.ready(w, now)
	}
	q.arm(now)
	q.updateMetrics()
}

func (q *WorkQueue[T]) updateMetrics() { q.meter.set(q.queue.Len(), q.shares.taken) }

// Get implements workqueue.TypedInterface.
func (q *WorkQueue[T]) Get() (key T, shutdown bool) {
	key, _, shutdown = q.GetWithPriority()
	return key, shutdown
}

// Add implements workqueue.TypedInterface.
func (q *WorkQueue[T]) Add(key T) { q.AddWithOpts(priorityqueue.AddOpts{}, key) }

// AddAfter implements workqueue.TypedDelayingInterface.
func (q *WorkQueue[T]) AddAfter(key T, after time.Duration) {
	q.AddWithOpts(priorityqueue.AddOpts{After: after}, key)
}

// AddRateLimited implements workqueue.TypedRateLimitingInterface.
func (q *WorkQueue[T]) AddRateLimited(key T) {
	q.AddWithOpts(priorityqueue.AddOpts{RateLimited: true}, key)
}

// Forget implements workqueue.TypedRateLimitingInterface.
func (q *WorkQueue[T]) Forget(key T) { q.limiter.Forget(key) }

// NumRequeues implements workqueue.TypedRateLimitingInterface.
func (q *WorkQueue[T]) NumRequeues(key T) int { return q.limiter.NumRequeues(key) }

// Len is the number of ready objects that wait for their turn.
func (q *WorkQueue[T]) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.queue.Len()
}

// ShutDown makes every Get return at once; waiting objects are dropped.
func (q *WorkQueue[T]) ShutDown() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ended = true
	if q.timer != nil {
		q.timer.Stop()
	}
	q.more.Broadcast()
}

// ShutDownWithDrain is ShutDown, because controllers wait for their workers themselves.
func (q *WorkQueue[T]) ShutDownWithDrain() { q.ShutDown() }

// ShuttingDown implements workqueue.TypedInterface.
func (q *WorkQueue[T]) ShuttingDown() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.ended
}
