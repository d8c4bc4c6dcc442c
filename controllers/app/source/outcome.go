package source

import (
	"errors"
	"time"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/fetch/cache"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/verdict"
	"github.com/kubeop/kubeop/delivery/policy"
)

// stale says why a source could not be reached, so that its last answer is used.
type stale struct {
	// err is the reason, and retry the time until the next fetch. waits: a fetch is in progress.
	err   error
	retry time.Duration
	waits bool
}

// end returns the outcome of the step SourceReady. If a source cannot be reached, the delivered objects keep running: SourceReady reports
// the error, and Ready depends on the delivered objects.
func (f *Fetcher) end(p *pass, err error) error {
	switch {
	case err == nil && p.found.stale.err == nil:
		return nil
	case err == nil:
		return p.degrade(outcomeOf(p.found.stale.err), p.found.stale.err)
	case errors.As(err, new(*cache.Unanswered)):
		return p.awaitAnswer(err)
	}
	outcome := outcomeOf(err)
	p.found.InLine = errors.Is(err, failure.ErrBusy)
	if !delivered(p.App) || errors.Is(err, failure.ErrSignature) || errors.Is(err, failure.ErrDigest) || errors.Is(err, failure.ErrNotReady) ||
		errors.As(err, new(*policy.Violation)) {
		return outcome
	}
	p.found.Kept = true
	return p.degrade(outcome, err)
}

// degrade ends the step so that the App continues without its source. If a retry may help, the source is fetched again later.
func (p *pass) degrade(outcome, err error) error {
	if _, final := verdict.Of(err); !final {
		p.LookAgain(max(p.found.stale.retry, time.Second))
	}
	return step.Degrade(outcome)
}

// awaitAnswer ends the step while the source is being fetched.
func (p *pass) awaitAnswer(waits error) error {
	switch {
	case p.justQueried(waits):
		return step.Soon(step.Quiet)
	case delivered(p.App):
		p.found.Kept = true
		return step.Skip()
	}
	return step.Unanswered(step.LastLook, waits)
}

// delivered reports whether the App was delivered with its present spec and folder. Then only changes of the source can be missing. Without the source,
// the App's wanted objects are unknown, so the status has to say what was applied.
func delivered(app *v1alpha1.App) bool {
	return app.Status.LastAppliedRevision != "" && appliedGeneration(&app.Status) == app.Generation &&
		(!usesFolder(&app.Spec) || app.Status.ObservedTree == app.Annotations[v1alpha1.TreeAnnotation])
}

// appliedGeneration returns the generation that is applied, 0 for none. In a status that was written before status.appliedGeneration existed, it is that of the
// last delivery, if that succeeded.
func appliedGeneration(status *v1alpha1.AppStatus) int64 {
	switch {
	case status.AppliedGeneration != nil:
		return *status.AppliedGeneration
	case len(status.Deliveries) > 0 && status.Deliveries[0].Result == v1alpha1.DeliverySucceeded:
		return status.Deliveries[0].Generation
	}
	return 0
}

// outcomeOf separates errors of the source that only a change can solve from errors that may pass.
func outcomeOf(err error) error {
	reason, final := verdict.Of(err)
	switch {
	case err == nil, step.Ended(err):
		return err
	case errors.As(err, new(*policy.Violation)):
		return step.Stop(v1alpha1.NotAllowedReason, err)
	case errors.Is(err, failure.ErrBusy):
		return step.Wait(reason, time.Minute, "%w", err) // The App is woken when its fetch may begin.
	case errors.Is(err, failure.ErrNotReady):
		return step.Wait(reason, time.Minute, "%w", err)
	case final:
		return step.Stop(reason, err)
	}
	return step.Fail(reason, err)
}

// usesFolder reports whether the spec names files in the App's folder.
func usesFolder(spec *v1alpha1.AppSpec) bool {
	return (spec.Image != nil && len(spec.Image.ConfigFiles) > 0) || (spec.Raw != nil && spec.Raw.Path != "") || (spec.Helm != nil && (spec.Helm.Path != "" || len(spec.Helm.ValuesFiles) > 0))
}
