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

// count counts the apps of the project and those that are ready, and looks what they delivered. Numbers that were written a moment ago stay for a while,
// because claims of host names wake the project, too: for each app that comes or goes.
func (r *Reconciler) count(ctx context.Context, s *scope) error {
	apps, now := &rollup.Apps{}, r.Steps.Clock.Now()
	if err := apps.Count(ctx, r.Client, s.namespace, ""); err != nil {
		return err
	}
	if !s.project.DeletionTimestamp.IsZero() {
		s.apps = apps
		return nil
	}
	if s.apps == nil && apps.Differ(s.project.Status.AppCounts) {
		s.rest = r.counts.Take(s.project.UID, now)
	}
	if s.rest == 0 {
		s.apps = apps
	}
	report, err := r.Deliveries.Look(ctx, r.Client, s.project.UID, s.namespace, now)
	s.delivered = report
	return err
}
