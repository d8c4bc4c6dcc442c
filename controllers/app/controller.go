// Package app delivers Apps: it finds the source, renders it, checks it, applies it as the project's deployer, and says
// whether it works.
package app

import (
	"context"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/apply"
	"github.com/kubeop/kubeop/delivery/fetch"
	"github.com/kubeop/kubeop/delivery/kube"
	"github.com/kubeop/kubeop/delivery/release"
)

// Reconciler reconciles Apps.
type Reconciler struct {
	Client client.Client
	// Direct reads past the cache.
	Direct   client.Reader
	Clients  *kube.Clients
	Watch    *kube.Watch
	Applier  *apply.Applier
	Releases *release.Engine
	Steps    *step.Runner
	Clock    clock.PassiveClock

	// Folder returns the app's folder in the repository that declares it.
	Folder func(ctx context.Context, app *v1alpha1.App) (*fetch.Folder, error)
	Git    *fetch.GitStore
	Charts *fetch.ChartStore
	// Commits and Archives remember what Git and chart repositories answered until the app's interval is over.
	Commits  *fetch.Recent[fetch.Commit]
	Archives *fetch.Recent[fetch.ChartArchive]
}

// Reconcile delivers one app, or removes what it delivered.
func (r *Reconciler) Reconcile(ctx context.Context, app *v1alpha1.App) (ctrl.Result, error) {
	s := newScope(app)
	if !app.DeletionTimestamp.IsZero() {
		return r.Steps.Finalize(ctx, app, s, step.Of(v1alpha1.RemovedCondition, s, r.remove))
	}
	steps := []step.Step{
		step.Of(v1alpha1.DependenciesReadyCondition, s, r.resolve),
		step.Of(v1alpha1.SourceReadyCondition, s, r.fetch),
		step.Of(v1alpha1.RenderedCondition, s, r.render),
	}
	if app.Spec.Type == v1alpha1.AppHelm {
		steps = append(steps, step.Of(v1alpha1.ReleasedCondition, s, r.release))
	} else {
		steps = append(steps, step.Of(v1alpha1.AllowedCondition, s, r.admit), step.Of(v1alpha1.AppliedCondition, s, r.apply))
	}
	return r.Steps.Run(ctx, app, s, append(steps, step.Of(v1alpha1.HealthyCondition, s, r.health))...)
}
