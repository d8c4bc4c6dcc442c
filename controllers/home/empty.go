package home

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/finalizer"
	"github.com/kubeop/kubeop/delivery/namespace"
)

// slowest is the longest pause between two looks at what holds a namespace.
const slowest = 30 * time.Second

// empty waits until nothing is in the namespace that would hold its deletion: the deployer, who could end that, goes with it. Nobody but
// the deployer may add anything meanwhile. Pods that take longer than patience are ended; finalizers are taken off where administrators
// said so.
func (h Home) empty(ctx context.Context, d Departure) error {
	if d.Deployer == nil {
		return nil
	}
	if err := namespace.Bar(ctx, h.Direct, h.Name, v1alpha1.Deployer, viewers); err != nil {
		return err
	}
	waited := h.Steps.Clock.Now().Sub(h.Of.GetDeletionTimestamp().Time)
	forced := finalizer.Forced(h.Of)
	done, err := finalizer.Emptying{
		Client: d.Deployer, Namespace: h.Name, Kinds: d.Kinds, Kill: waited > d.Patience, Force: forced,
	}.Run(ctx)
	if len(done.Killed) > 0 {
		h.tell(corev1.EventTypeWarning, v1alpha1.RemovalForcedReason, fmt.Sprintf(
			"pods were deleted without waiting for them, as %s was deleted more than %s ago: %s", h.Of.GetName(), d.Patience, finalizer.Names(done.Killed)))
	}
	if len(done.Freed) > 0 {
		h.tell(corev1.EventTypeWarning, v1alpha1.RemovalForcedReason, "took finalizers: "+finalizer.Names(done.Freed))
	}
	if err != nil || len(done.Left) == 0 {
		return err
	}
	left := finalizer.Names(done.Left)
	why := step.Wait(v1alpha1.DeletingReason, min(max(waited/10, time.Second), slowest), "waits for what would hold the deletion of namespace %s: %s", h.Name, left)
	if !forced && finalizer.Held(strings.Join(done.Left, " ")) {
		why = step.Add(why, finalizer.How(h.resource(), h.Of))
	}
	return why
}

// viewers is the binding of those who only look.
const viewers = "kubeop-view"

// resource is what the Tenant or Project is called in a command.
func (h Home) resource() string {
	if h.Of.GetNamespace() == "" {
		return "tenant"
	}
	return "project"
}
