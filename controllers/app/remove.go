package app

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/apply"
	"github.com/kubeop/kubeop/delivery/own"
)

// remove deletes what the app delivered and waits until it is gone. It leaves everything under the policy Orphan, and
// leaves it to Kubernetes where the whole namespace is going: its deployer may be gone already.
func (r *Reconciler) remove(ctx context.Context, s *scope) error {
	live := &corev1.Namespace{}
	err := r.Direct.Get(ctx, client.ObjectKey{Name: s.app.Namespace}, live)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading namespace %s: %w", s.app.Namespace, err)
	}
	if s.app.Spec.DeletionPolicy == v1alpha1.DeletionOrphan || err != nil || live.DeletionTimestamp != nil {
		r.forget(s)
		return nil
	}
	s.owner = own.Owner{Tenant: live.Labels[v1alpha1.TenantLabel], Project: live.Labels[v1alpha1.ProjectLabel], App: s.app.Name, Namespace: s.app.Namespace}
	if s.owner.Tenant == "" || s.owner.Project == "" {
		return step.Wait(v1alpha1.DependencyNotReadyReason, 10*time.Second, "waits for its project to put back the labels of namespace %s", s.app.Namespace)
	}
	if s.client, err = r.Clients.As(s.app.Namespace); err != nil {
		return err
	}
	if s.app.Spec.Type == v1alpha1.AppHelm {
		if err := r.uninstall(ctx, s); err != nil {
			return err
		}
	}
	left, err := apply.Prune(ctx, s.client, s.inventory.Entries, ownerLabels(s.owner))
	s.inventory = apply.Inventory(left, nil)
	if err != nil {
		return step.Fail(v1alpha1.PruneFailedReason, err)
	}
	if len(left) > 0 {
		return step.Wait(v1alpha1.DeletingReason, time.Second, "waits for %s to be gone", apply.Names(left))
	}
	r.forget(s)
	return nil
}

// forget drops what is remembered of the app.
func (r *Reconciler) forget(s *scope) {
	r.Commits.Forget(string(s.app.UID))
	r.Archives.Forget(string(s.app.UID))
}
