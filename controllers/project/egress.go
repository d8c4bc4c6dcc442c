package project

import (
	"context"
	"fmt"
	"net/netip"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/isolation"
)

// Networks finds the addresses that no pod of a tenant may reach: the cluster's own networks, and the metadata services of clouds.
type Networks interface {
	// Except returns the forbidden addresses within a range. all: they cover the whole range.
	Except(ctx context.Context, within netip.Prefix) (except []netip.Prefix, all bool, err error)
	// OnChange registers f, which is called when the result of Except may have changed. f must not block.
	OnChange(f func())
}

// egress returns the ranges to which the tenant's pods may connect. Summary reports ranges that are completely forbidden.
func (r *Reconciler) egress(ctx context.Context, s *scope) ([]isolation.Range, error) {
	var ranges []isolation.Range
	s.closed = nil
	for _, text := range s.tenant.Spec.Egress {
		within, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("reading egress %q of tenant %s: %w", text, s.tenant.Name, err)
		}
		except, all, err := r.Networks.Except(ctx, within)
		if err != nil {
			return nil, err
		}
		if all {
			s.closed = append(s.closed, text)
			continue
		}
		open := isolation.Range{CIDR: text}
		for _, network := range except {
			open.Except = append(open.Except, network.String())
		}
		ranges = append(ranges, open)
	}
	return ranges, nil
}

// onNetworks wakes all projects when the networks of the cluster have changed.
func (r *Reconciler) onNetworks() source.Source {
	return source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		r.Networks.OnChange(func() {
			go r.wakeAll(ctx, queue)
		})
		return nil
	})
}

func (r *Reconciler) wakeAll(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	projects := &v1alpha1.ProjectList{}
	if err := r.Client.List(ctx, projects, client.UnsafeDisableDeepCopy); err != nil {
		return // The projects are reconciled at their interval.
	}
	for i := range projects.Items {
		queue.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&projects.Items[i])})
	}
}
