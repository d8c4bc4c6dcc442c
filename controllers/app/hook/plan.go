package hook

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/fluxcd/pkg/apis/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/app/subject"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/digest"
	"github.com/kubeop/kubeop/delivery/jobs"
	"github.com/kubeop/kubeop/delivery/render/workload"
)

// Revision is what the hooks of one Reconcile run for.
type Revision struct {
	// Name of the revision. Hooks receive it.
	Name string
	// Delivered identifies what the App delivers. If it is the same as at the last run, no hook runs.
	Delivered any
	// Image is the image of hooks that name none.
	Image string
	// Seal seals the digests in the status.
	Seal digest.Seal
}

// Plan holds the hooks of one Reconcile and their results. The zero value has no hooks.
type Plan struct {
	runs []*run
	// planned: runs is complete. forced: a hook ran again because a person requested it.
	planned, forced bool
	// running is the hook to report as running; nil for none. absent is the name of a Job that does not exist.
	running *v1alpha1.RunningHook
	absent  string
}

// run is one hook of the revision.
type run struct {
	jobs.Run
	// result is how the run ended; nil if it has not ended. fresh: the status does not report the result yet.
	result *v1alpha1.HookStatus
	fresh  bool
}

// Needed reports whether an App has hooks to run, or Jobs of hooks of an earlier spec to delete: the status names hooks until their Jobs are
// deleted.
func Needed(app *v1alpha1.App) bool {
	h := &app.Spec.Hooks
	return len(h.Pre)+len(h.Post) > 0 || len(app.Status.Hooks) > 0 || app.Status.RunningHook != nil
}

// plan lists the runs of all hooks for a revision, with the results that the status has.
func (p *Plan) plan(s *subject.Subject, revision Revision) error {
	delivered, former, err := digests(s.App, revision.Delivered)
	if err != nil {
		return err
	}
	p.runs, p.planned = nil, true
	hooks := &s.App.Spec.Hooks
	for _, phase := range []string{jobs.Pre, jobs.Post} {
		all := hooks.Pre
		if phase == jobs.Post {
			all = hooks.Post
		}
		for i := range all {
			r := jobs.Run{App: s.App, Phase: phase, Hook: &all[i], Image: revision.Image, PullSecrets: s.PullSecrets, Revision: revision.Name, Seal: revision.Seal}
			input, err := jobs.InputOf(delivered, phase, r.Hook)
			if err != nil {
				return err
			}
			before, err := jobs.InputOf(former, phase, r.Hook)
			if err != nil {
				return err
			}
			r.Input, r.Former = jobs.Sealed(input, r.Seal), jobs.Sealed(before, r.Seal)
			p.runs = append(p.runs, reported(s, r))
		}
	}
	return nil
}

// digests returns the digest of what is delivered, for an Image App without the Secrets of Registries, and the one by which an earlier version
// identified the same, with them.
func digests(app *v1alpha1.App, delivered any) (present, former string, err error) {
	if former, err = jobs.Digest(delivered); err != nil {
		return "", "", err
	}
	objects, ok := delivered.([]*unstructured.Unstructured)
	if !ok || app.Spec.Image == nil {
		return former, former, nil
	}
	present, err = jobs.Digest(workload.WithoutRegistries(app, objects))
	return present, former, err
}

// reported looks up the result of a run in the status. A failed run is repeated once for each request by a person.
func reported(s *subject.Subject, r jobs.Run) *run {
	found := &run{Run: r}
	for _, result := range s.App.Status.Hooks {
		result.Input = r.Present(result.Input)
		if input, _, _ := strings.Cut(result.Input, "."); result.Phase != r.Phase || result.Name != r.Hook.Name || input != r.Input {
			continue
		}
		again := jobs.Again(r.Input, s.App.Annotations[meta.ForceRequestAnnotation])
		switch {
		case result.Result == v1alpha1.HookFailed && result.Input != again && s.Forced():
			found.Input = again
		case result.Repeat != "": // The request counts as handled since another hook ran again, or the release.
			found.Input = r.Present(result.Repeat)
		default:
			found.Input, found.result = result.Input, &result
		}
	}
	return found
}

// next returns the name of the Job that may be running: the Job of the first hook without a result.
func (p *Plan) next() string {
	for _, h := range p.runs {
		if h.result == nil {
			return h.Name()
		}
	}
	return ""
}

// has reports whether a Job has the name of one of the present hooks' Jobs.
func (p *Plan) has(job string) bool {
	return slices.ContainsFunc(p.runs, func(h *run) bool { return h.Name() == job })
}

// Record writes the results of the present revision's hooks into the status. Until a hook has been repeated, its earlier result stays. done: the
// revision is delivered.
func (p *Plan) Record(app *v1alpha1.App, done bool) {
	if (p.forced || done) && app.Spec.Helm == nil {
		app.Status.LastHandledForceAt = app.Annotations[meta.ForceRequestAnnotation]
	}
	if !p.planned {
		return
	}
	before, running := app.Status.Hooks, app.Status.RunningHook
	if running != nil && running.Job == p.next() && running.Job != p.absent { // A pass that ends before a phase, as that of an unhealthy app, says nothing about the phase's Job.
		p.running = cmp.Or(p.running, running)
	}
	app.Status.Hooks, app.Status.RunningHook = nil, p.running
	for _, h := range p.runs {
		result := h.result
		for i := range before {
			base, _, _ := strings.Cut(h.Input, ".")
			if input, _, _ := strings.Cut(h.Present(before[i].Input), "."); result == nil && before[i].Phase == h.Phase && before[i].Name == h.Hook.Name && input == base {
				result = before[i].DeepCopy()
				result.Input, result.Repeat = h.Present(result.Input), h.Input
			}
		}
		if result != nil {
			app.Status.Hooks = append(app.Status.Hooks, *result)
		}
	}
}

// keep leaves what the status says of running hooks, and of all hooks if the spec has none any more: their Jobs are not known to be gone.
func (p *Plan) keep(app *v1alpha1.App) {
	p.planned = len(p.runs) > 0
	p.running = cmp.Or(p.running, app.Status.RunningHook)
}

// Notes remove the condition if no hooks and no Jobs of hooks are left, and report a failed hook that does not stop the delivery.
func (p *Plan) Notes(app *v1alpha1.App) []step.Note {
	var notes []step.Note
	if !Needed(app) {
		notes = append(notes, step.Note{Condition: v1alpha1.HooksSucceededCondition})
	}
	for _, h := range p.runs {
		if h.fresh && h.passedOver() {
			notes = append(notes, step.Note{Reason: reason(h.Phase), Message: fmt.Sprintf("%s failed, and the app goes on (onFailure): %s", h, h.result.Message), Event: "Warning"})
		}
	}
	return notes
}

// Summary is the part of Ready's message about failed hooks that do not stop the delivery; "" for none.
func (p *Plan) Summary() string {
	summary := ""
	for _, h := range p.runs {
		if h.passedOver() {
			summary += fmt.Sprintf("; %s failed and was passed over", h)
		}
	}
	return summary
}

func (h *run) passedOver() bool {
	return h.result != nil && h.result.Result == v1alpha1.HookFailed && h.Hook.OnFailure == v1alpha1.HookContinue
}

// reason returns the condition reason for a failed hook of a phase.
func reason(phase string) string {
	if phase == jobs.Pre {
		return v1alpha1.PreHookFailedReason
	}
	return v1alpha1.PostHookFailedReason
}

// HasPost reports whether an App has hooks that run once it is healthy.
func HasPost(app *v1alpha1.App) bool { return len(app.Spec.Hooks.Post) > 0 }
