package project

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/home"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/finalizer"
	"github.com/kubeop/kubeop/delivery/namespace"
)

// removeApps deletes the project's apps and waits for them while their deployer still exists. Under the policy Orphan, the apps get that
// policy first. Rights that administrators revoke meanwhile are revoked at once, because the tenant decides how long the apps stay: any of
// their objects may have a finalizer. If revoking fails, the step fails too, but only after the apps were deleted.
func (r *Reconciler) removeApps(ctx context.Context, s *scope) error {
	problem := r.retract(ctx, s)
	apps := &v1alpha1.AppList{}
	if err := r.Client.List(ctx, apps, client.InNamespace(s.namespace)); err != nil {
		return fmt.Errorf("listing the apps of %s: %w", s.namespace, err)
	}
	if err := r.count(ctx, s); err != nil {
		return err
	}
	var left []string
	for i := range apps.Items {
		app := &apps.Items[i]
		left = append(left, app.Name)
		if err := r.removeApp(ctx, s, app); err != nil {
			return fmt.Errorf("deleting app %s: %w", app.Name, err)
		}
	}
	if len(left) == 0 {
		return nil
	}
	if err := r.killLate(ctx, s); err != nil {
		return err
	}
	slices.Sort(left)
	message := fmt.Sprintf("waits for apps %s; kubectl get apps -n %s says what holds them", strings.Join(left, ", "), s.namespace)
	if step.Fails(problem) {
		return step.Add(problem, message)
	}
	if problem != nil {
		message += "; " + problem.Error()
	}
	return step.Wait(v1alpha1.DeletingReason, time.Second, "%s", message)
}

func (r *Reconciler) removeApp(ctx context.Context, s *scope, app *v1alpha1.App) error {
	return home.DeleteChild(ctx, r.Client, s.project, app, func() bool {
		if s.project.Spec.DeletionPolicy != v1alpha1.DeletionOrphan || app.Spec.DeletionPolicy == v1alpha1.AppDeletionOrphan {
			return false
		}
		app.Spec.DeletionPolicy = v1alpha1.AppDeletionOrphan
		return true
	})
}

// killLate deletes without waiting the pods that hold an app's removal, if the project was deleted longer ago than the maximum grace period
// of a pod.
func (r *Reconciler) killLate(ctx context.Context, s *scope) error {
	tenant, err := r.formerTenant(ctx, s)
	if err != nil || !late(s.project, tenant, r.Steps.Clock.Now()) {
		return err
	}
	deployer, err := r.Clients.As(s.namespace)
	if err != nil {
		return err
	}
	killed, err := finalizer.Emptying{Client: deployer, Namespace: s.namespace}.KillPods(ctx)
	if len(killed) > 0 {
		r.Steps.Events.Eventf(s.project, nil, corev1.EventTypeWarning, v1alpha1.RemovalForcedReason, "Remove",
			"pods were deleted without waiting for them, as the project was deleted more than %s ago: %s", namespace.MaxGracePeriod(tenant), step.Few(killed))
	}
	return err
}

// late reports whether a project was deleted longer ago than the maximum grace period of the tenant's pods.
func late(project *v1alpha1.Project, tenant *v1alpha1.Tenant, now time.Time) bool {
	return now.Sub(project.DeletionTimestamp.Time) > namespace.MaxGracePeriod(tenant)
}
