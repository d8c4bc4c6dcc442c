package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/app/flap"
	"github.com/kubeop/kubeop/controllers/app/subject"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/health"
	"github.com/kubeop/kubeop/delivery/inventory"
	"github.com/kubeop/kubeop/delivery/kube"
	"github.com/kubeop/kubeop/delivery/mask"
)

// assessor checks the health of the objects that Apps deliver.
type assessor struct {
	watch     *kube.Watch
	explainer func(namespace string, mask func(string) string) (health.Explainer, error)
	releaser  *releaser

	checks subject.Memory[checks]
	flaps  flap.Detector
}

// checks are the compiled healthCheckExprs of one generation of an App.
type checks struct {
	generation int64
	compiled   *health.Checks
}

// compile compiles the expressions of an App once for each generation.
func (a *assessor) compile(app *v1alpha1.App) error {
	known := a.checks.Get(app)
	if known.generation == app.Generation {
		return nil
	}
	var compiled *health.Checks
	if len(app.Spec.HealthCheckExprs) > 0 {
		var err error
		if compiled, err = health.NewChecks(app.Spec.HealthCheckExprs); err != nil {
			return err
		}
	}
	*known = checks{app.Generation, compiled}
	return nil
}

// assess checks the health of the App's objects once. Objects that left the source do not count. The watch wakes the App when an object
// changes. A failing pod does not always change its owner, so the App is also reconciled again after step.NextLook: a tenth of the time that
// it has been waiting, between 1 and 15 seconds.
func (a *assessor) assess(ctx context.Context, s *scope) error {
	verdict, err := a.look(ctx, s)
	if err != nil {
		return err
	}
	if verdict = a.flaps.Judge(s.Subject, judgedPhase(s), verdict); verdict.Healthy() {
		s.unhealthySince = nil
		s.Settled()
		s.writes.Settled()
		s.release.proven = !tested(s.App)
		return nil
	}
	began, now := s.Since(judgedPhase(s)), s.Now()
	waited := now.Sub(s.unhealthyFrom(began, now))
	deadline, field := healthDeadline(s)
	again := step.NextLook(waited)
	switch {
	case waited >= deadline:
		err := fmt.Errorf("not healthy within %s (%s): %s", deadline, field, verdict)
		return a.releaser.markFailed(ctx, s, step.FailAfter(v1alpha1.UnhealthyReason, again, err))
	case len(verdict.Failed) > 0:
		return step.FailAfter(v1alpha1.UnhealthyReason, again, errors.New(verdict.String()))
	case now.Sub(began) < step.Quiet:
		return step.Soon(step.Quiet - now.Sub(began))
	}
	return step.Wait(v1alpha1.ProgressingReason, again, "%s", verdict)
}

// judgedPhase names the phase in which an App waits for its health: per generation of the App or, for a Helm App, per revision of its
// release.
func judgedPhase(s *scope) string {
	if s.App.Spec.Helm == nil {
		return fmt.Sprintf("health of generation %d", s.App.Generation)
	}
	return fmt.Sprintf("health of revision %d", s.recordedRevision().revision)
}

// look checks the objects of the source or, for a release, the recorded objects.
func (a *assessor) look(ctx context.Context, s *scope) (health.Verdict, error) {
	checks := a.checks.Get(s.App).compiled
	refs := health.Refs(s.objects, checks)
	if s.found.Kept {
		refs = health.RefsOf(s.inventory.Entries, checks)
	}
	if s.App.Spec.Helm != nil {
		action, _ := actionOf(s)
		if action.DisableWait {
			return health.Verdict{}, nil
		}
		refs = health.RefsOf(s.judged(s.inventory.Entries), checks)
		if action.DisableWaitForJobs {
			refs = health.WithoutJobs(refs)
		}
	}
	written := s.writes.Unsettled()
	for i, ref := range refs {
		id := inventory.ObjectID{Namespace: ref.Key.Namespace, Name: ref.Key.Name, Group: ref.Kind.Group, Kind: ref.Kind.Kind}
		refs[i].Floor = written[id.String()]
	}
	explainer, err := a.explainer(s.App.Namespace, mask.Of(s.Sensitive()))
	if err != nil {
		return health.Verdict{}, err
	}
	explainer.Checks, explainer.Late, explainer.AfterDeletion = checks, s.writes.Shown(s.Now()), afterDeletion(&s.App.Spec)
	return health.Look(ctx, explainer, a.watch.Object, refs)
}

// afterDeletion describes what happens to an object that a person deleted.
func afterDeletion(spec *v1alpha1.AppSpec) string {
	until := "its manifest changes"
	if spec.Helm != nil {
		until = "the release is upgraded"
	}
	if mode := spec.DriftMode(); mode != v1alpha1.DriftCorrect {
		return fmt.Sprintf(", and stays away until %s, because drift.mode is %s", until, mode)
	}
	return ", and is put back"
}

// actionOf returns the settings of the Helm action that made the deployed revision, and their field. If the engine was not called because the
// chart is not available, the recorded revision decides.
func actionOf(s *scope) (action *v1alpha1.HelmAction, field string) {
	spec := s.App.Spec.Helm
	installed := s.recordedRevision().revision <= 1
	if s.release.outcome != nil {
		installed = s.release.outcome.Deployed.Installed
	}
	if installed {
		return &spec.Install.HelmAction, "spec.helm.install"
	}
	return &spec.Upgrade.HelmAction, "spec.helm.upgrade"
}

// healthDeadline is how long the App has to become healthy, and the field that says so.
func healthDeadline(s *scope) (deadline time.Duration, field string) {
	if s.App.Spec.Helm != nil {
		if action, field := actionOf(s); action.Timeout != nil {
			return action.Timeout.Duration, field + ".timeout"
		}
	}
	return s.App.Spec.Within(), "spec.timeout"
}

// Forget drops the state of an App.
func (a *assessor) Forget(app *v1alpha1.App) {
	a.checks.Forget(app)
	a.flaps.Forget(app)
}
