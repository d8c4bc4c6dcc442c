// Package app reconciles Apps: it fetches the source, renders it, checks the objects, applies them as the project's deployer, and reports their health.
package app

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/app/dependency"
	"github.com/kubeop/kubeop/controllers/app/history"
	"github.com/kubeop/kubeop/controllers/app/hook"
	"github.com/kubeop/kubeop/controllers/app/project"
	"github.com/kubeop/kubeop/controllers/app/record"
	"github.com/kubeop/kubeop/controllers/app/source"
	"github.com/kubeop/kubeop/controllers/app/subject"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/podsecurity"
)

// Reconciler reconciles Apps. Each concern holds its own state and dependencies; the Reconciler only defines the order of the steps.
type Reconciler struct {
	steps    *step.Runner
	wakes    *wakes
	subjects *subject.Subjects
	history  history.Keeper

	recorder     *record.Recorder
	dependencies *dependency.Checker
	sources      *source.Fetcher
	hooks        *hook.Runner

	projects *project.Finder
	renderer *renderer
	admitter *admitter
	applier  *applier
	releaser *releaser
	assessor *assessor
	remover  *remover
}

// Reconcile delivers one App, or deletes what it delivered.
func (r *Reconciler) Reconcile(ctx context.Context, app *v1alpha1.App) (ctrl.Result, error) {
	s := r.newScope(app)
	inventory, err := r.recorder.Load(ctx, app)
	s.inventory = inventory // With an error, as far as it is known.
	switch {
	case err != nil:
		return r.withoutInventory(ctx, s, err)
	case !app.DeletionTimestamp.IsZero():
		return r.finalize(ctx, s, step.Of(v1alpha1.RemovedCondition, s, r.remover.remove))
	}
	defer r.keep(s)
	// The conditions Allowed, HooksSucceeded and Released each belong to two steps. HooksSucceeded: hooks run before and after the delivery. Released: cluster-scoped
	// objects that left the chart are deleted last, when the new release is healthy and its tests and post hooks have succeeded.
	return r.steps.Run(ctx, app, s, s.applicable(
		act{v1alpha1.DependenciesReadyCondition, always, r.resolve},
		act{v1alpha1.SourceReadyCondition, always, r.fetch},
		act{v1alpha1.RenderedCondition, always, r.renderer.render},
		act{v1alpha1.AllowedCondition, applied, r.admitter.admit},
		act{v1alpha1.AllowedCondition, applied, r.admitter.claim},
		act{v1alpha1.HooksSucceededCondition, hook.Needed, r.preHooks},
		act{v1alpha1.AppliedCondition, applied, r.applier.apply},
		act{v1alpha1.ReleasedCondition, released, r.releaser.release},
		act{v1alpha1.HealthyCondition, always, r.assessor.assess},
		act{v1alpha1.TestSuccessCondition, tested, r.releaser.test},
		act{v1alpha1.HooksSucceededCondition, hook.HasPost, r.postHooks},
		act{v1alpha1.ReleasedCondition, released, r.releaser.pruneClusterScoped},
	)...)
}

// keep passes the end of a Reconcile to the parts that keep state between Reconciles.
func (r *Reconciler) keep(s *scope) {
	r.recorder.Keep(s.App, s.inventory, s.outcome.reported)
	r.applier.declare(s)
	if s.outcome.applied {
		r.admitter.tenants.Hosts.Delivered(s.Key())
	}
}

// withoutInventory ends the Reconcile of an App whose inventory could not be loaded. Without the inventory, no object is written or deleted.
func (r *Reconciler) withoutInventory(ctx context.Context, s *scope, unknown error) (ctrl.Result, error) {
	fail := func(context.Context, *scope) error { return step.Fail(v1alpha1.ApplyFailedReason, unknown) }
	if !s.App.DeletionTimestamp.IsZero() {
		return r.finalize(ctx, s, step.Of(v1alpha1.RemovedCondition, s, fail))
	}
	return r.steps.Run(ctx, s.App, s, step.Of(v1alpha1.AppliedCondition, s, fail))
}

// finalize runs remove and then removes the finalizer. If the App is suspended, or its deletion was meant for another object, it removes
// the finalizer without running remove; see step.Cause.
func (r *Reconciler) finalize(ctx context.Context, s *scope, remove step.Step) (ctrl.Result, error) {
	result, err := r.steps.Finalize(ctx, s.App, s, remove)
	if err == nil && !controllerutil.ContainsFinalizer(s.App, v1alpha1.Finalizer) {
		r.forget(s.App)
	}
	return result, err
}

// resolve finds the App's project and deployer, and waits until the project and the App's dependencies are ready.
func (r *Reconciler) resolve(ctx context.Context, s *scope) error {
	if err := r.projects.Find(ctx, s.Subject, s.inventory.Entries); err != nil {
		if step.Reason(err) == v1alpha1.StoppedReason {
			s.unhealthySince = nil // Once the tenant is resumed, the App has its full timeout.
		}
		return err
	}
	r.sources.VerifyKept(ctx, s.Subject, s.inventory.Entries)
	s.Fill = podsecurity.FillOf(s.App.Spec.PodSecurity.Fill, s.PodSecurity)
	if err := r.assessor.compile(s.App); err != nil {
		return step.Stop(v1alpha1.InvalidExpressionReason, err)
	}
	return r.dependencies.Await(ctx, s.Subject)
}

// fetch finds the App's source.
func (r *Reconciler) fetch(ctx context.Context, s *scope) error {
	err := r.sources.Fetch(ctx, s.Subject, &s.found)
	if err != nil && len(s.found.Broken) > 0 {
		r.admitter.noticed.Count(s.App, s.found.Broken)
	}
	return err
}

// preHooks runs the hooks that come before any object of the revision is applied.
func (r *Reconciler) preHooks(ctx context.Context, s *scope) error {
	return r.hooks.Pre(ctx, s.Subject, &s.hooks, s.hookRevision(), r.admitter.admitHook(ctx, s))
}

// postHooks runs the hooks that come once the revision is healthy.
func (r *Reconciler) postHooks(ctx context.Context, s *scope) error {
	return r.hooks.Post(ctx, s.Subject, &s.hooks, r.admitter.admitHook(ctx, s))
}

// newScope returns the scope of a new Reconcile.
func (r *Reconciler) newScope(app *v1alpha1.App) *scope {
	s := &scope{
		Subject: r.subjects.New(app), writes: r.recorder.Writes(app), held: r.applier.pruner.Held(app),
		release: r.releaser.facts(app), volumes: r.admitter.volumes(app), admitted: r.admitter.admission(app),
		outcome: outcome{deliveries: r.history.Begin(app)}, current: r.wakes.refusals.Report(v1alpha1.AppKind, app, app.Status.Refused), unhealthySince: app.Status.UnhealthySince,
	}
	if since := s.unhealthySince; since != nil && since.Time.Before(s.writes.At()) {
		s.unhealthySince = nil // The objects were written again after that time.
	}
	return s
}

// forget drops the state of a deleted App in every concern.
func (r *Reconciler) forget(app *v1alpha1.App) {
	for _, concern := range []interface{ Forget(*v1alpha1.App) }{
		r.recorder, &r.history, r.dependencies, r.sources, r.hooks, r.projects, r.renderer, r.admitter, r.applier, r.releaser, r.assessor, r.subjects, r.admitter.tenants.Hosts, r.wakes.queue,
	} {
		concern.Forget(app)
	}
}

// ended records how a step ended.
func (s *scope) ended(condition string, err error) {
	s.outcome.deliveries.Ended(err)
	s.outcome.broken = s.outcome.broken || condition != v1alpha1.HealthyCondition && step.Failing(err)
	if condition == v1alpha1.AppliedCondition || condition == v1alpha1.ReleasedCondition {
		s.outcome.generation = new(int64)
		if err == nil {
			*s.outcome.generation = s.App.Generation
		}
	}
}

// act is one step of a Reconcile: its condition, the Apps that it applies to, and what it does.
type act struct {
	condition string
	applies   func(*v1alpha1.App) bool
	do        func(context.Context, *scope) error
}

// applicable returns the steps that apply to the App. If the App's source is not available, only the health is checked.
func (s *scope) applicable(acts ...act) []step.Step {
	var steps []step.Step
	last := len(acts) - 1
	for !acts[last].applies(s.App) {
		last--
	}
	for i, a := range acts {
		if !a.applies(s.App) {
			continue
		}
		steps = append(steps, step.Of(a.condition, s, func(ctx context.Context, s *scope) error {
			if s.found.Kept && a.condition != v1alpha1.HealthyCondition {
				return step.Skip()
			}
			err := a.do(ctx, s)
			s.ended(a.condition, err)
			s.outcome.done = err == nil && i == last && !s.found.Kept
			return err
		}))
	}
	return steps
}
