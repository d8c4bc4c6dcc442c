package step

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/denial"
	"github.com/kubeop/kubeop/delivery/kube"
)

// verdict says how a step ended that did not succeed, with the reason for its condition.
type verdict struct {
	kind   kind
	reason string
	after  time.Duration
	err    error
	// goesOn: the later steps run. stands: Ready depends only on the later steps, and not on this verdict.
	goesOn, stands bool
	// noNews: a failure that the condition reports for the present spec stays, and nothing is reported.
	noNews bool
}

type kind int

const (
	waiting kind = iota
	quiet
	stopped
	failed
	skipped
)

func (v *verdict) Error() string { return v.err.Error() }
func (v *verdict) Unwrap() error { return v.err }

// Wait ends a step in which nothing failed. The object is reconciled again after the given time, or sooner when a watch reports a change.
func Wait(reason string, after time.Duration, format string, args ...any) error {
	return &verdict{kind: waiting, reason: reason, after: after, err: fmt.Errorf(format, args...)}
}

// Unanswered ends a step that waits for the first answer since the operator started: like Wait or, if its condition reports a failure of the
// present spec, like Soon, because the restart is no news about the failure.
func Unanswered(after time.Duration, waits error) error {
	return &verdict{kind: waiting, reason: v1alpha1.ProgressingReason, after: after, err: waits, noNews: true}
}

// Soon ends a step whose work will end shortly. The status is not written, and the object is reconciled again after the given time, or
// sooner when a watch reports a change. That saves a status write that the next one would replace at once.
func Soon(after time.Duration) error {
	return &verdict{kind: quiet, after: after, err: errors.New("under way")}
}

// Stop ends a step that only a change of the object or its source can help. The object is Stalled, and reconciled again at its interval,
// because the source may change without an event.
func Stop(reason string, err error) error {
	return &verdict{kind: stopped, reason: reason, err: err}
}

// Fail ends a step with an error that is retried with backoff; reason is the reason of its condition.
func Fail(reason string, err error) error {
	return &verdict{kind: failed, reason: reason, err: err}
}

// FailAfter is Fail, but the object is reconciled again after the given time instead of with backoff. It is for failures that may end by
// themselves.
func FailAfter(reason string, after time.Duration, err error) error {
	return &verdict{kind: failed, reason: reason, after: after, err: err}
}

// Degrade ends a step that failed without an effect on what was delivered. The step's condition is False, with the reason and message of
// err, the later steps run, and they alone decide Ready. There is one event, whatever the condition and however the later steps end.
func Degrade(err error) error {
	v := outcomeOf(err)
	return &verdict{kind: v.kind, reason: v.reason, err: v.err, goesOn: true, stands: true}
}

// GoOn is Degrade for a failure that Ready reports, unless a later step fails.
func GoOn(err error) error {
	v := outcomeOf(err)
	return &verdict{kind: v.kind, reason: v.reason, after: v.after, err: v.err, goesOn: true}
}

// Add adds words to the message of err, after a semicolon.
func Add(err error, words string) error {
	v := outcomeOf(err)
	return &verdict{kind: v.kind, reason: v.reason, after: v.after, err: fmt.Errorf("%w; %s", err, words), goesOn: v.goesOn, stands: v.stands}
}

// Skip ends a step without a result: its condition stays as it is, and the later steps run.
func Skip() error { return &verdict{kind: skipped, err: errors.New("left out")} }

// Refused ends a step whose apply failed with err, which may join several errors. It returns Stop if only people can help: each error says
// that the object is invalid or is the error "foreign", that another owner's object has the name. Otherwise it returns Fail. If err is nil,
// it returns nil.
func Refused(reason string, err, foreign error) error {
	if err == nil {
		return nil
	}
	all := []error{err}
	if joined := (interface{ Unwrap() []error })(nil); errors.As(err, &joined) {
		all = joined.Unwrap()
	}
	for _, each := range all {
		if !Unacceptable(each) && !errors.Is(each, foreign) {
			return Fail(reason, err)
		}
	}
	return Stop(reason, err)
}

// Unacceptable reports whether the API server will refuse an object again until it is changed.
func Unacceptable(err error) bool {
	return (apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)) && !denial.Unjudged(err)
}

// Ended reports whether an error comes from this package, and so already says how the step ends.
func Ended(err error) bool { return errors.As(err, new(*verdict)) }

// Waits reports whether the error says that the step waits and nothing failed.
func Waits(err error) bool {
	kind := outcomeOf(err).kind
	return kind == waiting || kind == quiet
}

// Fails reports whether the error says that the step is retried with backoff.
func Fails(err error) bool { return err != nil && outcomeOf(err).kind == failed }

// Failure returns the reason of an error that says that a step failed, whether it is tried again or not. is is false for any other error,
// and for one that Ready does not report.
func Failure(err error) (reason string, is bool) {
	if err == nil {
		return "", false
	}
	v := outcomeOf(err)
	return v.reason, (v.kind == stopped || v.kind == failed) && !v.stands
}

// Reason returns the reason of the condition of a step that ends with the error, which is not nil.
func Reason(err error) string { return outcomeOf(err).reason }

// Failing reports whether the condition of a step that ends with the error is False: the step failed, whether it is tried again or not, and also if
// Ready does not report it. A step that needs a watch without a first list has not failed.
func Failing(err error) bool {
	if err == nil || errors.As(err, new(*kube.Unready)) {
		return false
	}
	v := outcomeOf(err)
	return v.kind == stopped || v.kind == failed
}

// outcomeOf returns the verdict of an error. An error that is no verdict is a failure that is retried.
func outcomeOf(err error) *verdict {
	var v *verdict
	if errors.As(err, &v) {
		return &verdict{kind: v.kind, reason: v.reason, after: v.after, err: err, goesOn: v.goesOn, stands: v.stands, noNews: v.noNews}
	}
	reason := v1alpha1.FailedReason
	if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
		reason = v1alpha1.AccessDeniedReason
	}
	return &verdict{kind: failed, reason: reason, err: err}
}

// Repeat calls do until it does not wait any more. The pause between two calls doubles each time, up to longest. At the end of ctx it returns what do
// waited for.
func Repeat(ctx context.Context, pause, longest time.Duration, do func() error) error {
	var last error
	pauses := wait.Backoff{Duration: pause, Factor: 2, Steps: math.MaxInt, Cap: longest}
	err := pauses.DelayFunc().Until(ctx, true, true, func(context.Context) (bool, error) {
		last = do()
		return !Waits(last), nil
	})
	if last == nil && err != nil {
		return err
	}
	return last
}
