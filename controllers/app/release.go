package app

import (
	"context"
	"errors"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/apply"
	"github.com/kubeop/kubeop/delivery/kube"
	"github.com/kubeop/kubeop/delivery/policy"
	"github.com/kubeop/kubeop/delivery/release"
)

const (
	firstRetry = time.Second
	lastRetry  = 5 * time.Minute
)

// release has the chart and values released. A Helm action may block on hooks, so it runs detached, and the app is woken
// when it has ended.
func (r *Reconciler) release(ctx context.Context, s *scope) error {
	request := r.request(s)
	outcome, err := r.Releases.Reconcile(ctx, request)
	if err != nil {
		return releaseError(err)
	}
	if outcome.Running {
		return step.Wait(v1alpha1.ProgressingReason, 15*time.Second, "%s release %s", outcome.Action, request.Name)
	}
	if outcome.Release.Name != "" {
		s.info = &outcome.Release
	}
	if outcome.Failed != nil {
		return r.releaseFailed(outcome)
	}
	was := s.app.Status.Release
	if was == nil || was.Revision != outcome.Release.Revision {
		s.unhealthySince = nil
	}
	s.applied, s.objects = true, outcome.Objects
	return r.correct(ctx, s, request, outcome)
}

// request says what the release should be.
func (r *Reconciler) request(s *scope) release.Request {
	name := s.app.Name
	if spec := s.app.Spec.Helm; spec.ReleaseName != "" {
		name = spec.ReleaseName
	}
	return release.Request{
		App:       client.ObjectKeyFromObject(s.app),
		Name:      name,
		Namespace: s.app.Namespace,
		User:      kube.DeployerOf(s.app.Namespace),
		Chart:     s.chart,
		Values:    s.values,
		Timeout:   s.app.Spec.Within(),
		Admit:     r.check(s),
		Retry:     func(attempts int) time.Duration { return retryAfter(s.app, attempts) },
		Sensitive: s.sensitive,
	}
}

// retryAfter is the pause after so many failures: retryInterval where it is set, else one second, doubling.
func retryAfter(app *v1alpha1.App, attempts int) time.Duration {
	if d := app.Spec.RetryInterval; d != nil {
		return d.Duration
	}
	return min(firstRetry<<min(attempts-1, 16), lastRetry)
}

// releaseError tells what stands in the way of a release from what may pass.
func releaseError(err error) error {
	switch {
	case errors.Is(err, release.ErrLocked):
		return step.Wait(v1alpha1.ReleaseLockedReason, 10*time.Second, "%w", err)
	case errors.Is(err, release.ErrTaken):
		return step.Stop(v1alpha1.ReleaseTakenReason, err)
	case errors.Is(err, release.ErrDraining):
		return step.Wait(v1alpha1.ProgressingReason, 10*time.Second, "%w", err)
	}
	var leaving *release.Terminating
	if errors.As(err, &leaving) {
		return step.Wait(v1alpha1.DeletingReason, 2*time.Second, "%w", err)
	}
	return err
}

// releaseFailed tells a chart that cannot succeed from an attempt that will be made again.
func (r *Reconciler) releaseFailed(outcome release.Outcome) error {
	var refused *release.NotAllowed
	switch {
	case errors.As(outcome.Failed, &refused) && !policy.OnlyUnknownKinds(refused.Err):
		return step.Stop(v1alpha1.NotAllowedReason, outcome.Failed)
	case errors.Is(outcome.Failed, release.ErrRender):
		return step.Stop(v1alpha1.RenderFailedReason, outcome.Failed)
	}
	reason := v1alpha1.UpgradeFailedReason
	if outcome.Release.Revision <= 1 {
		reason = v1alpha1.InstallFailedReason
	}
	pause := max(outcome.RetryAt.Sub(r.Clock.Now()), 100*time.Millisecond)
	return step.FailAfter(reason, pause, outcome.Failed)
}

// correct puts back objects of the release that were edited or deleted by hand, and records the rest.
func (r *Reconciler) correct(ctx context.Context, s *scope, request release.Request, outcome release.Outcome) error {
	recorded := s.inventory.Entries
	if was := s.app.Status.Release; was == nil || was.Revision != outcome.Release.Revision {
		recorded = nil
	}
	entries, drifted, err := r.Applier.Observe(ctx, s.client, outcome.Objects, recorded)
	s.inventory = apply.Inventory(entries, nil)
	if err != nil || len(drifted) == 0 {
		return err
	}
	if err := r.Releases.Correct(ctx, request, drifted); err != nil {
		return step.Fail(v1alpha1.ApplyFailedReason, err)
	}
	settled, err := apply.Settle(ctx, s.client, drifted)
	s.inventory = apply.Inventory(apply.Stale(entries, settled), settled)
	return err
}

// uninstall removes the release with everything in it and waits until it is gone.
func (r *Reconciler) uninstall(ctx context.Context, s *scope) error {
	done, err := r.Releases.Uninstall(ctx, r.request(s))
	var leaving *release.Terminating
	switch {
	case errors.As(err, &leaving), errors.Is(err, release.ErrLocked):
		return step.Wait(v1alpha1.DeletingReason, time.Second, "%w", err)
	case err != nil:
		return step.Fail(v1alpha1.UninstallFailedReason, err)
	case !done:
		return step.Wait(v1alpha1.DeletingReason, 15*time.Second, "uninstalling release %s", r.request(s).Name)
	}
	s.inventory = v1alpha1.Inventory{}
	return nil
}
