package home

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/namespace"
	"github.com/kubeop/kubeop/delivery/pvc"
)

// Removal says how a home is removed.
type Removal struct {
	// Policy Orphan keeps everything.
	Policy v1alpha1.DeletionPolicy
	// Claims says which claims may go.
	Claims pvc.Terms
	// Deployer deletes the claims that go, and what would hold the namespace. Nil: there are no pods and claims, and nothing is
	// deleted one by one.
	Deployer client.Client
	// Kinds are those of which the deployer may have made objects.
	Kinds []schema.GroupResource
	// Grace is how long pods may take to end, from the deletion of the Tenant or Project on; then they are deleted without waiting.
	Grace time.Duration
}

// quotaDelay is how long the API server may take to keep everyone from making claims once the quota says so: its admission reads
// quotas from a watch.
const quotaDelay = 500 * time.Millisecond

// Remove deletes the claims that may go, what else would hold the namespace, and then the namespace, and waits until it is gone with
// all that is in it; or leaves it for the sake of claims that hold data. Then all access ends; quota and network isolation
// stay.
//
// No request deletes a namespace only if it holds no claim, and Kubernetes empties it seconds later. So none can be made before
// the claims are looked at, and those that go are deleted as they were looked at: one that is bound meanwhile is looked at again.
func (h Home) Remove(ctx context.Context, d Removal) error {
	if d.Policy == v1alpha1.DeletionOrphan {
		return nil
	}
	ns, err := namespace.Own(ctx, h.Direct, h.Name, h.Owner)
	if ns == nil || err != nil {
		return err
	}
	if ns.DeletionTimestamp == nil {
		stay, err := h.clear(ctx, d)
		if err != nil {
			return err
		}
		if len(stay) > 0 {
			return h.retain(ctx, ns, stay)
		}
		if err := h.empty(ctx, d); err != nil {
			return err
		}
	}
	left, err := namespace.Remove(ctx, h.Direct, ns)
	if err != nil {
		return err
	}
	return step.Wait(v1alpha1.DeletingReason, time.Second, "%s", left)
}

// clear deletes the claims that go and then returns those that stay.
func (h Home) clear(ctx context.Context, d Removal) ([]pvc.Claim, error) {
	if d.Deployer != nil {
		closed, err := namespace.Close(ctx, h.Direct, h.Name, h.Owner.Labels)
		if err != nil {
			return nil, err
		}
		if closed {
			return nil, step.Soon(quotaDelay)
		}
	}
	all, err := pvc.List(ctx, h.Direct, h.Name)
	if err != nil {
		return nil, err
	}
	leave, stay := d.Claims.Divide(all)
	if len(leave) == 0 || d.Deployer == nil {
		return stay, nil
	}
	err = pvc.Delete(ctx, d.Deployer, leave)
	switch {
	case err == nil, apierrors.IsConflict(err): // One that changed meanwhile is looked at again.
		return nil, step.Wait(v1alpha1.DeletingReason, time.Second, "waits for claims %s to be gone", pvc.Names(leave))
	case apierrors.IsForbidden(err) && len(stay) == 0: // Nothing could be delivered here yet: there is no deployer.
		return nil, nil
	}
	return nil, err
}

// retain leaves the namespace with its claims.
func (h Home) retain(ctx context.Context, ns *corev1.Namespace, stay []pvc.Claim) error {
	if err := namespace.Lock(ctx, h.Direct, ns.Name); err != nil {
		return err
	}
	kind := v1alpha1.TenantKind
	if h.Of.GetNamespace() != "" {
		kind = v1alpha1.ProjectKind
	}
	of := fmt.Sprintf("%s %s", kind, strings.TrimPrefix(client.ObjectKeyFromObject(h.Of).String(), "/"))
	retention := namespace.Retention{Of: of, Claims: stay, At: h.Steps.Clock.Now()}
	retained, err := namespace.Retain(ctx, h.Direct, ns, retention)
	if err != nil || !retained {
		return err
	}
	h.event(corev1.EventTypeWarning, v1alpha1.NamespaceRetainedReason, fmt.Sprintf("namespace %s is kept, %s", ns.Name, retention.Because(ns.Name)))
	return nil
}
