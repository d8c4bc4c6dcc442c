package verdict

import (
	"context"
	"fmt"
	"testing"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
)

func TestTheKindOfAnErrorDecidesTheReasonAndTheRetry(t *testing.T) {
	cases := map[string]struct {
		err    error
		reason string
		final  bool
	}{
		"busy":              {failure.New(failure.ErrBusy, "x"), v1alpha1.WaitingForTurnReason, false},
		"nothing made yet":  {fmt.Errorf("x: %w", failure.ErrNotReady), v1alpha1.DependencyNotReadyReason, false},
		"another signer":    {failure.New(failure.ErrSignature, "x"), v1alpha1.VerificationFailedReason, true},
		"no tag":            {failure.New(failure.ErrNoTag, "x"), v1alpha1.SourceNotFoundReason, true},
		"credentials":       {failure.New(failure.ErrAuthentication, "x"), v1alpha1.AuthenticationFailedReason, true},
		"nothing there":     {fmt.Errorf("fetching: %w", failure.New(failure.ErrNotFound, "x")), v1alpha1.SourceNotFoundReason, true},
		"a bad URL":         {failure.New(failure.ErrInvalid, "x"), v1alpha1.InvalidSourceReason, true},
		"too large":         {failure.TooLarge("it", 1), v1alpha1.InvalidSourceReason, true},
		"too large a chart": {failure.New(failure.ErrChartTooLarge, "x"), v1alpha1.TooLargeReason, true},
		"another digest":    {failure.New(failure.ErrDigest, "x"), v1alpha1.DigestMismatchReason, true},
		"a dependency":      {fmt.Errorf("dependency x: %w", failure.New(failure.ErrDigest, "x")), v1alpha1.DigestMismatchReason, true},
		"down":              {fmt.Errorf("%w: x", failure.ErrUnavailable), v1alpha1.FetchFailedReason, false},
		"too slow":          {failure.TooSlow("it did not end", 1), v1alpha1.FetchFailedReason, false},
		"a server's fault":  {failure.New(failure.ErrServer, "x"), v1alpha1.FetchFailedReason, false},
		"the time is over":  {context.DeadlineExceeded, v1alpha1.FetchFailedReason, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if reason, final := Of(tc.err); reason != tc.reason || final != tc.final {
				t.Errorf("got %s, %v, want %s, %v", reason, final, tc.reason, tc.final)
			}
		})
	}
}
