package controllers

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	ctrlcontroller "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/apart"
	"github.com/kubeop/kubeop/delivery/backoff"
	"github.com/kubeop/kubeop/delivery/fair"
)

// headroom is how many times as many objects are reconciled at once as one tenant may have: whatever holds a tenant's workers up, as
// many are left for the others.
const headroom = 2

// burst is how many objects of a tenant are looked at in a row: most are made from the same commit, and its files are at hand for a
// moment after they were read for the first of them. A restart with 1,000 repositories takes twice as long without.
const burst = 10

// options have a controller's objects wait in a queue that tenants share.
func (s *shared) options(controller string, tenantOf func(reconcile.Request) string) ctrlcontroller.Options {
	bounds := fair.Bounds{Places: headroom * s.Concurrency, PerTenant: s.Concurrency, Weight: s.weights.of, Burst: burst}
	return ctrlcontroller.Options{
		MaxConcurrentReconciles: bounds.Places,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](backoff.First, backoff.Last),
		NewQueue: func(_ string, limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
			q := fair.NewWorkQueue(controller+" workers", bounds, tenantOf, limiter, clock.RealClock{})
			s.queues.Store(controller, q)
			return held{q, s.inStep}
		},
	}
}

// evaluationSlice is the processor time that an evaluation may use while others wait. Nearly all take some milliseconds.
const evaluationSlice = 250 * time.Millisecond

// evaluations shares the processes that evaluate among tenants.
func evaluations(o Options, w *weights) apart.Runner {
	r := apart.Runner{Run: o.Evaluate}
	if o.EvaluateProcesses > 0 {
		r.Turn = fair.NewSlices("evaluations", o.EvaluateProcesses, evaluationSlice, w.of, clock.RealClock{}).Run
	}
	return r
}

// wake has an object of a controller looked at. A controller that has not begun looks at all its objects when it does.
func (s *shared) wake(controller string, key types.NamespacedName) {
	if q, ok := s.queues.Load(controller); ok {
		q.(*fair.WorkQueue[reconcile.Request]).Add(reconcile.Request{NamespacedName: key})
	}
}

// tenantOf is whose an object in a tenant's namespace is. A namespace that is nobody's, or not known yet, is by itself.
func (s *shared) tenantOf(r reconcile.Request) string {
	if tenant := s.watch.TenantOf(r.Namespace); tenant != "" {
		return tenant
	}
	return "namespace " + r.Namespace
}

// byItself is whose an object is that is the only one of its kind that its tenant has.
func byItself(r reconcile.Request) string { return "object " + r.Name }

// weights are those of the Tenants, by name.
type weights struct{ sync.Map }

// of returns the weight of a tenant. It never waits.
func (w *weights) of(tenant string) int {
	if weight, ok := w.Load(tenant); ok {
		return weight.(int)
	}
	return 1
}

// follow keeps the weights as the Tenants in a cache say.
func (w *weights) follow(ctx context.Context, objects cache.Cache) error {
	heard := func(tenant *v1alpha1.Tenant) { w.Store(tenant.Name, int(max(1, tenant.Spec.Weight))) }
	return followTenants(ctx, objects, heard, func(name string) { w.Delete(name) })
}

// followTenants has a function called with each Tenant in a cache, and with what changed of one, and another with the names of those
// that go.
func followTenants(ctx context.Context, objects cache.Cache, is func(*v1alpha1.Tenant), gone func(string)) error {
	informer, err := objects.GetInformer(ctx, &v1alpha1.Tenant{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("following the tenants: %w", err)
	}
	heard := func(o any) {
		if tenant, ok := o.(*v1alpha1.Tenant); ok {
			is(tenant)
		}
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: heard, UpdateFunc: func(_, is any) { heard(is) },
		DeleteFunc: func(o any) {
			if name, err := toolscache.DeletionHandlingMetaNamespaceKeyFunc(o); err == nil {
				gone(name)
			}
		},
	})
	return err
}
