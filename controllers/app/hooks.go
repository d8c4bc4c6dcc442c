package app

import (
	"context"
	"fmt"
	"strings"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/jobs"
)

// hookRun is one hook of the revision at hand.
type hookRun struct {
	jobs.Run
	// told is how it ended, nil while it has not; fresh: the status does not say so yet.
	told  *v1alpha1.HookStatus
	fresh bool
}

// hooked reports whether there are hooks to run, or those of an earlier spec to clear away.
func hooked(app *v1alpha1.App) bool {
	h := &app.Spec.Hooks
	return len(h.Pre)+len(h.Post) > 0 || conditions.Has(app, v1alpha1.HooksSucceededCondition)
}

// preHooks runs what is to run before anything of the revision is applied.
func (r *Reconciler) preHooks(ctx context.Context, s *scope) error {
	if err := planHooks(s); err != nil {
		return step.Stop(v1alpha1.PreHookFailedReason, err)
	}
	if err := r.awaitFormerHooks(ctx, s); err != nil {
		return err
	}
	return r.runHooks(ctx, s, jobs.Pre)
}

// awaitFormerHooks lets a hook end that may still run and is not in the spec any more, and clears away what is left of such
// hooks. Those of this spec are looked at when they are to run.
func (r *Reconciler) awaitFormerHooks(ctx context.Context, s *scope) error {
	next := s.nextHook()
	begun := conditions.IsUnknown(s.app, v1alpha1.HooksSucceededCondition) && !s.memory.hooksSeen
	if left := s.memory.hook != "" && s.memory.hook != next; len(s.hooks) > 0 && !begun && !left {
		return nil
	}
	ended, err := r.unfinished(ctx, s, next)
	if err != nil {
		return err
	}
	s.memory.hooksSeen = true
	if s.memory.hook != next {
		s.memory.hook = ""
	}
	if len(s.hooks) > 0 {
		return nil
	}
	return r.clearHooks(ctx, s, ended)
}

// postHooks runs what is to run once the revision is healthy.
func (r *Reconciler) postHooks(ctx context.Context, s *scope) error {
	return r.runHooks(ctx, s, jobs.Post)
}

// planHooks finds out what each hook runs for, and how it ended where it did. A revision is what is delivered, not what it
// is called: a commit that changes no object runs no hook.
func planHooks(s *scope) error {
	delivered, err := jobs.Digest(s.delivered())
	if err != nil {
		return err
	}
	s.hooks, s.hooksPlanned = nil, true
	for _, phase := range []string{jobs.Pre, jobs.Post} {
		hooks := s.app.Spec.Hooks.Pre
		if phase == jobs.Post {
			hooks = s.app.Spec.Hooks.Post
		}
		for i := range hooks {
			run := jobs.Run{App: s.app, Phase: phase, Hook: &hooks[i], Image: jobs.ImageOf(s.objects), Revision: s.revision, Seal: s.helm.seal}
			input, err := jobs.InputOf(delivered, phase, run.Hook)
			if err != nil {
				return err
			}
			run.Input = jobs.Sealed(input, run.Seal)
			s.hooks = append(s.hooks, planned(s.app, run))
		}
	}
	return nil
}

// planned looks a run up in the status. One that failed is made again when somebody asks for it, once for each time.
func planned(app *v1alpha1.App, run jobs.Run) *hookRun {
	h := &hookRun{Run: run}
	for _, told := range app.Status.Hooks {
		told.Input = jobs.Sealed(told.Input, run.Seal)
		if input, _, _ := strings.Cut(told.Input, "."); told.Phase != run.Phase || told.Name != run.Hook.Name || input != run.Input {
			continue
		}
		again := jobs.Again(run.Input, app.Annotations[forceAnnotation])
		if told.Result == v1alpha1.HookFailed && told.Input != again && asks(app, forceAnnotation, app.Status.LastHandledForceAt) {
			h.Input = again
			return h
		}
		h.Input, h.told = told.Input, &told
	}
	return h
}

// delivered is what the app delivers: objects, or a chart with its values.
func (s *scope) delivered() any {
	helm := s.app.Spec.Helm
	if helm == nil {
		return s.objects
	}
	return []any{s.chart.Digest, releaseName(s.app), s.values, helm.ChartValuesFiles, helm.PostRenderers, helm.CommonMetadata}
}

// runHooks runs the hooks of a phase one after the other, each once.
func (r *Reconciler) runHooks(ctx context.Context, s *scope, phase string) error {
	for _, h := range s.hooks {
		if h.Phase != phase {
			continue
		}
		if h.told == nil {
			if err := r.runHook(ctx, s, h); err != nil {
				return err
			}
		}
		if h.told.Result == v1alpha1.HookFailed && !h.passedOver() {
			return step.Stop(hookReason(phase), fmt.Errorf("%s failed: %s; held until the app changes, or the annotation %s asks for another try",
				h, h.told.Message, forceAnnotation))
		}
	}
	return nil
}

func hookReason(phase string) string {
	if phase == jobs.Pre {
		return v1alpha1.PreHookFailedReason
	}
	return v1alpha1.PostHookFailedReason
}

// recordHooks writes how the hooks of the present revision ended. One that is being made again stays as it was till then.
func (s *scope) recordHooks() {
	if (s.forced || s.done) && s.app.Spec.Helm == nil {
		s.app.Status.LastHandledForceAt = s.app.Annotations[forceAnnotation]
	}
	if !s.hooksPlanned {
		return
	}
	was := s.app.Status.Hooks
	s.app.Status.Hooks = nil
	for _, h := range s.hooks {
		told := h.told
		for i := range was {
			base, _, _ := strings.Cut(h.Input, ".")
			if input, _, _ := strings.Cut(jobs.Sealed(was[i].Input, h.Seal), "."); told == nil && was[i].Phase == h.Phase && was[i].Name == h.Hook.Name && input == base {
				told = was[i].DeepCopy()
				told.Input = jobs.Sealed(told.Input, h.Seal)
			}
		}
		if told != nil {
			s.app.Status.Hooks = append(s.app.Status.Hooks, *told)
		}
	}
}

// hookNotes take the condition away where no hooks are left, and tell of a failure that is passed over.
func (s *scope) hookNotes() []step.Note {
	var notes []step.Note
	if h := s.app.Spec.Hooks; len(h.Pre)+len(h.Post) == 0 {
		notes = append(notes, step.Note{Condition: v1alpha1.HooksSucceededCondition})
	}
	for _, h := range s.hooks {
		if h.fresh && h.passedOver() {
			notes = append(notes, step.Note{Reason: hookReason(h.Phase), Message: fmt.Sprintf("%s failed, and the app goes on (onFailure): %s", h, h.told.Message), Event: "Warning"})
		}
	}
	return notes
}

func (h *hookRun) passedOver() bool {
	return h.told != nil && h.told.Result == v1alpha1.HookFailed && h.Hook.OnFailure == v1alpha1.HookContinue
}
