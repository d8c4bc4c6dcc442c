// Package hook runs the hooks of Apps: Jobs before a revision is applied, and after it is healthy.
package hook

import (
	"context"
	"fmt"
	"slices"

	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/app/inputs"
	"github.com/kubeop/kubeop/controllers/app/subject"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/command"
	"github.com/kubeop/kubeop/delivery/health"
	"github.com/kubeop/kubeop/delivery/jobs"
	"github.com/kubeop/kubeop/delivery/kube"
)

// Runner runs each hook once for each change of the delivered objects. A commit that changes no object runs no hook.
type Runner struct {
	Watch  *kube.Watch
	Inputs *inputs.Reader
	// Explainer returns an Explainer that reads as the namespace's deployer, says why objects are not healthy, and applies the mask to its
	// messages.
	Explainer func(namespace string, mask func(string) string) (health.Explainer, error)

	seen subject.Memory[seen]
}

// seen is the state of an App's hooks that is kept in memory between Reconciles.
type seen struct {
	// running is the name of the Job that was last seen running. looked: this process has checked for Jobs that an earlier process left
	// running.
	running string
	looked  bool
}

// Admit checks the Job of a hook like the App's other objects, and labels it as the App's.
type Admit func(job *unstructured.Unstructured) error

// Forget drops the state of an App.
func (r *Runner) Forget(app *v1alpha1.App) { r.seen.Forget(app) }

// Pre plans the hooks of a revision, and runs the pre hooks. No object of the revision is applied yet.
func (r *Runner) Pre(ctx context.Context, s *subject.Subject, plan *Plan, revision Revision, admit Admit) error {
	if err := plan.plan(s, revision); err != nil {
		return step.Stop(v1alpha1.PreHookFailedReason, err)
	}
	if err := r.awaitFormer(ctx, s, plan); err != nil {
		plan.keep(s.App)
		return err
	}
	return r.runPhase(ctx, s, plan, jobs.Pre, admit)
}

// Post runs the post hooks, once the revision is healthy. Pre must have been called in the same Reconcile.
func (r *Runner) Post(ctx context.Context, s *subject.Subject, plan *Plan, admit Admit) error {
	return r.runPhase(ctx, s, plan, jobs.Post, admit)
}

// awaitFormer waits for running hooks that are no longer in the spec. If the spec has no hooks, it also deletes their Jobs; otherwise start
// deletes them.
func (r *Runner) awaitFormer(ctx context.Context, s *subject.Subject, plan *Plan) error {
	next, seen := plan.next(), r.seen.Get(s.App)
	if left := seen.running != "" && seen.running != next; len(plan.runs) > 0 && !left {
		if begun, err := r.begunBefore(s, plan); !begun || err != nil {
			return err
		}
	}
	ended, err := unfinished(ctx, s, plan, next)
	if err != nil {
		return err
	}
	seen.looked = true
	if seen.running != next {
		seen.running = ""
	}
	if len(plan.runs) > 0 {
		return nil
	}
	return plan.clear(ctx, s, ended)
}

// begunBefore reports whether an earlier process may have left a hook running that is not in the spec any more. The status names a running hook only after a while,
// so a process also looks once whether the watch shows such a Job.
func (r *Runner) begunBefore(s *subject.Subject, plan *Plan) (bool, error) {
	seen := r.seen.Get(s.App)
	if seen.looked || s.App.Status.RunningHook != nil {
		return !seen.looked, nil
	}
	there, err := r.Watch.InNamespace(jobs.Kind, s.App.Namespace)
	if err != nil {
		return false, err
	}
	former := slices.ContainsFunc(there, func(job metav1.Object) bool {
		labels := job.GetLabels()
		return labels[v1alpha1.AppLabel] == s.App.Name && labels[v1alpha1.HookLabel] != "" && !plan.has(job.GetName())
	})
	seen.looked = !former
	return former, nil
}

// runPhase runs the hooks of a phase one after the other.
func (r *Runner) runPhase(ctx context.Context, s *subject.Subject, plan *Plan, phase string, admit Admit) error {
	for _, h := range plan.runs {
		if h.Phase != phase {
			continue
		}
		if h.result == nil {
			if err := r.runJob(ctx, s, plan, h, admit); err != nil {
				return err
			}
		}
		if h.result.Result == v1alpha1.HookFailed && !h.passedOver() {
			return step.Stop(reason(phase), fmt.Errorf("%s failed: %s; held until the app changes; to try again before, %s",
				h, h.result.Message, command.Again(v1alpha1.TenantOf(s.App.Namespace), s.App, meta.ForceRequestAnnotation)))
		}
	}
	return nil
}
