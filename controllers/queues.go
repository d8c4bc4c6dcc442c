package controllers

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	ctrlcontroller "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/apart"
	"github.com/kubeop/kubeop/delivery/backoff"
	"github.com/kubeop/kubeop/delivery/fair"
)

// queues are the work queues and evaluation processes that tenants share.
type queues struct {
	// perTenant is how many objects of each kind are reconciled at once for one tenant.
	perTenant int
	// all are the work queues by the name of their controller, and weights are the weights of tenants in these queues.
	all     sync.Map
	weights *weights
	// inStep is closed when the watches of the kinds that all use had their first lists.
	inStep chan struct{}
	// apart evaluates the input of tenants in processes that the tenants share.
	apart apart.Runner
}

func newQueues(o Options) *queues {
	w := &weights{}
	return &queues{perTenant: o.Concurrency, weights: w, inStep: make(chan struct{}), apart: evaluations(o, w)}
}

// headroom is the number of all workers divided by the number that one tenant may occupy. With 2, half of the workers are free for other
// tenants even if one tenant's are all stuck.
const headroom = 2

// burst is how many objects of one tenant are reconciled in a row: most are made from the same commit, and its files stay cached for a
// short time. Without it a restart with 1,000 repositories takes twice as long.
const burst = 10

// options gives a controller a work queue that tenants share fairly.
func (q *queues) options(controller string, tenantOf func(reconcile.Request) string) ctrlcontroller.Options {
	bounds := fair.Bounds{Places: headroom * q.perTenant, PerTenant: q.perTenant, Weight: q.weights.of, Burst: burst}
	return ctrlcontroller.Options{
		MaxConcurrentReconciles: bounds.Places,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](backoff.First, backoff.Last),
		NewQueue: func(_ string, limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
			queue := fair.NewWorkQueue(controller+" workers", bounds, tenantOf, limiter, realClock)
			q.all.Store(controller, queue)
			return held{queue, q.inStep}
		},
	}
}

// evaluationSlice is the processor time that an evaluation may use while other evaluations wait. Nearly all need some milliseconds.
const evaluationSlice = 250 * time.Millisecond

// evaluations shares the evaluation processes among tenants.
func evaluations(o Options, w *weights) apart.Runner {
	r := apart.Runner{Run: o.Evaluate}
	if o.EvaluateProcesses > 0 {
		r.Turn = fair.NewSlices("evaluations", o.EvaluateProcesses, evaluationSlice, w.of, realClock).Run
	}
	return r
}

// wake adds an object to a controller's work queue. A controller that has not started reconciles all its objects when it starts.
func (q *queues) wake(controller string, key types.NamespacedName) { q.wakeAfter(controller, key, 0) }

// wakeAfter is wake after a pause, in which further calls change nothing.
func (q *queues) wakeAfter(controller string, key types.NamespacedName, pause time.Duration) {
	if queue, ok := q.all.Load(controller); ok {
		queue.(*fair.WorkQueue[reconcile.Request]).AddAfter(reconcile.Request{NamespacedName: key}, pause)
	}
}

// tenantOf returns the tenant of an object's namespace. A namespace without a known tenant takes turns like a tenant.
func (c *cluster) tenantOf(r reconcile.Request) string {
	if tenant := c.watch.TenantOf(r.Namespace); tenant != "" {
		return tenant
	}
	return "namespace " + r.Namespace
}

// byItself is the name under which an object takes turns if its tenant has only one object of the kind.
func byItself(r reconcile.Request) string { return "object " + r.Name }

// weights are the weights of the Tenants, by name.
type weights struct{ sync.Map }

// of returns the weight of a tenant. It never waits.
func (w *weights) of(tenant string) int {
	if weight, ok := w.Load(tenant); ok {
		return weight.(int)
	}
	return 1
}

// follow keeps the weights up to date with the Tenants in a cache.
func (w *weights) follow(ctx context.Context, objects cache.Cache) error {
	set := func(tenant *v1alpha1.Tenant) { w.Store(tenant.Name, int(max(1, tenant.Spec.Weight))) }
	return followTenants(ctx, objects, set, func(name string) { w.Delete(name) })
}

// followTenants calls is with each Tenant in a cache and after each change, and gone with the name of each deleted Tenant.
func followTenants(ctx context.Context, objects cache.Cache, is func(*v1alpha1.Tenant), gone func(string)) error {
	informer, err := objects.GetInformer(ctx, &v1alpha1.Tenant{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("following the tenants: %w", err)
	}
	set := func(o any) {
		if tenant, ok := o.(*v1alpha1.Tenant); ok {
			is(tenant)
		}
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: set, UpdateFunc: func(_, is any) { set(is) },
		DeleteFunc: func(o any) {
			if name, err := toolscache.DeletionHandlingMetaNamespaceKeyFunc(o); err == nil {
				gone(name)
			}
		},
	})
	if err != nil {
		return fmt.Errorf("following the tenants: %w", err)
	}
	return nil
}

// held is a work queue that returns nothing until a channel is closed. The channel is closed at the operator's end at the latest.
type held struct {
	*fair.WorkQueue[reconcile.Request]
	until <-chan struct{}
}

// GetWithPriority implements priorityqueue.PriorityQueue.
func (h held) GetWithPriority() (key reconcile.Request, priority int, shutdown bool) {
	<-h.until
	return h.WorkQueue.GetWithPriority()
}

// Get implements workqueue.TypedInterface.
func (h held) Get() (key reconcile.Request, shutdown bool) {
	<-h.until
	return h.WorkQueue.Get()
}
