// Package verdict translates the error of a fetch into the outcome for the object that has the source.
package verdict

import (
	"errors"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
)

// Of returns the reason of the condition for an error of a fetch, and whether it is final: only a change of the source, or of what
// names it, can help.
func Of(err error) (reason string, final bool) {
	switch {
	case errors.Is(err, failure.ErrBusy):
		return v1alpha1.WaitingForTurnReason, false
	case errors.Is(err, failure.ErrNotReady):
		return v1alpha1.DependencyNotReadyReason, false
	case errors.Is(err, failure.ErrAuthentication):
		return v1alpha1.AuthenticationFailedReason, true
	case errors.Is(err, failure.ErrNotFound):
		return v1alpha1.SourceNotFoundReason, true
	case errors.Is(err, failure.ErrSignature):
		return v1alpha1.VerificationFailedReason, true
	case errors.Is(err, failure.ErrDigest):
		return v1alpha1.DigestMismatchReason, true
	case errors.Is(err, failure.ErrChartTooLarge):
		return v1alpha1.TooLargeReason, true
	case errors.Is(err, failure.ErrInvalid), errors.Is(err, failure.ErrTooLarge):
		return v1alpha1.InvalidSourceReason, true
	}
	return v1alpha1.FetchFailedReason, false
}
