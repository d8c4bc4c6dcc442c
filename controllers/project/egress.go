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

// network is what is known of the connections of a project.
type network struct {
	// closed are ranges of the egress that are completely forbidden, and disjoint the files whose rules about egress have nothing in common; set by
	// guard.
	closed, disjoint []string
	// absent are names in spec.network.allowFrom for which the tenant has no project, set by guard.
	absent []string
	// rules are the connections that the project may have, set by connect. allowed is what NetworkPolicies of its apps may open; nil if it never had
	// such.
	rules   isolation.Rules
	allowed *v1alpha1.AllowedNetwork
}

// egress returns the ranges and ports to which the project's pods may connect: what spec.egress of the tenant and of each of its policies allow,
// those that have it. Summary reports ranges that are completely forbidden, and rules that have nothing in common.
func (r *Reconciler) egress(ctx context.Context, s *scope) (ranges []isolation.Range, ports []isolation.Ports, err error) {
	rules, of := s.egressRules()
	reach, err := isolation.Strictest(rules...)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the egress of tenant %s: %w", s.tenant.Name, err)
	}
	s.network.closed, s.network.disjoint = nil, nil
	if len(reach.Ranges) == 0 {
		s.network.disjoint = of
	}
	for _, within := range reach.Ranges {
		except, all, err := r.Networks.Except(ctx, within)
		if err != nil {
			return nil, nil, err
		}
		if all {
			s.network.closed = append(s.network.closed, within.String())
			continue
		}
		open := isolation.Range{CIDR: within.String()}
		for _, network := range except {
			open.Except = append(open.Except, network.String())
		}
		ranges = append(ranges, open)
	}
	return ranges, reach.Ports, nil
}

// egressRules returns the rules about egress that hold for the tenant, and the files that have them.
func (s *scope) egressRules() (rules []v1alpha1.EgressRules, files []string) {
	if ranges := s.tenant.Spec.Egress; len(ranges) > 0 {
		rules, files = append(rules, v1alpha1.EgressRules{CIDRs: ranges}), append(files, "tenant.yaml")
	}
	for i := range s.rules.policies {
		if rule := s.rules.policies[i].Spec.Egress; rule != nil {
			rules, files = append(rules, *rule), append(files, fmt.Sprintf("policies/%s.yaml", s.rules.policies[i].Name))
		}
	}
	return rules, files
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
