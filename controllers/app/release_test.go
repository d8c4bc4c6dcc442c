package app

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/app/source"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/release"
	"github.com/kubeop/kubeop/delivery/release/fault"
)

// TestTheOutcomeOfAReleaseDecidesTheRetryAndTheReason checks for each outcome of a Helm app when the queue retries, what the condition reports and whether the app is Stalled.
func TestTheOutcomeOfAReleaseDecidesTheRetryAndTheReason(t *testing.T) {
	const interval, due = time.Hour, 7 * time.Second
	now := time.Unix(0, 0)
	failed := func(change func(*release.Outcome)) error {
		outcome := release.Outcome{Failed: errors.New("it broke"), Deployed: release.Deployed{Revision: 3}, Retry: release.Retry{Attempts: 2, At: now.Add(due)}}
		change(&outcome)
		r := &releaser{admitter: &admitter{sources: &source.Fetcher{}}}
		return r.failed(scopeOf(&v1alpha1.App{}, r), outcome)
	}
	mended := func(m *release.Remediation) func(*release.Outcome) {
		return func(o *release.Outcome) { o.Retry.Held, o.Remediation = true, m }
	}
	because := func(err error) func(*release.Outcome) {
		return func(o *release.Outcome) { o.Failed = fmt.Errorf("it broke: %w", err) }
	}
	cases := map[string]struct {
		err     error
		reason  string
		says    string
		after   time.Duration
		stalled bool
	}{
		"an upgrade":            {err: failed(func(*release.Outcome) {}), reason: v1alpha1.UpgradeFailedReason, after: due},
		"an install":            {err: failed(func(o *release.Outcome) { o.Deployed.Revision = 0 }), reason: v1alpha1.InstallFailedReason, after: due},
		"the environment":       {err: failed(func(o *release.Outcome) { o.Environment = true }), reason: v1alpha1.RetryingReason, after: due},
		"a test":                {err: failed(func(o *release.Outcome) { o.Test.Result = "Failed" }), reason: v1alpha1.TestFailedReason, after: due},
		"one that is overdue":   {err: failed(func(o *release.Outcome) { o.Retry.At = now.Add(-due) }), reason: v1alpha1.UpgradeFailedReason, after: 100 * time.Millisecond},
		"a forbidden object":    {err: failed(because(&fault.NotAllowed{Err: errors.New("a Node")})), reason: v1alpha1.NotAllowedReason, says: "a Node", after: interval, stalled: true},
		"what does not render":  {err: failed(because(fault.ErrRender)), reason: v1alpha1.RenderFailedReason, after: interval, stalled: true},
		"what is too large":     {err: failed(because(errors.Join(fault.ErrRender, fault.ErrTooLarge))), reason: v1alpha1.TooLargeReason, after: interval, stalled: true},
		"given up":              {err: failed(mended(nil)), reason: v1alpha1.HeldReason, says: "failed 2 times and was left unchanged", after: interval, stalled: true},
		"given up, rolled back": {err: failed(mended(&release.Remediation{Kind: v1alpha1.RemediationRollback, To: 4})), reason: v1alpha1.HeldReason, says: "rolled back to revision 4; held until", after: interval, stalled: true},
		"given up, uninstalled": {err: failed(mended(&release.Remediation{Kind: v1alpha1.RemediationUninstall})), reason: v1alpha1.HeldReason, says: "was uninstalled; held until", after: interval, stalled: true},
		"a foreign lock":        {err: releaseError(fmt.Errorf("it broke: %w", fault.ErrLocked)), reason: v1alpha1.ReleaseLockedReason, after: 10 * time.Second},
		"a foreign release":     {err: releaseError(fmt.Errorf("it broke: %w", fault.ErrTaken)), reason: v1alpha1.ReleaseTakenReason, after: interval, stalled: true},
		"the operator drains":   {err: releaseError(fmt.Errorf("it broke: %w", fault.ErrDraining)), reason: v1alpha1.ProgressingReason, after: 10 * time.Second},
		"objects being deleted": {err: releaseError(&fault.Terminating{Objects: []string{"it broke"}}), reason: v1alpha1.DeletingReason, after: 2 * time.Second},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			app := &v1alpha1.App{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "app", Finalizers: []string{v1alpha1.Finalizer}},
				Spec:       v1alpha1.AppSpec{Type: v1alpha1.AppHelm, Helm: &v1alpha1.HelmSource{Path: "chart"}},
			}
			app.Spec.Interval.Duration = interval
			r := newReconciler(t, app)
			s := r.newScope(app)
			do := func(context.Context, *scope) error { return tc.err }
			result, err := r.steps.Run(t.Context(), app, s, step.Of(v1alpha1.ReleasedCondition, s, do))
			if err != nil {
				t.Errorf("the step returns the error %v, and the queue would back off twice", err)
			}
			if d := result.RequeueAfter - tc.after; d < -tc.after/10 || d > tc.after/10 {
				t.Errorf("requeued after %s, want about %s", result.RequeueAfter, tc.after)
			}
			is := conditions.Get(app, v1alpha1.ReleasedCondition)
			if is == nil || is.Reason != tc.reason || !strings.Contains(is.Message, "it broke") || !strings.Contains(is.Message, tc.says) {
				t.Errorf("the condition is %v, want reason %s and %q in the message", is, tc.reason, tc.says)
			}
			if conditions.IsStalled(app) != tc.stalled {
				t.Errorf("Stalled is %t", conditions.IsStalled(app))
			}
		})
	}
}

// TestTheConditionRemediatedReportsTheRemediation checks the condition that reports the rollback or uninstall of a failed input.
func TestTheConditionRemediatedReportsTheRemediation(t *testing.T) {
	cases := map[string]struct {
		remediation          *release.Remediation
		status               metav1.ConditionStatus
		reason, event, words string
	}{
		"nothing":      {},
		"rolled back":  {&release.Remediation{Kind: v1alpha1.RemediationRollback, To: 4}, metav1.ConditionTrue, v1alpha1.RollbackSucceededReason, "Warning", "rolled back to revision 4"},
		"in vain":      {&release.Remediation{Kind: v1alpha1.RemediationRollback, To: 4, Err: errors.New("refused")}, metav1.ConditionFalse, v1alpha1.RollbackFailedReason, "Warning", "rolling back to revision 4: refused"},
		"uninstalled":  {&release.Remediation{Kind: v1alpha1.RemediationUninstall}, metav1.ConditionTrue, v1alpha1.UninstallSucceededReason, "Warning", "uninstalled, because it kept failing"},
		"not yet gone": {&release.Remediation{Kind: v1alpha1.RemediationUninstall, Err: errors.New("refused")}, metav1.ConditionFalse, v1alpha1.UninstallFailedReason, "Warning", "uninstalling what kept failing: refused"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := remediated(release.Outcome{Remediation: tc.remediation})
			want := step.Note{Condition: v1alpha1.RemediatedCondition, Status: tc.status, Reason: tc.reason, Message: tc.words, Event: tc.event}
			if got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}
