package step

import (
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// verdict is how a step ended that did not succeed, with the reason for its condition.
type verdict struct {
	kind   kind
	reason string
	after  time.Duration
	err    error
	// goesOn: the later steps run. stands: the Reconcile then ends as they do, and not with this.
	goesOn, stands bool
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

// Wait ends a step in which nothing is wrong: look again after the given time, or sooner when a watch reports a change.
func Wait(reason string, after time.Duration, format string, args ...any) error {
	return &verdict{kind: waiting, reason: reason, after: after, err: fmt.Errorf(format, args...)}
}

// Soon ends a step with work that has begun and will end shortly. Nothing is reported yet, the status stays, and the object is reconciled
// again after the given time, or sooner when a watch reports a change. That saves a status write that the next one would replace at once.
func Soon(after time.Duration) error {
	return &verdict{kind: quiet, after: after, err: errors.New("under way")}
}

// Stop ends a step that only a change of the object or its source can help. The object is Stalled, and looked at again
// at its interval, because the source may change without an event.
func Stop(reason string, err error) error {
	return &verdict{kind: stopped, reason: reason, err: err}
}

// Fail gives an error that is tried again with backoff the reason of its condition.
func Fail(reason string, err error) error {
	return &verdict{kind: failed, reason: reason, err: err}
}

// FailAfter is Fail for a failure that the next look may find mended, without anything being tried again: it is looked at
// after the given time instead of with backoff.
func FailAfter(reason string, after time.Duration, err error) error {
	return &verdict{kind: failed, reason: reason, after: after, err: err}
}

// Degrade ends a step that failed though what was delivered before stands: the condition of the step is false, with the reason and
// words of err, the later steps run, and Ready is what they make it. There is one event.
func Degrade(err error) error {
	v := outcomeOf(err)
	return &verdict{kind: v.kind, reason: v.reason, after: v.after, err: v.err, goesOn: true, stands: true}
}

// GoOn is Degrade for a failure that Ready reports, when no later step ends worse.
func GoOn(err error) error {
	v := outcomeOf(err)
	return &verdict{kind: v.kind, reason: v.reason, after: v.after, err: v.err, goesOn: true}
}

// Add adds words to what a step says that ends with err, after a semicolon.
func Add(err error, words string) error {
	v := outcomeOf(err)
	return &verdict{kind: v.kind, reason: v.reason, after: v.after, err: fmt.Errorf("%w; %s", err, words), goesOn: v.goesOn, stands: v.stands}
}

// Skip leaves a step out: its condition stays, and the later steps run.
func Skip() error { return &verdict{kind: skipped, err: errors.New("left out"), goesOn: true} }

// Refused ends a step when applying failed with err, which may join several errors. It returns Stop if only people can help, that is if
// each error is a rejection of the object as invalid, or is foreign: an object that is not kubeop's has its name. Otherwise it returns
// Fail; nil for nil.
func Refused(reason string, err, foreign error) error {
	if err == nil {
		return nil
	}
	all := []error{err}
	if joined := (interface{ Unwrap() []error })(nil); errors.As(err, &joined) {
		all = joined.Unwrap()
	}
	for _, each := range all {
		if !apierrors.IsInvalid(each) && !apierrors.IsBadRequest(each) && !errors.Is(each, foreign) {
			return Fail(reason, err)
		}
	}
	return Stop(reason, err)
}

// Ended reports whether an error says how a step ends, as those of this package do.
func Ended(err error) bool { return errors.As(err, new(*verdict)) }

// Waits reports whether a step that ends so has nothing wrong.
func Waits(err error) bool {
	kind := outcomeOf(err).kind
	return kind == waiting || kind == quiet
}

// Fails reports whether a step that ends so is tried again with backoff.
func Fails(err error) bool { return err != nil && outcomeOf(err).kind == failed }

// outcomeOf returns err as a verdict; an error without one is a failure that is tried again.
func outcomeOf(err error) *verdict {
	var v *verdict
	if errors.As(err, &v) {
		return &verdict{kind: v.kind, reason: v.reason, after: v.after, err: err, goesOn: v.goesOn, stands: v.stands}
	}
	reason := v1alpha1.FailedReason
	if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
		reason = v1alpha1.AccessDeniedReason
	}
	return &verdict{kind: failed, reason: reason, err: err}
}
