// Package home creates, labels and deletes the namespace of a Tenant or a Project.
package home

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/apply"
	"github.com/kubeop/kubeop/delivery/namespace"
)

// Home is a namespace and its owner.
type Home struct {
	// Direct reads and writes without the cache.
	Direct client.Client
	Steps  *step.Runner
	// Of is the Tenant or Project.
	Of    client.Object
	Name  string
	Owner namespace.Owner
}

// Make creates the namespace and applies the terms. It adopts a namespace that was retained for its data, or that an earlier object of the
// same tenant created. It stops if the namespace belongs to another owner, and waits while a namespace of this name is being deleted.
func (h Home) Make(ctx context.Context, made *apply.Ledger, terms namespace.Terms) error {
	object := namespace.Object(h.Name, h.Owner, terms)
	live, err := made.Settled(ctx, object)
	if err != nil {
		return err
	}
	if live != nil && live.GetLabels()[v1alpha1.RetainedLabel] == "" {
		return made.Apply(ctx, object) // This sends no request if the watch shows that the namespace is ours and unchanged.
	}
	found, err := namespace.Claim(ctx, h.Direct, h.Name, h.Owner)
	switch {
	case errors.Is(err, namespace.ErrTaken), errors.Is(err, namespace.ErrInherited):
		return step.Stop(v1alpha1.NamespaceTakenReason, err)
	case errors.Is(err, namespace.ErrLeaving):
		return step.Wait(v1alpha1.ProgressingReason, 2*time.Second, "%w", err)
	case err != nil:
		return err
	}
	if err := made.Apply(ctx, object); err != nil {
		return err
	}
	if found.Retained() {
		if err := namespace.Unmark(ctx, h.Direct, found.Namespace); err != nil {
			return err
		}
	}
	if found.Retained() || found.Adopted {
		h.event(corev1.EventTypeNormal, v1alpha1.NamespaceAdoptedReason, "namespace "+h.Name+" existed before and is adopted, with the claims in it")
	}
	return nil
}

// longestPause is the longest pause between two looks at what holds a namespace.
const longestPause = 30 * time.Second

// pause is how long to wait before the next look at what holds a namespace: a part of the time since its deletion, or before that since the owner's, and
// at least a second. The watch reports sooner that the namespace is gone.
func (h Home) pause(ns *corev1.Namespace, parts time.Duration) time.Duration {
	since := h.Of.GetDeletionTimestamp()
	if ns.DeletionTimestamp != nil {
		since = ns.DeletionTimestamp
	}
	return min(max(h.Steps.Clock.Since(since.Time)/parts, time.Second), longestPause)
}
