package app

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/jobs"
	"github.com/kubeop/kubeop/delivery/mask"
)

// runHook makes a hook's Job where there is none, and returns once it is told how it ended. What ran for an earlier
// revision is left to end first: half a migration is worse than a late one.
func (r *Reconciler) runHook(ctx context.Context, s *scope, h *hookRun) error {
	if err := r.Watch.Follow(jobs.Kind); err != nil {
		return err
	}
	name := h.Name()
	if s.memory.hook == name {
		live, known, err := r.Watch.Object(ctx, jobs.Kind, client.ObjectKey{Namespace: s.app.Namespace, Name: name})
		if err != nil {
			return err
		}
		if known && live != nil {
			if ended, _, _ := jobs.Ended(live); !ended {
				return r.whileHookRuns(ctx, s, h, live)
			}
		}
	}
	ended, err := r.unfinished(ctx, s, name)
	if err != nil {
		return err
	}
	for _, job := range ended {
		if !h.Is(job) {
			if job.GetName() == name {
				return step.Stop(hookReason(h.Phase), fmt.Errorf("the name of the Job of the %s is taken: delete Job/%s", h, name))
			}
			continue
		}
		if over, _, _ := jobs.Ended(job); !over {
			s.memory.hook = job.GetName()
			return r.whileHookRuns(ctx, s, h, job)
		}
		return r.tellHook(ctx, s, h, job)
	}
	return r.startHook(ctx, s, h, ended)
}

// unfinished waits for hook Jobs other than the named one to end, and returns all there are.
func (r *Reconciler) unfinished(ctx context.Context, s *scope, except string) ([]*unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(jobs.Kind)
	err := s.client.List(ctx, list, client.InNamespace(s.app.Namespace), client.MatchingLabels{v1alpha1.AppLabel: s.app.Name}, client.HasLabels{v1alpha1.HookLabel})
	if err != nil {
		return nil, fmt.Errorf("listing the Jobs of hooks: %w", err)
	}
	var all []*unstructured.Unstructured
	for i := range list.Items {
		job := &list.Items[i]
		all = append(all, job)
		if ended, _, _ := jobs.Ended(job); !ended && job.GetName() != except && job.GetDeletionTimestamp() == nil {
			return nil, step.Wait(v1alpha1.ProgressingReason, lastLook, "waits for Job/%s, a hook of an earlier revision, to end", job.GetName())
		}
	}
	return all, nil
}

// startHook clears away the Jobs of earlier revisions and makes the hook's.
func (r *Reconciler) startHook(ctx context.Context, s *scope, h *hookRun, earlier []*unstructured.Unstructured) error {
	if err := r.clearHooks(ctx, s, earlier); err != nil {
		return err
	}
	job, err := h.Job()
	if err != nil {
		return step.Stop(hookReason(h.Phase), err)
	}
	if err := r.check(s)([]*unstructured.Unstructured{job}); refused(err) {
		return step.Stop(v1alpha1.NotAllowedReason, fmt.Errorf("%s: %w", h, err))
	} else if err != nil {
		return err
	}
	h.Mark(job)
	err = s.client.Create(ctx, job, client.FieldOwner(v1alpha1.FieldManager))
	switch {
	case apierrors.IsAlreadyExists(err):
		return step.FailAfter(hookReason(h.Phase), lastLook, fmt.Errorf("the name of the Job of the %s is taken: delete Job/%s", h, job.GetName()))
	case apierrors.IsInvalid(err) || apierrors.IsBadRequest(err):
		return step.Stop(hookReason(h.Phase), fmt.Errorf("making the Job of the %s: %w", h, err))
	case err != nil:
		return step.Fail(hookReason(h.Phase), fmt.Errorf("making the Job of the %s: %w", h, err))
	}
	s.memory.hook = job.GetName()
	return r.whileHookRuns(ctx, s, h, job)
}

// clearHooks deletes Jobs that are not of the present revision, exactly those that were looked at: of another Job in the
// place of one nobody knows yet whether it runs.
func (r *Reconciler) clearHooks(ctx context.Context, s *scope, ended []*unstructured.Unstructured) error {
	for _, job := range ended {
		if s.ranBy(job) {
			continue
		}
		uid := job.GetUID()
		err := s.client.Delete(ctx, job, client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground))
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting Job/%s of an earlier revision: %w", job.GetName(), err)
		}
	}
	return nil
}

// nextHook is the name of the Job that may be running: that of the first hook that is not told of.
func (s *scope) nextHook() string {
	for _, h := range s.hooks {
		if h.told == nil {
			return h.Name()
		}
	}
	return ""
}

// ranBy reports whether a Job is of the present revision; it stays, for its log.
func (s *scope) ranBy(job *unstructured.Unstructured) bool {
	for _, h := range s.hooks {
		if h.Is(job) {
			return true
		}
	}
	return false
}

// whileHookRuns waits for the Job's event.
func (r *Reconciler) whileHookRuns(ctx context.Context, s *scope, h *hookRun, job *unstructured.Unstructured) error {
	phase, now := "hook "+job.GetName(), r.Clock.Now()
	message := errors.New(h.running())
	if now.Sub(s.memory.began(phase, now)) >= patience {
		// Why it lasts may be in the words of its program.
		if err := r.maskHook(ctx, s, h); err != nil {
			return err
		}
		if explainer, err := r.Explainer(s.app.Namespace, mask.Of(s.sensitive)); err == nil {
			if why := explainer.Explain(ctx, job); why != "" && !strings.HasSuffix(why, notYet) {
				message = fmt.Errorf("%s: %s", h.running(), why)
			}
		}
	}
	return r.wait(s, phase, patience, message)
}

// notYet is what a Job says of itself that simply runs.
const notYet = "has not completed yet"

// logLines is how much of a failed hook's log is told.
const logLines = 5

// tellHook takes down how a hook ended.
func (r *Reconciler) tellHook(ctx context.Context, s *scope, h *hookRun, job *unstructured.Unstructured) error {
	s.memory.hook, s.memory.phase = "", ""
	h.fresh, h.told = true, &v1alpha1.HookStatus{
		Phase: h.Phase, Name: h.Hook.Name, Input: h.Input, Result: v1alpha1.HookSucceeded, FinishedAt: metav1.NewTime(r.Clock.Now()),
	}
	s.forced = s.forced || strings.Contains(h.Input, ".")
	_, failed, why := jobs.Ended(job)
	if !failed {
		return nil
	}
	if err := r.maskHook(ctx, s, h); err != nil {
		return err
	}
	explainer, err := r.Explainer(s.app.Namespace, mask.Of(s.sensitive))
	if err != nil {
		return err
	}
	h.told.Result = v1alpha1.HookFailed
	if jobs.OutOfTime(job) {
		why = h.outOfTime()
	} else if explained := explainer.Explain(ctx, job); explained != "" {
		why = explained
	}
	h.told.Message = strings.Join(append([]string{mask.Of(s.sensitive)(why)}, explainer.LastLines(ctx, job, logLines)...), " | ")
	return nil
}

// outOfTime says that a hook's pod did not end in time. The pod is gone by then, so what was told of it last is the cause.
func (h *hookRun) outOfTime() string {
	why := fmt.Sprintf("no pod of it ended within its timeout of %s", h.Timeout())
	if _, last, told := strings.Cut(conditions.GetMessage(h.App, v1alpha1.ReadyCondition), h.running()+": "); told {
		why += "; before that: " + last
	}
	return why
}

func (h *hookRun) running() string { return "running " + h.String() }

// maskHook reads the Secrets that the hook or the app's own pods were given, so that none of them is told with its log.
func (r *Reconciler) maskHook(ctx context.Context, s *scope, h *hookRun) error {
	names := secretsIn(h.Hook.Env, h.Hook.EnvFrom)
	if image := s.app.Spec.Image; image != nil {
		names = append(names, secretsIn(image.Env, image.EnvFrom)...)
		for _, files := range image.SecretFiles {
			names = append(names, files.SecretRef.Name)
		}
	}
	for _, name := range names {
		data, err := r.read(ctx, s, reference{namespace: s.app.Namespace, kind: "Secret", name: name})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("reading Secret %s of the %s: %w", name, h, err)
		}
		for _, v := range data {
			s.sensitive = append(s.sensitive, sensitiveIn(v)...)
		}
	}
	return nil
}

// secretsIn names the Secrets that an environment is made from.
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
