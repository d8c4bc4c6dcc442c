package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/health"
	"github.com/kubeop/kubeop/delivery/inventory"
	"github.com/kubeop/kubeop/delivery/mask"
)

// health looks once whether the objects of the source do what they are there for; what is recorded beside them, waiting to
// be deleted or kept without pruning, is nothing the app depends on. The watch wakes the app when one of them changes;
// in between it looks again after a tenth of the time it has been waiting, for what pods suffer causes no event here.
func (r *Reconciler) health(ctx context.Context, s *scope) error {
	verdict, err := r.look(ctx, s)
	if err != nil {
		return err
	}
	if verdict.Healthy() {
		s.unhealthySince = nil
		s.memory.settle()
		s.helm.proven = !tested(&s.app.Spec)
		return nil
	}
	now := r.Clock.Now()
	began := s.memory.began(judgedPhase(s), now)
	waited, deadline := now.Sub(s.unhealthyFrom(began, now)), healthDeadline(s)
	again := nextLook(waited)
	switch {
	case waited >= deadline:
		err := fmt.Errorf("not healthy within %s: %s", deadline, verdict)
		return r.markFailed(ctx, s, step.FailAfter(v1alpha1.UnhealthyReason, again, err))
	case len(verdict.Failed) > 0:
		return step.FailAfter(v1alpha1.UnhealthyReason, again, errors.New(verdict.String()))
	case now.Sub(began) < patience:
		return step.Soon(patience - now.Sub(began))
	}
	return step.Wait(v1alpha1.ProgressingReason, again, "%s", verdict)
}

// unhealthyFrom is since when the app is not healthy: what the status says, else since this look began. A moment in the future is of
// a process whose clock was set back since; its deadline would be hours away.
func (s *scope) unhealthyFrom(began, now time.Time) time.Time {
	if s.unhealthySince == nil || s.unhealthySince.After(now) {
		s.unhealthySince = &metav1.Time{Time: began}
	}
	return s.unhealthySince.Time
}

// judgedPhase names what is judged: a generation of the app or, of a Helm app, a revision of its release.
func judgedPhase(s *scope) string {
	if s.app.Spec.Helm == nil {
		return fmt.Sprintf("health of generation %d", s.app.Generation)
	}
	return fmt.Sprintf("health of revision %d", recordedRevision(s).revision)
}

// look judges the objects of the source, or of a release those that are recorded.
func (r *Reconciler) look(ctx context.Context, s *scope) (health.Verdict, error) {
	refs := health.Refs(s.objects, s.memory.checks)
	if s.kept {
		refs = health.RefsOf(s.inventory.Entries, s.memory.checks)
	}
	if s.app.Spec.Helm != nil {
		action := actionOf(s)
		if action.DisableWait {
			return health.Verdict{}, nil
		}
		refs = health.RefsOf(namespaced(s.inventory.Entries), s.memory.checks)
		if action.DisableWaitForJobs {
			refs = health.WithoutJobs(refs)
		}
	}
	for i, ref := range refs {
		id := inventory.ObjectID{Namespace: ref.Key.Namespace, Name: ref.Key.Name, Group: ref.Kind.Group, Kind: ref.Kind.Kind}
		refs[i].Floor = s.memory.floors[id.String()]
	}
	explainer, err := r.Explainer(s.app.Namespace, mask.Of(s.sensitive))
	if err != nil {
		return health.Verdict{}, err
	}
	explainer.Checks, explainer.Late, explainer.Fate = s.memory.checks, s.memory.late(r.Clock.Now()), fate(&s.app.Spec)
	return health.Look(ctx, explainer, r.Watch.Object, refs)
}

// fate says what becomes of an object that somebody deleted.
func fate(spec *v1alpha1.AppSpec) string {
	until := "its manifest changes"
	if spec.Helm != nil {
		until = "the release is upgraded"
	}
	if mode := spec.DriftMode(); mode != v1alpha1.DriftCorrect {
		return fmt.Sprintf(", and stays away until %s, because drift.mode is %s", until, mode)
	}
	return ", and is put back"
}

// actionOf returns how the deployed revision was made. Where the engine was not asked, because the chart is not at hand, the status
// says which it is.
func actionOf(s *scope) *v1alpha1.HelmAction {
	spec := s.app.Spec.Helm
	installed := recordedRevision(s).revision <= 1
	if s.helm.outcome != nil {
		installed = s.helm.outcome.Installed
	}
	if installed {
		return &spec.Install.HelmAction
	}
	return &spec.Upgrade.HelmAction
}

// healthDeadline is how long the app has to become healthy.
func healthDeadline(s *scope) time.Duration {
	if s.app.Spec.Helm != nil {
		if timeout := actionOf(s).Timeout; timeout != nil {
			return timeout.Duration
		}
	}
	return s.app.Spec.Within()
}

func tested(spec *v1alpha1.AppSpec) bool { return spec.Helm != nil && spec.Helm.Test.Enable }

// markFailed has an upgrade that did not become healthy in time count as failed, so that it is tried again or rolled back. An
// install is kept as it is: there is nothing to return to. A release that once was healthy is no bad upgrade: what ails
// it now is something else.
func (r *Reconciler) markFailed(ctx context.Context, s *scope, why error) error {
	outcome := s.helm.outcome
	if outcome == nil || outcome.Installed || s.helm.provenBefore(&s.app.Status, known{outcome.Deployed, outcome.Content}) {
		return why
	}
	done, err := r.Releases.MarkFailed(ctx, r.request(ctx, s), why.Error())
	if err != nil {
		return releaseError(err)
	}
	if !done {
		return why
	}
	s.unhealthySince = nil
	return step.FailAfter(v1alpha1.UnhealthyReason, 50*time.Millisecond, why)
}
