package app

import (
	"errors"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/fetch/cache"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/verdict"
)

// staleFacts are the facts of a source that could not be asked.
type staleFacts struct {
	// err is why, and retry when it is asked again; waits: it is being asked.
	err   error
	retry time.Duration
	waits bool
}

// fetched says how the step of the source ends. A source that cannot be asked takes nothing from what runs: SourceReady tells of it,
// beside a Ready that goes by what was delivered.
func (r *Reconciler) fetched(s *scope, err error) error {
	switch {
	case err == nil && s.stale.err == nil:
		return nil
	case err == nil:
		return r.degrade(s, sourceOutcome(s.stale.err), s.stale.err)
	case errors.As(err, new(*cache.Unanswered)):
		return r.awaitAnswer(s, err)
	}
	outcome := sourceOutcome(err)
	if !delivered(s.app) || errors.Is(err, failure.ErrSignature) || errors.Is(err, failure.ErrDigest) || errors.Is(err, failure.ErrNotReady) {
		return outcome
	}
	s.kept = true
	return r.degrade(s, outcome, err)
}

// degrade has the app go on without its source, which is asked again after a while where that may help.
func (r *Reconciler) degrade(s *scope, outcome, err error) error {
	if _, final := verdict.Of(err); !final {
		s.soon(max(s.stale.retry, time.Second))
	}
	return step.Degrade(outcome)
}

// awaitAnswer ends the step while the source is asked. That it lasts is told where nothing else is to be told of the source.
func (r *Reconciler) awaitAnswer(s *scope, waits error) error {
	last := conditions.Get(s.app, v1alpha1.SourceReadyCondition)
	failed := last != nil && last.Status == metav1.ConditionFalse && last.ObservedGeneration == s.app.Generation
	switch {
	case r.moment(waits):
		return step.Soon(patience)
	case delivered(s.app) && failed:
		s.kept = true
		return step.Degrade(step.Fail(last.Reason, errors.New(last.Message)))
	case delivered(s.app):
		s.kept = true
		return step.Skip()
	case failed:
		return step.Soon(lastLook)
	}
	return step.Wait(v1alpha1.ProgressingReason, lastLook, "%w", waits)
}

// delivered reports whether what the app is declared to be now was delivered, so that nothing is missing but what may be new in its
// source.
func delivered(app *v1alpha1.App) bool {
	condition := v1alpha1.AppliedCondition
	if app.Spec.Helm != nil {
		condition = v1alpha1.ReleasedCondition
	}
	c := conditions.Get(app, condition)
	return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == app.Generation && app.Status.LastAppliedRevision != "" &&
		(!usesFolder(&app.Spec) || app.Status.ObservedTree == app.Annotations[v1alpha1.TreeAnnotation])
}

// sourceOutcome tells faults of the source that only a change can mend from those that time mends.
func sourceOutcome(err error) error {
	reason, final := verdict.Of(err)
	switch {
	case err == nil, step.Ended(err):
		return err
	case errors.Is(err, failure.ErrBusy):
		return step.Wait(reason, time.Minute, "%w", err) // It is woken when there is room.
	case errors.Is(err, failure.ErrNotReady):
		return step.Wait(reason, time.Minute, "%w", err)
	case final:
		return step.Stop(reason, err)
	}
	return step.Fail(reason, err)
}
