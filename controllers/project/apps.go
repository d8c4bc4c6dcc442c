package project

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
)

// removeApps deletes the project's apps and waits for them while their deployer is still there. Under the policy Orphan
// the apps are told to leave everything running first. What administrators take back meanwhile is gone at once: how long the
// apps stay is up to the tenant, who may put a finalizer on any object of theirs.
func (r *Reconciler) removeApps(ctx context.Context, s *scope) error {
	amiss := r.retract(ctx, s)
	apps := &v1alpha1.AppList{}
	if err := r.Client.List(ctx, apps, client.InNamespace(s.namespace)); err != nil {
		return fmt.Errorf("listing the apps of %s: %w", s.namespace, err)
	}
	var left []string
	for i := range apps.Items {
		app := &apps.Items[i]
		left = append(left, app.Name)
		if err := r.removeApp(ctx, s, app); err != nil {
			return fmt.Errorf("deleting app %s: %w", app.Name, err)
		}
	}
	if s.apps = len(left); s.apps == 0 {
		return nil
	}
	slices.Sort(left)
	message := fmt.Sprintf("waits for apps %s; kubectl get apps -n %s says what holds them", strings.Join(left, ", "), s.namespace)
	if amiss != nil {
		message += "; " + amiss.Error()
	}
	return step.Wait(v1alpha1.DeletingReason, time.Second, "%s", message)
}

func (r *Reconciler) removeApp(ctx context.Context, s *scope, app *v1alpha1.App) error {
	if s.project.Spec.DeletionPolicy == v1alpha1.DeletionOrphan && app.Spec.DeletionPolicy != v1alpha1.AppDeletionOrphan {
		before := app.DeepCopy()
		app.Spec.DeletionPolicy = v1alpha1.AppDeletionOrphan
		if err := r.Client.Patch(ctx, app, client.MergeFrom(before)); err != nil {
			return client.IgnoreNotFound(err)
		}
	}
	if !app.DeletionTimestamp.IsZero() {
		return nil
	}
	return client.IgnoreNotFound(r.Client.Delete(ctx, app))
}
