package project

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/apply"
	"github.com/kubeop/kubeop/delivery/denial"
	"github.com/kubeop/kubeop/delivery/inventory"
	"github.com/kubeop/kubeop/delivery/isolation"
	"github.com/kubeop/kubeop/delivery/metadata"
)

// going is when to look again at a kind whose definition is being deleted: it may be there again without an event.
const going = 10 * time.Second

// confine writes the project's ClusterNetworkPolicy if the API server serves the kind, so that no NetworkPolicy in the namespace can open more than kubeop
// allows. The project has its other guardrails whatever becomes of it; the error says why it has none, or an earlier one.
func (r *Reconciler) confine(ctx context.Context, s *scope) error {
	served, err := r.Tier.Served()
	if err != nil {
		return unconfined(fmt.Errorf("asking whether ClusterNetworkPolicies are served: %w", err))
	}
	if !served {
		return unconfined(r.unconfine(ctx, s))
	}
	policy, err := isolation.ClusterPolicy(s.namespace, s.labels(), s.network.rules)
	if err == nil {
		err = s.made.Apply(ctx, policy)
		if leaving(err) {
			s.again, err = going, nil
		}
		return unconfined(err)
	}
	if left := r.unconfine(ctx, s); left != nil { // It could refuse what is allowed now.
		return unconfined(left)
	}
	if errors.Is(err, isolation.ErrTooManyRules) {
		err = step.Stop(v1alpha1.ApplyFailedReason, fmt.Errorf("the project has no ClusterNetworkPolicy, only its NetworkPolicy: %w, because ranges of egress "+
			"are inside of others. An administrator of the cluster names fewer of them in spec.egress of tenant.yaml and of policies, in Git", err))
	}
	return step.GoOn(err)
}

// unconfined ends the step that needed a ClusterNetworkPolicy to be written or deleted. The later steps run.
func unconfined(err error) error {
	if err == nil {
		return nil
	}
	return step.GoOn(step.Refused(v1alpha1.ApplyFailedReason, err, apply.ErrForeign))
}

// leaving reports whether a write failed because the definition of its kind is being deleted, or was.
func leaving(err error) bool {
	return apierrors.IsMethodNotSupported(err) || metadata.Unserved(err) || denial.DefinitionEnds(err)
}

// entry is what the inventory has of the project's ClusterNetworkPolicy.
func (s *scope) entry() v1alpha1.InventoryEntry {
	return v1alpha1.InventoryEntry{ID: inventory.IDOf(isolation.NewClusterPolicy(s.namespace, nil)).String(), Version: isolation.ClusterPolicyKind.Version}
}

// confined reports whether the inventory has the project's ClusterNetworkPolicy.
func (s *scope) confined() bool {
	return slices.ContainsFunc(s.project.Status.Inventory.Entries, func(e v1alpha1.InventoryEntry) bool { return e.ID == s.entry().ID })
}

// unconfine deletes the project's ClusterNetworkPolicy if it has one.
func (r *Reconciler) unconfine(ctx context.Context, s *scope) error {
	if !s.confined() {
		return nil
	}
	return s.made.Remove(ctx, s.labels(), s.entry())
}

// release deletes the ClusterNetworkPolicy of a project whose namespace is gone or left to others, also one that was not recorded. An operator that may not
// read any has recorded none.
func (r *Reconciler) release(ctx context.Context, s *scope) error {
	served, err := r.Tier.Served()
	if err != nil {
		return err
	}
	if !served {
		return r.unconfine(ctx, s)
	}
	err = s.made.Withdraw(ctx, s.labels(), isolation.NewClusterPolicy(s.namespace, s.labels()))
	if apierrors.IsForbidden(err) && !s.confined() {
		return nil
	}
	return err
}
