package home

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/command"
	"github.com/kubeop/kubeop/delivery/finalizer"
	"github.com/kubeop/kubeop/delivery/namespace"
)

// empty waits until the namespace contains nothing that would hold its deletion, because the deployer, who can delete such objects, is
// deleted with the namespace. Meanwhile only the deployer may create objects. Pods that take longer than the grace period are deleted
// without waiting. Finalizers are removed by force if administrators allowed it.
func (h Home) empty(ctx context.Context, ns *corev1.Namespace, d Removal) error {
	if d.Deployer == nil {
		return nil
	}
	if err := namespace.Bar(ctx, h.Direct, h.Name, v1alpha1.Deployer, viewers); err != nil {
		return err
	}
	waited := h.Steps.Clock.Now().Sub(h.Of.GetDeletionTimestamp().Time)
	forced := finalizer.Forced(h.Of)
	done, err := finalizer.Emptying{
		Client: d.Deployer, Namespace: h.Name, Kinds: d.Kinds, Kill: waited > d.Grace, Force: forced,
	}.Run(ctx)
	if len(done.Killed) > 0 {
		h.event(corev1.EventTypeWarning, v1alpha1.RemovalForcedReason, fmt.Sprintf(
			"pods were deleted without waiting for them, as %s was deleted more than %s ago: %s", h.Of.GetName(), d.Grace, step.Few(done.Killed)))
	}
	if len(done.Freed) > 0 {
		h.event(corev1.EventTypeWarning, v1alpha1.RemovalForcedReason, "removed finalizers by force: "+step.Few(done.Freed))
	}
	if err != nil || len(done.Left) == 0 {
		return err
	}
	why := step.Wait(v1alpha1.DeletingReason, h.pause(ns, 10), "waits for what would hold the deletion of namespace %s: %s", h.Name, step.Few(done.Left))
	if !forced && slices.ContainsFunc(done.Left, finalizer.Terminating.Foreign) {
		why = step.Add(why, command.ForceRemoval(h.resource(), h.Of))
	}
	return why
}

// viewers is the RoleBinding of people who may only read.
const viewers = "kubeop-view"

// resource is the kubectl name of the owner's kind.
func (h Home) resource() string {
	if h.Of.GetNamespace() == "" {
		return "tenant"
	}
	return "project"
}
