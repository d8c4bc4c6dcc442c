// Package home is what Tenants and Projects do alike: make, mark and remove the namespace that is theirs.
package home

import (
	"context"
	"errors"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/apply"
	"github.com/kubeop/kubeop/delivery/namespace"
)

// Home is a namespace and whose it is.
type Home struct {
	// Direct reads and writes past any cache.
	Direct client.Client
	Name   string
	Owner  namespace.Owner
}

// Make makes the namespace, held to a Pod Security level. It stops where the namespace is somebody else's, and waits where
// an earlier one of the name is still being deleted.
func (h Home) Make(ctx context.Context, made *apply.Ledger, podSecurity string) error {
	err := namespace.Claim(ctx, h.Direct, h.Name, h.Owner)
	switch {
	case errors.Is(err, namespace.ErrTaken), errors.Is(err, namespace.ErrInherited):
		return step.Stop(v1alpha1.NamespaceTakenReason, err)
	case errors.Is(err, namespace.ErrLeaving):
		return step.Wait(v1alpha1.ProgressingReason, 2*time.Second, "%w", err)
	case err != nil:
		return err
	}
	return made.Apply(ctx, namespace.Object(h.Name, h.Owner, podSecurity))
}

// Remove deletes the namespace and waits until it is gone with all that is in it. Under the policy Orphan it stays.
func (h Home) Remove(ctx context.Context, policy v1alpha1.DeletionPolicy) error {
	if policy == v1alpha1.DeletionOrphan {
		return nil
	}
	left, err := namespace.Remove(ctx, h.Direct, h.Name, h.Owner.Labels)
	if err != nil {
		return err
	}
	if left != "" {
		return step.Wait(v1alpha1.DeletingReason, time.Second, "%s", left)
	}
	return nil
}
