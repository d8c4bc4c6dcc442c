package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/apply"
	"github.com/kubeop/kubeop/delivery/backoff"
	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/delivery/inventory"
	"github.com/kubeop/kubeop/delivery/kube"
	"github.com/kubeop/kubeop/delivery/policy"
	"github.com/kubeop/kubeop/delivery/release"
	"github.com/kubeop/kubeop/delivery/release/fault"
)

const (
	// By these annotations, which are Flux's, people ask for another try and for the failures to be forgotten.
	forceAnnotation = meta.ForceRequestAnnotation
	resetAnnotation = "reconcile.fluxcd.io/resetAt"
)

// release has the chart and values released. A Helm action may block on hooks, so it runs detached, and the app is woken
// when it has ended.
func (r *Reconciler) release(ctx context.Context, s *scope) error {
	request := r.request(ctx, s)
	outcome, err := r.Releases.Reconcile(ctx, request)
	if err != nil {
		return releaseError(err)
	}
	if outcome.Accepted && (request.Force || request.Reset) {
		s.helm.accepted = true
		if err := step.Checkpoint(ctx); err != nil {
			return err
		}
	}
	if outcome.Running {
		return r.waitForAction(s, "release", outcome, underWay(request.Name, outcome))
	}
	s.helm.outcome = &outcome
	if err := r.recordObjects(ctx, s, outcome); err != nil {
		return err
	}
	s.helm.notes = append(s.helm.notes, remediated(outcome))
	if !tested(&s.app.Spec) {
		s.helm.notes = append(s.helm.notes, step.Note{Condition: v1alpha1.TestSuccessCondition})
	}
	// What a rollback returned to was good.
	s.helm.proven = outcome.Remediation != nil && outcome.Remediation.To != 0 && outcome.Remediation.Err == nil
	if outcome.Failed != nil {
		return r.releaseFailed(s, outcome)
	}
	s.applied = true
	return r.drift(ctx, s, request)
}

// waitForAction waits for an action that may not have begun.
func (r *Reconciler) waitForAction(s *scope, phase string, outcome release.Outcome, message error) error {
	if outcome.Queued {
		return r.waitInLine(s, phase, message)
	}
	return r.wait(s, phase, patience, message)
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

// request says what the release should be.
func (r *Reconciler) request(ctx context.Context, s *scope) release.Request {
	// An action that runs on keeps the request, while the status patch decodes into the app.
	app := s.app.DeepCopy()
	spec := app.Spec.Helm
	recorded := recordedRevision(s)
	return release.Request{
		App:              client.ObjectKeyFromObject(s.app),
		Name:             releaseName(s.app),
		Namespace:        s.app.Namespace,
		User:             kube.DeployerOf(s.app.Namespace),
		Chart:            s.chart,
		Values:           s.values,
		ChartValuesFiles: spec.ChartValuesFiles,
		PostRenderers:    spec.PostRenderers,
		CommonMetadata:   spec.CommonMetadata,
		Actions:          spec.HelmActions,
		Ignore:           app.Spec.Drift.Ignore,
		Timeout:          s.app.Spec.Within(),
		Admit:            r.check(s),
		Refused:          refused,
		Weigh:            r.weigh(s),
		Allowance:        r.allowance(s),
		Retry:            func(attempts int) time.Duration { return retryAfter(app, attempts) },
		Proven:           s.helm.provenBefore(&s.app.Status, recorded),
		Force:            asks(s.app, forceAnnotation, s.app.Status.LastHandledForceAt),
		Reset:            asks(s.app, resetAnnotation, s.app.Status.LastHandledResetAt),
		Asked:            s.app.Annotations[forceAnnotation] + "/" + s.app.Annotations[resetAnnotation],
		Known:            recorded.revision,
		KnownContent:     recorded.content,
		Unmoved:          r.unmoved(ctx, s),
		Owned:            owned(s),
		Tenant:           s.owner.Tenant,
		Sensitive:        s.sensitive,
	}
}

// owned returns a function that names what owns claims with data, as it is when it is asked.
func owned(s *scope) func(context.Context) (map[types.UID][]string, error) {
	reader, namespace := s.client, s.app.Namespace
	return func(ctx context.Context) (map[types.UID][]string, error) { return apply.Owned(ctx, reader, namespace) }
}

// asks reports whether people ask for something by an annotation: a new value asks anew, and one that is taken away asks
// for nothing.
func asks(app *v1alpha1.App, annotation, handled string) bool {
	value := app.Annotations[annotation]
	return value != "" && value != handled
}

func releaseName(app *v1alpha1.App) string { return cmp.Or(app.Spec.Helm.ReleaseName, app.Name) }

// recordedRevision is the revision of the release whose objects are recorded.
func recordedRevision(s *scope) known {
	name := releaseName(s.app)
	if s.memory.revision != 0 && s.memory.release == name {
		return known{s.memory.revision, s.memory.content}
	}
	if was := s.app.Status.Release; was != nil && was.Name == name {
		return s.helm.knownOf(was)
	}
	return known{}
}

// unmoved returns a function that says whether an object is for certain as Helm left it. It is asked while an action runs,
// if at all.
func (r *Reconciler) unmoved(ctx context.Context, s *scope) func(*unstructured.Unstructured) bool {
	entries := namespaced(recordedEntries(s))
	still := sync.OnceValue(func() map[string]bool {
		moved, err := r.Applier.Moved(context.WithoutCancel(ctx), s.client, entries, nil)
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

func recordedEntries(s *scope) []v1alpha1.InventoryEntry {
	if s.memory.revision != 0 && s.memory.release == releaseName(s.app) {
		return s.memory.entries
	}
	return s.inventory.Entries
}

// recordObjects takes what the last action left into the inventory.
func (r *Reconciler) recordObjects(ctx context.Context, s *scope, outcome release.Outcome) error {
	s.inventory = v1alpha1.Inventory{Entries: recordedEntries(s)}
	deployed := known{outcome.Deployed, outcome.Content}
	if deployed == recordedRevision(s) {
		return nil
	}
	left := make([]apply.Left, 0, len(outcome.Objects))
	floors := map[string]string{}
	for _, o := range outcome.Objects {
		if o.Namespace != s.app.Namespace {
			continue // What a record says of other namespaces is none of this app's.
		}
		id := idOf(o.Ref)
		left = append(left, apply.Left{ID: id, Version: o.Version, Live: o.Live})
		if o.Live != nil {
			floors[id.String()] = o.Live.GetResourceVersion()
		}
	}
	entries, err := r.Applier.Record(ctx, s.client, left, s.inventory.Entries)
	if err != nil {
		return err
	}
	entries = inventory.Join(entries, sharedEntries(s.inventory.Entries, outcome)).Entries
	s.memory.release, s.memory.revision, s.memory.content = outcome.Release.Name, deployed.revision, deployed.content
	s.memory.entries, s.memory.floors, s.memory.written = entries, floors, r.Clock.Now()
	s.inventory, s.unhealthySince = v1alpha1.Inventory{Entries: entries}, nil
	return nil
}

// retryAfter is the pause after so many failures: retryInterval where it is set, else one second, doubling.
func retryAfter(app *v1alpha1.App, attempts int) time.Duration {
	if d := app.Spec.RetryInterval; d != nil {
		return d.Duration
	}
	return backoff.Pause(attempts)
}

// releaseError tells what stands in the way of a release from what may pass.
func releaseError(err error) error {
	switch {
	case errors.Is(err, fault.ErrLocked):
		return step.Wait(v1alpha1.ReleaseLockedReason, 10*time.Second, "%w", err)
	case errors.Is(err, fault.ErrTaken):
		return step.Stop(v1alpha1.ReleaseTakenReason, err)
	case errors.Is(err, fault.ErrDraining):
		return step.Wait(v1alpha1.ProgressingReason, 10*time.Second, "%w", err)
	case errors.As(err, new(*fault.ClaimsInTheWay)):
		return claimsInTheWay(err, "or give the release the name back that it had")
	}
	var leaving *fault.Terminating
	if errors.As(err, &leaving) {
		return step.Wait(v1alpha1.DeletingReason, 2*time.Second, "%w", err)
	}
	return err
}

// releaseFailed tells a chart that cannot succeed from an attempt that will be made again.
func (r *Reconciler) releaseFailed(s *scope, outcome release.Outcome) error {
	s.memory.phase = "" // The next try begins quietly again.
	var notAllowed *fault.NotAllowed
	pause := max(outcome.RetryAt.Sub(r.Clock.Now()), 100*time.Millisecond)
	switch {
	case errors.As(outcome.Failed, new(*fault.ClaimsInTheWay)):
		return claimsInTheWay(outcome.Failed, "or have the chart go on with it as it is")
	case policy.OnlyUnknownKinds(outcome.Failed):
		// The kind's definition may be on its way.
		return step.FailAfter(v1alpha1.NotAllowedReason, pause, outcome.Failed)
	case errors.As(outcome.Failed, new(*budget.Exceeded)):
		return step.Stop(v1alpha1.TooLargeReason, outcome.Failed)
	case errors.As(outcome.Failed, &notAllowed):
		return step.Stop(v1alpha1.NotAllowedReason, outcome.Failed)
	case errors.Is(outcome.Failed, fault.ErrTooLarge):
		return step.Stop(v1alpha1.TooLargeReason, outcome.Failed)
	case errors.Is(outcome.Failed, fault.ErrRender):
		return step.Stop(v1alpha1.RenderFailedReason, outcome.Failed)
	case outcome.Held:
		return step.Stop(v1alpha1.HeldReason, held(outcome))
	}
	return step.FailAfter(failureReason(outcome), pause, r.lowered(s, outcome.Failed))
}

func failureReason(outcome release.Outcome) string {
	switch {
	case outcome.World:
		return v1alpha1.RetryingReason
	case outcome.Test == "Failed":
		return v1alpha1.TestFailedReason
	case outcome.Deployed == 0:
		return v1alpha1.InstallFailedReason
	}
	return v1alpha1.UpgradeFailedReason
}

// held says what became of an input that is not tried again.
func held(outcome release.Outcome) error {
	done := "left as it is"
	if m := outcome.Remediation; m != nil && m.Kind == v1alpha1.RemediationRollback {
		done = fmt.Sprintf("rolled back to revision %d", m.To)
	} else if m != nil && m.Kind == v1alpha1.RemediationUninstall {
		done = "uninstalled"
	}
	return fmt.Errorf("failed %s and was %s; held until chart or values change, or the annotation %s asks for another try: %w",
		times(outcome.Attempts), done, forceAnnotation, outcome.Failed)
}

func times(n int) string {
	if n < 2 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// remediated is the condition that tells of a rollback or an uninstallation.
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
