package project

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/rollup"
	"github.com/kubeop/kubeop/controllers/step"
)

// resolve finds the tenant and its policies, which decide the project's Pod Security level, egress and owners.
func (r *Reconciler) resolve(ctx context.Context, s *scope) error {
	if s.project.Spec.Namespace != nil {
		return step.Stop(v1alpha1.NotAllowedReason, errors.New("spec.namespace is for projects of the platform itself only: remove it"))
	}
	name := tenantOf(s.project)
	tenant := &v1alpha1.Tenant{}
	err := r.Client.Get(ctx, client.ObjectKey{Name: name}, tenant)
	if apierrors.IsNotFound(err) || (err == nil && s.project.Namespace != v1alpha1.HomeNamespace(name)) {
		return step.Wait(v1alpha1.DependencyNotReadyReason, time.Minute,
			"namespace %s is the home of no tenant; a Project belongs in the namespace kubeop-<tenant>", s.project.Namespace)
	}
	if err != nil {
		return fmt.Errorf("reading tenant %s: %w", name, err)
	}
	s.tenant = tenant
	if err := r.findRules(ctx, s); err != nil {
		return err
	}
	return r.count(ctx, s)
}

// count counts the apps of the project and those that are ready, and looks what they delivered.
func (r *Reconciler) count(ctx context.Context, s *scope) error {
	apps := &rollup.Apps{}
	if err := apps.Count(ctx, r.Client, s.namespace, ""); err != nil {
		return err
	}
	s.apps = apps
	if !s.project.DeletionTimestamp.IsZero() {
		return nil
	}
	report, err := r.Deliveries.Look(ctx, r.Client, s.project.UID, s.namespace, r.Steps.Clock.Now())
	s.delivered = report
	return err
}
