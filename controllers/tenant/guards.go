package tenant

import (
	"context"
	"fmt"
	"sync"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/guards"
	"github.com/kubeop/kubeop/delivery/guardrails"
	"github.com/kubeop/kubeop/delivery/isolation"
)

// reportGuards finds out which guards hold for the tenant.
func (r *Reconciler) reportGuards(ctx context.Context, s *scope) error {
	policies := &v1alpha1.PolicyList{}
	if err := r.Client.List(ctx, policies, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing the policies: %w", err)
	}
	mutating, err := r.Mutating.Served()
	if err != nil {
		return fmt.Errorf("asking whether MutatingAdmissionPolicies are served: %w", err)
	}
	admission, err := guards.Read(ctx, r.Client, mutating)
	if err != nil {
		return err
	}
	tier, err := r.Tier.Served()
	if err != nil {
		return fmt.Errorf("asking whether ClusterNetworkPolicies are served: %w", err)
	}
	selected, _ := guardrails.Select(s.tenant, policies.Items)
	of := guards.Cluster{Admission: admission, FlowControl: r.FlowControl, Tier: tier, Version: r.PodSecurity}
	if s.guards, err = of.Of(s.tenant, selected); err != nil {
		return err
	}
	s.unenforced = guards.Note(s.guards)
	return nil
}

// withGuards maps an admission policy of the chart, or its binding, to all tenants.
func (r *Reconciler) withGuards(ctx context.Context, changed client.Object) []reconcile.Request {
	return r.tenants(ctx, changed, func(*v1alpha1.Tenant) bool { return true })
}

// onMutating wakes all tenants when a MutatingAdmissionPolicy of the chart, or its binding, appears or goes. It begins to watch them once the API server serves them.
func (r *Reconciler) onMutating(of cache.Cache) source.Source {
	return source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		var once sync.Once
		watch := func() {
			if served, err := r.Mutating.Served(); err != nil || !served {
				return // When it is served, OnChange says so.
			}
			once.Do(func() { r.watchMutating(ctx, of, queue) })
		}
		r.Mutating.OnChange(func() {
			watch()
			go r.wakeAll(ctx, queue)
		})
		watch()
		return nil
	})
}

func (r *Reconciler) watchMutating(ctx context.Context, of cache.Cache, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	for _, kind := range []client.Object{&admissionregistrationv1.MutatingAdmissionPolicy{}, &admissionregistrationv1.MutatingAdmissionPolicyBinding{}} {
		if err := source.Kind(of, kind, handler.EnqueueRequestsFromMapFunc(r.withGuards), guards.Changed).Start(ctx, queue); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Watching the MutatingAdmissionPolicies; tenants are reconciled at their interval")
		}
	}
}

func (r *Reconciler) wakeAll(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	for _, request := range r.withGuards(ctx, isolation.NewClusterPolicy("", nil)) {
		queue.Add(request)
	}
}

// underPolicy maps a Policy to the tenants that it is for.
func (r *Reconciler) underPolicy(ctx context.Context, changed client.Object) []reconcile.Request {
	policy := []v1alpha1.Policy{*changed.(*v1alpha1.Policy)}
	return r.tenants(ctx, changed, func(tenant *v1alpha1.Tenant) bool {
		selected, _ := guardrails.Select(tenant, policy)
		return len(selected) > 0
	})
}

// tenants returns the tenants which a change concerns. If listing them fails, the error is logged, and they are reconciled at their interval.
func (r *Reconciler) tenants(ctx context.Context, changed client.Object, concerns func(*v1alpha1.Tenant) bool) (requests []reconcile.Request) {
	list := &v1alpha1.TenantList{}
	if err := r.Client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing the tenants to wake; they are reconciled at their interval", "because", changed.GetName())
		return nil
	}
	for i := range list.Items {
		if concerns(&list.Items[i]) {
			requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Name: list.Items[i].Name}})
		}
	}
	return requests
}
