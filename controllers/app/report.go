package app

import (
	"errors"
	"fmt"
	"time"

	"github.com/fluxcd/pkg/apis/meta"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/app/prune"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/delivery/command"
	"github.com/kubeop/kubeop/delivery/policy"
	"github.com/kubeop/kubeop/delivery/release"
	"github.com/kubeop/kubeop/delivery/release/fault"
)

// releaseError turns an error of the engine into the outcome of the step.
func releaseError(err error) error {
	switch {
	case errors.Is(err, fault.ErrLocked):
		return step.Wait(v1alpha1.ReleaseLockedReason, 10*time.Second, "%w", err)
	case errors.Is(err, fault.ErrTaken):
		return step.Stop(v1alpha1.ReleaseTakenReason, err)
	case errors.Is(err, fault.ErrDraining):
		return step.Wait(v1alpha1.ProgressingReason, 10*time.Second, "%w", err)
	case errors.As(err, new(*fault.ClaimsInTheWay)):
		return prune.ClaimsInTheWay(err, "or give the release the name back that it had")
	}
	var leaving *fault.Terminating
	if errors.As(err, &leaving) {
		return step.Wait(v1alpha1.DeletingReason, 2*time.Second, "%w", err)
	}
	return err
}

// failed separates failures that only a change can solve from failures that are retried.
func (r *releaser) failed(s *scope, outcome release.Outcome) error {
	s.Settled() // The next try starts a new quiet period.
	pause := max(outcome.Retry.At.Sub(s.Now()), 100*time.Millisecond)
	outcome.Failed = r.admitter.explained(s, outcome.Failed)
	switch {
	case errors.As(outcome.Failed, new(*fault.ClaimsInTheWay)):
		return prune.ClaimsInTheWay(outcome.Failed, "or keep the claim unchanged in the chart")
	case policy.OnlyUnknownKinds(outcome.Failed):
		r.admitter.sources.Queue.AwaitKinds(s.Key()) // The CustomResourceDefinition of the kind may still be created.
		return step.FailAfter(v1alpha1.NotAllowedReason, pause, outcome.Failed)
	case errors.As(outcome.Failed, new(*budget.Exceeded)):
		return step.Stop(v1alpha1.TooLargeReason, outcome.Failed)
	case errors.As(outcome.Failed, new(*fault.NotAllowed)):
		return step.Stop(v1alpha1.NotAllowedReason, outcome.Failed)
	case errors.Is(outcome.Failed, fault.ErrTooLarge):
		return step.Stop(v1alpha1.TooLargeReason, outcome.Failed)
	case errors.Is(outcome.Failed, fault.ErrRender):
		return step.Stop(v1alpha1.RenderFailedReason, outcome.Failed)
	case outcome.Retry.Held:
		return step.Stop(v1alpha1.HeldReason, held(s.App, outcome))
	}
	return step.FailAfter(failureReason(outcome), pause, outcome.Failed)
}

func failureReason(outcome release.Outcome) string {
	switch {
	case outcome.Environment:
		return v1alpha1.RetryingReason
	case outcome.Test.Result == "Failed":
		return v1alpha1.TestFailedReason
	case outcome.Deployed.Revision == 0 && !wasDeployed(outcome.Records.Statuses):
		return v1alpha1.InstallFailedReason
	}
	return v1alpha1.UpgradeFailedReason
}

// wasDeployed reports whether a revision of the release was deployed before, since it was last uninstalled. After an upgrade that did not become
// healthy, no revision has the status deployed.
func wasDeployed(statuses map[int]string) bool {
	uninstalled := 0
	for revision, status := range statuses {
		if status == "uninstalled" {
			uninstalled = max(uninstalled, revision)
		}
	}
	for revision, status := range statuses {
		if revision > uninstalled && (status == "superseded" || status == "deployed") {
			return true
		}
	}
	return false
}

// held says what happened to a release that is not retried.
func held(app *v1alpha1.App, outcome release.Outcome) error {
	done := "left unchanged"
	if m := outcome.Remediation; m != nil && m.Kind == v1alpha1.RemediationRollback {
		done = fmt.Sprintf("rolled back to revision %d", m.To)
	} else if m != nil && m.Kind == v1alpha1.RemediationUninstall {
		done = "uninstalled"
	}
	times := "once"
	if outcome.Retry.Attempts > 1 {
		times = fmt.Sprintf("%d times", outcome.Retry.Attempts)
	}
	return fmt.Errorf("failed %s and was %s; held until chart or values change; to try again before, %s: %w",
		times, done, command.Again(v1alpha1.TenantOf(app.Namespace), app, meta.ForceRequestAnnotation), outcome.Failed)
}

// remediated is the condition that reports a rollback or an uninstall after failures.
func remediated(outcome release.Outcome) step.Note {
	note := step.Note{Condition: v1alpha1.RemediatedCondition}
	m := outcome.Remediation
	if m == nil {
		return note
	}
	switch {
	case m.Err != nil && m.Kind == v1alpha1.RemediationUninstall:
		note.Status, note.Reason, note.Message = "False", v1alpha1.UninstallFailedReason, "uninstalling what kept failing: "+m.Err.Error()
	case m.Err != nil:
		note.Status, note.Reason = "False", v1alpha1.RollbackFailedReason
		note.Message = fmt.Sprintf("rolling back to revision %d: %v", m.To, m.Err)
	case m.Kind == v1alpha1.RemediationUninstall:
		note.Status, note.Reason, note.Message = "True", v1alpha1.UninstallSucceededReason, "uninstalled, because it kept failing"
	default:
		note.Status, note.Reason = "True", v1alpha1.RollbackSucceededReason
		note.Message = fmt.Sprintf("rolled back to revision %d", m.To)
	}
	note.Event = "Warning"
	return note
}
