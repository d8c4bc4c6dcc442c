package app

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/app/drift"
	"github.com/kubeop/kubeop/controllers/app/handover"
	"github.com/kubeop/kubeop/controllers/app/prune"
	"github.com/kubeop/kubeop/controllers/app/subject"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/apply"
	"github.com/kubeop/kubeop/delivery/backoff"
	"github.com/kubeop/kubeop/delivery/digest"
	"github.com/kubeop/kubeop/delivery/garbage"
	"github.com/kubeop/kubeop/delivery/guardrails"
	"github.com/kubeop/kubeop/delivery/inventory"
	"github.com/kubeop/kubeop/delivery/podsecurity"
	"github.com/kubeop/kubeop/delivery/release"
	"github.com/kubeop/kubeop/delivery/release/cluster"
)

// releases is implemented by *release.Engine.
type releases interface {
	Drift(ctx context.Context, req release.Request, refs []cluster.Ref, correct bool) ([]cluster.Difference, error)
	MarkFailed(ctx context.Context, req release.Request, why string) (done bool, err error)
	Reconcile(ctx context.Context, req release.Request) (release.Outcome, error)
	Test(ctx context.Context, req release.Request) (release.Outcome, error)
	Uninstall(ctx context.Context, req release.Request) (done bool, err error)
}

// releaser installs, upgrades, tests and uninstalls the releases of Helm Apps.
type releaser struct {
	engine    releases
	applier   *apply.Applier
	transfers *handover.Transfers
	pruner    *prune.Pruner
	drift     *drift.Applied
	admitter  *admitter
	seal      digest.Seal

	memory subject.Memory[releaseMemory]
}

// facts returns the facts at the start of a Reconcile.
func (r *releaser) facts(app *v1alpha1.App) releaseFacts {
	memory := r.memory.Get(app)
	memory.reported(app)
	return releaseFacts{memory: memory, seal: r.seal}
}

// release releases the chart with its values. A Helm action may block on hooks, so it runs beside the Reconcile. The end of the action
// wakes the App.
func (r *releaser) release(ctx context.Context, s *scope) error {
	request := r.request(ctx, s)
	request.Policy.Admit = r.admitter.tenants.Hosts.Admit(ctx, s.Owner, request.Policy.Admit)
	outcome, err := r.engine.Reconcile(ctx, request)
	if err != nil {
		return r.transfers.AwaitRelease(ctx, s.Subject, releaseError(err))
	}
	if outcome.Accepted && (request.Manual.Force || request.Manual.Reset) {
		s.release.accepted = true
		if err := step.Checkpoint(ctx); err != nil {
			return err
		}
	}
	if outcome.Running {
		return awaitAction(s, "release", outcome, underWay(request.Name, outcome))
	}
	s.release.outcome = &outcome
	if err := r.recordObjects(ctx, s, outcome); err != nil {
		return err
	}
	s.release.notes = append(s.release.notes, remediated(outcome))
	if !tested(s.App) {
		s.release.notes = append(s.release.notes, step.Note{Condition: v1alpha1.TestSuccessCondition})
	}
	// A rollback returns to a revision that had passed its checks.
	s.release.proven = outcome.Remediation != nil && outcome.Remediation.To != 0 && outcome.Remediation.Err == nil
	if outcome.Failed != nil {
		return r.failed(s, outcome)
	}
	s.outcome.applied = true
	if err := r.admitter.sources.VerifyRunning(ctx, s.Subject, s.inventory.Entries); err != nil {
		return err
	}
	return r.findDrift(ctx, s, request)
}

// awaitAction waits for an action. A queued action may wait for thousands of others; the engine wakes the App when its action begins.
func awaitAction(s *scope, phase string, outcome release.Outcome, message error) error {
	if outcome.Queued {
		return step.WaitQuietly(s.Waited(phase+" in line"), step.QuietInLine, time.Minute, message)
	}
	return step.WaitQuietly(s.Waited(phase), step.Quiet, step.LastLook, message)
}

func underWay(name string, outcome release.Outcome) error {
	if outcome.Queued {
		return fmt.Errorf("release %s waits for a free worker; next is %s it", name, outcome.Action)
	}
	if outcome.Why != "" {
		return fmt.Errorf("%s release %s: %s", outcome.Action, name, outcome.Why)
	}
	return fmt.Errorf("%s release %s", outcome.Action, name)
}

// request describes the wanted release.
func (r *releaser) request(ctx context.Context, s *scope) release.Request {
	// Copy the App: an action may outlive this Reconcile, and patching the status writes into s.App.
	app := s.App.DeepCopy()
	spec := app.Spec.Helm
	recorded := s.recordedRevision()
	return release.Request{
		App:       s.Key(),
		Tenant:    s.Owner.Tenant,
		Name:      s.App.ReleaseName(),
		Namespace: s.App.Namespace,
		User:      r.admitter.clients.Of(s.App.Namespace),
		Input: release.Input{
			Chart:          s.found.Chart,
			Values:         s.values,
			ValuesFiles:    spec.ChartValuesFiles,
			PostRenderers:  spec.PostRenderers,
			CommonMetadata: spec.CommonMetadata,
			Admission:      admissionOf(s),
		},
		Actions: s.Actions(spec.HelmActions),
		Timeout: s.App.Spec.Within(),
		Ignore:  app.Spec.Drift.Ignore,
		Policy: release.Policy{
			Admit:     r.admitter.admitRendered(context.WithoutCancel(ctx), s),
			Refused:   refused,
			Weigh:     r.admitter.weigh(s),
			Allowance: r.admitter.allowance(ctx, s),
			Mended:    r.admitter.sources.Queue.Mended(s.Key()),
			Retry:     func(attempts int) time.Duration { return retryAfter(app, attempts) },
			Owned:     owned(s),
		},
		Recorded: release.Recorded{
			Revision: recorded.revision,
			Content:  recorded.content,
			Proven:   s.release.provenBefore(&s.App.Status, recorded),
			Unmoved:  r.unmoved(ctx, s),
		},
		Manual: release.Manual{
			Force: s.Forced(),
			Reset: s.Reset(),
			ID:    s.App.Annotations[meta.ForceRequestAnnotation] + "/" + s.App.Annotations[v1alpha1.ResetAnnotation],
		},
		Sensitive: s.Sensitive(),
	}
}

// retryAfter is the pause after a number of failures: retryInterval if set, otherwise one second, doubled with each failure.
func retryAfter(app *v1alpha1.App, attempts int) time.Duration {
	if d := app.Spec.RetryInterval; d != nil {
		return d.Duration
	}
	return backoff.Pause(attempts)
}

// admissionOf identifies how the admission changes objects, if not as usual.
func admissionOf(s *scope) string {
	changes := podsecurity.Unusual(s.Fill) + guardrails.Marked(s.Guardrails)
	if target := s.App.Spec.TargetNamespace; target != "" {
		changes += " in " + target
	}
	return changes
}

// owned returns a function that lists, at the time of the call, the objects that own claims with data.
func owned(s *scope) func(context.Context) (map[types.UID][]string, error) {
	reader, namespace := s.Client, s.App.Namespace
	return func(ctx context.Context) (map[types.UID][]string, error) {
		return garbage.ClaimsByOwner(ctx, reader, namespace)
	}
}

// unmoved returns a function that reports whether an object certainly has not changed since Helm wrote it. Actions call the function while
// they run.
func (r *releaser) unmoved(ctx context.Context, s *scope) func(*unstructured.Unstructured) bool {
	entries, reader := s.judged(s.recordedEntries()), s.Client
	still := sync.OnceValue(func() map[string]bool {
		moved, err := r.applier.Moved(context.WithoutCancel(ctx), reader, entries, nil)
		if err != nil {
			return nil
		}
		same := map[string]bool{}
		for _, e := range entries {
			same[e.ID] = true
		}
		for _, e := range moved {
			delete(same, e.ID)
		}
		return same
	})
	return func(o *unstructured.Unstructured) bool { return still()[inventory.IDOf(o).String()] }
}

// test runs the chart's tests once for each revision, after the revision is healthy.
func (r *releaser) test(ctx context.Context, s *scope) error {
	switch outcome := s.release.outcome; outcome.Test.Result {
	case "Succeeded":
		s.release.proven = true
		return nil
	case "Failed":
		s.release.proven = s.App.Spec.Helm.Test.IgnoreFailures
		if s.release.proven {
			return nil
		}
		return step.FailAfter(v1alpha1.TestFailedReason, time.Minute, fmt.Errorf("a test of the chart failed: %s", outcome.Test.Why))
	}
	request := r.request(ctx, s)
	outcome, err := r.engine.Test(ctx, request)
	switch {
	case err != nil:
		return releaseError(err)
	case outcome.Failed != nil:
		pause := max(outcome.Retry.At.Sub(s.Now()), 100*time.Millisecond)
		return step.FailAfter(v1alpha1.RetryingReason, pause, outcome.Failed)
	case outcome.Running:
		return awaitAction(s, "test", outcome, fmt.Errorf("testing release %s", request.Name))
	}
	s.release.proven = true // The chart has no tests.
	return nil
}

// markFailed marks an upgrade that did not become healthy in time as failed, so that it is retried or rolled back. An install is not
// marked, because there is no earlier revision. A revision that was healthy before is not marked, because the upgrade is not the cause.
func (r *releaser) markFailed(ctx context.Context, s *scope, why error) error {
	outcome := s.release.outcome
	if outcome == nil || outcome.Deployed.Installed || s.release.provenBefore(&s.App.Status, deployed{outcome.Deployed.Revision, outcome.Deployed.Content}) {
		return why
	}
	done, err := r.engine.MarkFailed(ctx, r.request(ctx, s), why.Error())
	if err != nil {
		return releaseError(err)
	}
	if !done {
		return why
	}
	s.unhealthySince = nil
	return step.FailAfter(v1alpha1.UnhealthyReason, 50*time.Millisecond, why)
}

// Forget drops the state of an App.
func (r *releaser) Forget(app *v1alpha1.App) { r.memory.Forget(app) }
