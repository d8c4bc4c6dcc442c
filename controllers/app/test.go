package app

import (
	"context"
	"fmt"
	"time"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
)

// test runs the chart's tests, once for each revision, when it is healthy.
func (r *Reconciler) test(ctx context.Context, s *scope) error {
	switch outcome := s.helm.outcome; outcome.Test {
	case "Succeeded":
		s.helm.proven = true
		return nil
	case "Failed":
		s.helm.proven = s.app.Spec.Helm.Test.IgnoreFailures
		if s.helm.proven {
			return nil
		}
		return step.FailAfter(v1alpha1.TestFailedReason, time.Minute, fmt.Errorf("a test of the chart failed: %s", outcome.TestWhy))
	}
	request := r.request(ctx, s)
	outcome, err := r.Releases.Test(ctx, request)
	switch {
	case err != nil:
		return releaseError(err)
	case outcome.Failed != nil:
		pause := max(outcome.RetryAt.Sub(r.Clock.Now()), 100*time.Millisecond)
		return step.FailAfter(v1alpha1.RetryingReason, pause, outcome.Failed)
	case outcome.Running:
		return r.waitForAction(s, "test", outcome, fmt.Errorf("testing release %s", request.Name))
	}
	s.helm.proven = true // The chart has no tests.
	return nil
}
