package project

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/apply"
	"github.com/kubeop/kubeop/delivery/inventory"
	"github.com/kubeop/kubeop/delivery/isolation"
	"github.com/kubeop/kubeop/delivery/metadata"
)

// confine writes the project's ClusterNetworkPolicy if the API server serves the kind, so that no NetworkPolicy in the namespace can open more than kubeop
// allows. If that needs too many rules, unsaid says so, and an earlier one is deleted: it could refuse what is allowed now.
func (r *Reconciler) confine(ctx context.Context, s *scope) (unsaid, err error) {
	served, err := r.Tier.Served()
	if err != nil {
		return nil, fmt.Errorf("asking whether ClusterNetworkPolicies are served: %w", err)
	}
	if !served {
		return nil, r.unconfine(ctx, s)
	}
	policy, err := isolation.ClusterPolicy(s.namespace, s.labels(), s.network.rules)
	if errors.Is(err, isolation.ErrTooManyRules) {
		return step.GoOn(step.Stop(v1alpha1.ApplyFailedReason, fmt.Errorf("the project has no ClusterNetworkPolicy, only its NetworkPolicy: %w, because ranges of egress "+
			"are inside of others. An administrator of the cluster names fewer of them in spec.egress of tenant.yaml and of policies, in Git", err))), r.unconfine(ctx, s)
	}
	if err != nil {
		return nil, err
	}
	err = s.made.Apply(ctx, policy)
	if apierrors.IsMethodNotSupported(err) || metadata.Unserved(err) {
		return nil, nil // The kind's definition is being deleted; Tier wakes the project when that is over.
	}
	return nil, step.Refused(v1alpha1.ApplyFailedReason, err, apply.ErrForeign)
}

// unconfine deletes the project's ClusterNetworkPolicy if it has one.
func (r *Reconciler) unconfine(ctx context.Context, s *scope) error {
	id := inventory.IDOf(isolation.NewClusterPolicy(s.namespace, nil)).String()
	if !slices.ContainsFunc(s.project.Status.Inventory.Entries, func(e v1alpha1.InventoryEntry) bool { return e.ID == id }) {
		return nil
	}
	return s.made.Remove(ctx, s.labels(), v1alpha1.InventoryEntry{ID: id, Version: isolation.ClusterPolicyKind.Version})
}

// release deletes the ClusterNetworkPolicy of a project whose namespace is gone or left to others, also one that was not recorded.
func (r *Reconciler) release(ctx context.Context, s *scope) error {
	if served, err := r.Tier.Served(); !served || err != nil {
		return err
	}
	return s.made.Withdraw(ctx, s.labels(), isolation.NewClusterPolicy(s.namespace, s.labels()))
}

// onTier wakes all projects when the API server begins or ends to serve ClusterNetworkPolicies.
func (r *Reconciler) onTier() source.Source {
	return source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		r.Tier.OnChange(func() {
			go r.wakeAll(ctx, queue)
		})
		return nil
	})
}
