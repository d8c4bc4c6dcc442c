package hook

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/app/subject"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/command"
	"github.com/kubeop/kubeop/delivery/condition"
	"github.com/kubeop/kubeop/delivery/jobs"
	"github.com/kubeop/kubeop/delivery/mask"
)

// logLines is how many lines of a failed hook's log are reported.
const logLines = 5

// runJob creates a hook's Job if it does not exist, and returns nil once the Job has a result. It first waits for Jobs of an earlier
// revision to end, because an interrupted migration is worse than a late one.
func (r *Runner) runJob(ctx context.Context, s *subject.Subject, plan *Plan, h *run, admit Admit) error {
	if err := r.Watch.Follow(jobs.Kind); err != nil {
		return err
	}
	name, seen := h.Name(), r.seen.Get(s.App)
	if seen.running == name {
		live, known, err := r.Watch.Object(ctx, jobs.Kind, client.ObjectKey{Namespace: s.App.Namespace, Name: name})
		if err != nil {
			return err
		}
		if known && live != nil {
			if ended, _, _ := condition.JobEnded(live); !ended {
				return r.whileItRuns(ctx, s, plan, h, live)
			}
		}
	}
	all, err := unfinished(ctx, s, plan, name)
	if err != nil {
		return err
	}
	for _, job := range all {
		if !h.Is(job) {
			if job.GetName() == name {
				return step.Stop(reason(h.Phase), fmt.Errorf("the name of the Job of the %s is taken; %s", h, command.Delete(command.Administrator, "job", job)))
			}
			continue
		}
		if over, _, _ := condition.JobEnded(job); !over {
			seen.running = job.GetName()
			return r.whileItRuns(ctx, s, plan, h, job)
		}
		return r.finish(ctx, s, plan, h, job)
	}
	return r.start(ctx, s, plan, h, beginning{admit, all})
}

// unfinished returns the App's hook Jobs. While one other than the named Job still runs, it returns an error that waits for its end, and plans to
// report that Job as running.
func unfinished(ctx context.Context, s *subject.Subject, plan *Plan, except string) ([]*unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(jobs.Kind)
	err := s.Client.List(ctx, list, client.InNamespace(s.App.Namespace), client.MatchingLabels{v1alpha1.AppLabel: s.App.Name}, client.HasLabels{v1alpha1.HookLabel})
	if err != nil {
		return nil, fmt.Errorf("listing the Jobs of hooks: %w", err)
	}
	var all []*unstructured.Unstructured
	for i := range list.Items {
		job := &list.Items[i]
		all = append(all, job)
		if ended, _, _ := condition.JobEnded(job); !ended && job.GetName() != except && job.GetDeletionTimestamp() == nil {
			plan.running = &v1alpha1.RunningHook{Job: job.GetName()}
			return nil, step.Wait(v1alpha1.ProgressingReason, step.LastLook, "waits for Job/%s, a hook of an earlier revision, to end", job.GetName())
		}
	}
	return all, nil
}

// beginning has what start needs: the check of the new Job, and the existing hook Jobs.
type beginning struct {
	admit Admit
	there []*unstructured.Unstructured
}

// start deletes the Jobs of earlier revisions and creates the Job of the hook.
func (r *Runner) start(ctx context.Context, s *subject.Subject, plan *Plan, h *run, with beginning) error {
	plan.absent = h.Name()
	if err := plan.clear(ctx, s, with.there); err != nil {
		return err
	}
	job, err := h.Job()
	if err != nil {
		return step.Stop(reason(h.Phase), err)
	}
	if err := with.admit(job); err != nil {
		return fmt.Errorf("%s: %w", h, err)
	}
	h.Mark(job)
	err = s.Client.Create(ctx, job, client.FieldOwner(v1alpha1.FieldManager))
	switch {
	case apierrors.IsAlreadyExists(err):
		if job, err = h.made(ctx, s, job); err != nil {
			return err
		}
	case step.Unacceptable(err):
		return step.Stop(reason(h.Phase), fmt.Errorf("making the Job of the %s: %w", h, err))
	case err != nil:
		return step.Fail(reason(h.Phase), fmt.Errorf("making the Job of the %s: %w", h, err))
	}
	r.seen.Get(s.App).running = job.GetName()
	return r.whileItRuns(ctx, s, plan, h, job)
}

// made returns the hook's Job that is there although it was not known: the answer to the request that made it was lost. If the Job is another one, the name
// is taken.
func (h *run) made(ctx context.Context, s *subject.Subject, job *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(jobs.Kind)
	if err := s.Client.Get(ctx, client.ObjectKeyFromObject(job), live); err != nil {
		return nil, step.Fail(reason(h.Phase), fmt.Errorf("reading the Job of the %s: %w", h, err))
	}
	if !h.Is(live) {
		return nil, step.FailAfter(reason(h.Phase), step.LastLook, fmt.Errorf("the name of the Job of the %s is taken; %s", h, command.Delete(command.Administrator, "job", job)))
	}
	return live, nil
}

// clear deletes ended Jobs that are not of the present revision. It names their UIDs, because a new Job of the same name may be running.
func (p *Plan) clear(ctx context.Context, s *subject.Subject, ended []*unstructured.Unstructured) error {
	for _, job := range ended {
		if p.ran(job) {
			continue
		}
		uid := job.GetUID()
		err := s.Client.Delete(ctx, job, client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground))
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting Job/%s of an earlier revision: %w", job.GetName(), err)
		}
	}
	return nil
}

// ran reports whether a Job is of the present revision. Such a Job is kept for its log.
func (p *Plan) ran(job *unstructured.Unstructured) bool {
	for _, h := range p.runs {
		if h.Is(job) {
			return true
		}
	}
	return false
}

// whileItRuns waits for an event of the Job. After step.Quiet it reports why the Job has not ended.
func (r *Runner) whileItRuns(ctx context.Context, s *subject.Subject, plan *Plan, h *run, job *unstructured.Unstructured) error {
	waited := s.Waited("hook " + job.GetName())
	running := fmt.Errorf("running %s", h)
	if waited >= step.Quiet {
		plan.running = &v1alpha1.RunningHook{Job: job.GetName()}
		// The explanation may contain output of the hook's program, so mask the Secrets that the program knows.
		if err := r.hideSecrets(ctx, s, h); err != nil {
			return err
		}
		if explainer, err := r.Explainer(s.App.Namespace, mask.Of(s.Sensitive())); err == nil {
			if trouble := explainer.Explain(ctx, job); trouble.Why != "" && !trouble.Runs {
				plan.running.Message = s.Mask(trouble.String())
				running = fmt.Errorf("%w: %s", running, trouble)
			}
		}
	}
	return step.WaitQuietly(waited, step.Quiet, step.LastLook, running)
}

// finish records how a hook ended. After an error nothing is recorded, and the next look at the Job tries again.
func (r *Runner) finish(ctx context.Context, s *subject.Subject, plan *Plan, h *run, job *unstructured.Unstructured) error {
	r.seen.Get(s.App).running = ""
	s.Settled()
	result := v1alpha1.HookStatus{Phase: h.Phase, Name: h.Hook.Name, Input: h.Input, Result: v1alpha1.HookSucceeded, FinishedAt: metav1.NewTime(s.Now())}
	if _, failed, why := condition.JobEnded(job); failed {
		message, err := r.failure(ctx, s, h, job, why)
		if err != nil {
			return err
		}
		result.Result, result.Message = v1alpha1.HookFailed, message
	}
	h.fresh, h.result = true, &result
	plan.forced = plan.forced || strings.Contains(h.Input, ".")
	return nil
}

// failure explains why a hook failed, with the last lines of its log. why is what the Job says.
func (r *Runner) failure(ctx context.Context, s *subject.Subject, h *run, job *unstructured.Unstructured, why string) (string, error) {
	if err := r.hideSecrets(ctx, s, h); err != nil {
		return "", err
	}
	explainer, err := r.Explainer(s.App.Namespace, mask.Of(s.Sensitive()))
	if err != nil {
		return "", err
	}
	if jobs.OutOfTime(job) {
		why = outOfTime(s.App, h)
	} else if explained := explainer.Explain(ctx, job).String(); explained != "" {
		why = explained
	}
	return strings.Join(append([]string{s.Mask(why)}, explainer.LastLines(ctx, job, logLines)...), " | "), nil
}

// outOfTime says that a hook's pod did not end in time. Its pod no longer exists, so the cause is the last message in the status.
func outOfTime(app *v1alpha1.App, h *run) string {
	why := fmt.Sprintf("no pod of it ended within its timeout of %s", h.Timeout())
	if last := app.Status.RunningHook; last != nil && last.Job == h.Name() && last.Message != "" {
		why += "; before that: " + last.Message
	}
	return why
}

// hideSecrets reads the Secrets that the hook and the App's own pods use, so that the hook's log is reported without their values.
func (r *Runner) hideSecrets(ctx context.Context, s *subject.Subject, h *run) error {
	names := secretsIn(h.Hook.Env, h.Hook.EnvFrom)
	if image := s.App.Spec.Image; image != nil {
		names = append(names, secretsIn(image.Env, image.EnvFrom)...)
		for _, files := range image.SecretFiles {
			names = append(names, files.SecretRef.Name)
		}
	}
	var failed []error
	for _, name := range names {
		failed = append(failed, r.Inputs.HideSecret(ctx, s, name))
	}
	if err := errors.Join(failed...); err != nil {
		return fmt.Errorf("%s: %w", h, err)
	}
	return nil
}

// secretsIn returns the names of the Secrets that environment variables are read from.
func secretsIn(env []corev1.EnvVar, from []corev1.EnvFromSource) []string {
	var names []string
	for _, source := range from {
		if source.SecretRef != nil {
			names = append(names, source.SecretRef.Name)
		}
	}
	for _, e := range env {
		if e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil {
			names = append(names, e.ValueFrom.SecretKeyRef.Name)
		}
	}
	return names
}
