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
	// Policy: with Orphan, nothing is deleted.
	Policy v1alpha1.DeletionPolicy
	// Claims says which claims may be deleted.
	Claims pvc.Terms
	// Deployer is the client that deletes claims and objects that would hold the namespace. Nil means that the namespace has no pods and
	// claims, and that only the namespace itself is deleted.
	Deployer client.Client
	// Kinds are the kinds of which the deployer may have created objects.
	Kinds []schema.GroupResource
	// Grace is how long pods may take to end, counted from the deletion of the Tenant or Project. After that they are deleted without
	// waiting.
	Grace time.Duration
}

// quotaDelay is how long it may take until the API server enforces a new quota: its admission reads quotas from a watch.
const quotaDelay = 500 * time.Millisecond

// Remove deletes the claims that may be deleted, then objects that would hold the namespace, then the namespace, and waits until it is
// gone. If claims with data stay, it keeps the namespace instead: then all access ends, while quota and network isolation stay.
//
// No request can delete a namespace on the condition that it holds no claims, and Kubernetes deletes the content seconds later. So a quota
// first forbids new claims, then the claims are listed, and each is deleted with the resourceVersion that was listed: a claim that is bound
// meanwhile is checked again.
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
		if err := h.empty(ctx, ns, d); err != nil {
			return err
		}
	}
	left, err := namespace.Remove(ctx, h.Direct, ns)
	if err != nil {
		return err
	}
	return step.Wait(v1alpha1.DeletingReason, h.pause(ns, 5), "%s", left)
}

// clear deletes the claims that may be deleted, and then returns those that stay.
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
	case err == nil, apierrors.IsConflict(err): // A claim that changed meanwhile is checked again.
		return nil, step.Wait(v1alpha1.DeletingReason, time.Second, "waits for claims %s to be gone", pvc.Names(leave))
	case apierrors.IsForbidden(err) && len(stay) == 0: // The project was never ready, so there is no deployer.
		return nil, nil
	}
	return nil, err
}

// retain keeps the namespace with its claims.
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
