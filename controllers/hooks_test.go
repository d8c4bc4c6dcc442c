package controllers

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// hookJobs lists the Jobs of an app's hooks.
func (n *team) hookJobs(project, app string) []batchv1.Job {
	n.t.Helper()
	list := &batchv1.JobList{}
	err := n.admin.List(n.t.Context(), list, client.InNamespace(v1alpha1.ProjectNamespace(n.name, project)),
		client.MatchingLabels{v1alpha1.AppLabel: app}, client.HasLabels{v1alpha1.HookLabel})
	if err != nil {
		n.t.Fatal(err)
	}
	return list.Items
}

// hookJob waits for the one Job of a hook that has not ended.
func (n *team) hookJob(project, app, label string) *batchv1.Job {
	n.t.Helper()
	var found *batchv1.Job
	n.eventually(func() error {
		found = nil
		jobs := n.hookJobs(project, app)
		for i := range jobs {
			ended := len(jobs[i].Status.Conditions) > 0
			if jobs[i].Labels[v1alpha1.HookLabel] == label && !ended {
				found = &jobs[i]
			}
		}
		if found == nil {
			return fmt.Errorf("no Job of %s runs among %d", label, len(jobs))
		}
		return nil
	})
	return found
}

// over ends the pod of a Job, as a kubelet would report it, and waits until the Job's controller has recorded it. The reason is
// that of a pod that was stopped as a whole, such as an eviction.
func (n *team) over(job *batchv1.Job, phase corev1.PodPhase, reason ...string) {
	n.t.Helper()
	n.eventually(func() error {
		pods := &corev1.PodList{}
		if err := n.admin.List(n.t.Context(), pods, client.InNamespace(job.Namespace), client.MatchingLabels{batchv1.JobNameLabel: job.Name}); err != nil {
			return err
		}
		if len(pods.Items) != 1 {
			return fmt.Errorf("%d pods of Job %s, want 1", len(pods.Items), job.Name)
		}
		pod := &pods.Items[0]
		pod.Status.Phase, pod.Status.Reason = phase, strings.Join(reason, "")
		return n.admin.Status().Update(n.t.Context(), pod)
	})
	n.eventually(func() error {
		err := n.admin.Get(n.t.Context(), client.ObjectKeyFromObject(job), job)
		if apierrors.IsNotFound(err) {
			return nil // A newer revision's hook has started since.
		}
		if err != nil {
			return err
		}
		for _, c := range job.Status.Conditions {
			if c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed {
				return nil
			}
		}
		return fmt.Errorf("Job %s has not ended: %+v", job.Name, job.Status)
	})
}

func namesOf(jobs []batchv1.Job) string {
	all := ""
	for _, job := range jobs {
		all += string(job.UID) + " "
	}
	return all
}

const hooks = "  hooks:\n    pre:\n    - {name: migrate, image: none.example/migrate}\n    post:\n    - {name: warm, image: none.example/warm}\n"

func TestHooksRunBeforeAndAfterARevision(t *testing.T) {
	n := newTeam(t, "hooked")
	const file = "projects/shop/apps/web/app.yaml"
	files := shopFiles("shop", "web")
	files[file] += hooks
	n.push(files)
	first := n.hookJob("shop", "web", "pre-migrate")
	app := n.app("shop", "web")
	n.eventually(func() error {
		if got := n.until(app, v1alpha1.HooksSucceededCondition, metav1.ConditionUnknown, v1alpha1.ProgressingReason); !strings.HasPrefix(got, "running pre hook migrate") {
			return fmt.Errorf("the message is %q", got)
		}
		return nil
	})
	n.absent("shop", "web")
	container := first.Spec.Template.Spec.Containers[0]
	if container.Env[0].Name != "KUBEOP_REVISION" || !strings.HasPrefix(container.Env[0].Value, "main@sha1:") {
		t.Errorf("the environment of the hook is %+v", container.Env)
	}
	n.over(first, corev1.PodSucceeded)
	n.over(n.hookJob("shop", "web", "post-warm"), corev1.PodSucceeded)
	n.ready(app)
	n.until(app, v1alpha1.HooksSucceededCondition, metav1.ConditionTrue, "")
	if h := app.Status.Hooks; len(h) != 2 || h[0].Name != "migrate" || h[1].Phase != "post" || h[1].Result != v1alpha1.HookSucceeded {
		t.Errorf("status.hooks is %+v", h)
	}
	n.reconcile(app)
	if got := len(n.hookJobs("shop", "web")); got != 2 {
		t.Errorf("there are %d Jobs after a reconcile without changes, want none started", got)
	}

	// An operator that was killed before it recorded how the hooks ended reads it from the Jobs.
	before, names := app.DeepCopy(), namesOf(n.hookJobs("shop", "web"))
	app.Status.Hooks = nil
	if err := n.admin.Status().Patch(t.Context(), app, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	n.reconcile(app)
	n.eventually(func() error {
		if err := n.admin.Get(t.Context(), client.ObjectKeyFromObject(app), app); err != nil || len(app.Status.Hooks) != 2 {
			return fmt.Errorf("status.hooks is %+v (%w)", app.Status.Hooks, err)
		}
		return nil
	})
	if got := namesOf(n.hookJobs("shop", "web")); got != names {
		t.Errorf("the Jobs are %s, want the same as before: %s", got, names)
	}

	// During the hook of a newer revision, a still newer one is pushed.
	n.push(map[string]string{file: strings.Replace(files[file], "greeting: hello", "greeting: second", 1)})
	second := n.hookJob("shop", "web", "pre-migrate")
	n.push(map[string]string{file: strings.Replace(files[file], "greeting: hello", "greeting: third", 1)})
	n.eventually(func() error {
		if got := n.until(app, v1alpha1.HooksSucceededCondition, metav1.ConditionUnknown, ""); !strings.Contains(got, "waits for Job/"+second.Name) {
			return fmt.Errorf("the message is %q", got)
		}
		return nil
	})
	n.over(second, corev1.PodSucceeded)
	n.eventually(func() error {
		if third := n.hookJob("shop", "web", "pre-migrate"); third.Name == second.Name {
			return fmt.Errorf("the third revision's hook has not started")
		}
		return nil
	})
	if got := n.configMap("shop", "web").Data["greeting"]; got != "hello" {
		t.Errorf("%s was delivered before its hook ended, want %q", got, "hello")
	}
	n.over(n.hookJob("shop", "web", "pre-migrate"), corev1.PodSucceeded)
	n.over(n.hookJob("shop", "web", "post-warm"), corev1.PodSucceeded)
	n.ready(app)
	if got := n.configMap("shop", "web").Data["greeting"]; got != "third" {
		t.Errorf("the greeting is %s, want %q", got, "third")
	}
	if got := n.hookJobs("shop", "web"); len(got) != 2 {
		t.Errorf("%d Jobs are left, want only those of the current revision", len(got))
	}

	// Removing the hooks removes their Jobs and status; removing the app removes the rest.
	n.push(map[string]string{file: strings.Replace(files[file], hooks, "", 1)})
	n.eventually(func() error {
		if err := n.admin.Get(t.Context(), client.ObjectKeyFromObject(app), app); err != nil {
			return err
		}
		if got := len(n.hookJobs("shop", "web")); got > 0 || len(app.Status.Hooks) > 0 || conditions.Has(app, v1alpha1.HooksSucceededCondition) {
			return fmt.Errorf("%d Jobs are left, status.hooks %v, conditions %v", got, app.Status.Hooks, app.Status.Conditions)
		}
		return nil
	})
}

func TestAFailedHookIsNotRetriedBeforeARequest(t *testing.T) {
	n := newTeam(t, "failing")
	files := shopFiles("shop", "web", "lax")
	files["projects/shop/apps/web/app.yaml"] += hooks
	files["projects/shop/apps/lax/app.yaml"] += strings.Replace(hooks, "migrate}", "migrate, onFailure: Continue}", 1)
	n.push(files)
	failed := n.hookJob("shop", "web", "pre-migrate")
	n.over(failed, corev1.PodFailed)
	app := n.app("shop", "web")
	message := n.until(app, v1alpha1.ReadyCondition, metav1.ConditionFalse, v1alpha1.PreHookFailedReason)
	if !strings.Contains(message, "pre hook migrate failed: ") || !strings.Contains(message, "reconcile.fluxcd.io/forceAt") || !conditions.IsStalled(app) {
		t.Errorf("the message is %q", message)
	}
	n.absent("shop", "web")
	n.reconcile(app)
	if got := len(n.hookJobs("shop", "web")); got != 1 {
		t.Errorf("%d Jobs: a hook that failed was run again, want 1", got)
	}

	before := app.DeepCopy()
	token := time.Now().Format(time.RFC3339Nano)
	app.Annotations[meta.ForceRequestAnnotation] = token
	if err := n.admin.Patch(t.Context(), app, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	again := n.hookJob("shop", "web", "pre-migrate")
	n.over(again, corev1.PodFailed)
	n.eventually(func() error {
		if err := n.admin.Get(t.Context(), client.ObjectKeyFromObject(app), app); err != nil {
			return err
		}
		if app.Status.LastHandledForceAt != token || !conditions.IsStalled(app) {
			return fmt.Errorf("handled %q, conditions %v", app.Status.LastHandledForceAt, app.Status.Conditions)
		}
		return nil
	})
	if again.Name == failed.Name {
		t.Errorf("the second run reused the first run's Job")
	}

	n.over(n.hookJob("shop", "lax", "pre-migrate"), corev1.PodFailed)
	n.over(n.hookJob("shop", "lax", "post-warm"), corev1.PodSucceeded)
	lax := n.app("shop", "lax")
	n.ready(lax)
	if got, want := conditions.GetMessage(lax, v1alpha1.ReadyCondition), "pre hook migrate failed and was passed over"; !strings.Contains(got, want) {
		t.Errorf("the message is %q, want %q in it", got, want)
	}
	if h := lax.Status.Hooks; len(h) != 2 || h[0].Result != v1alpha1.HookFailed || h[0].Message == "" {
		t.Errorf("status.hooks is %+v", h)
	}
	version := lax.ResourceVersion
	n.reconcile(lax)
	n.reconcile(lax)
	quiet := n.app("shop", "lax")
	n.ready(quiet)
	if transitions(quiet) != transitions(lax) {
		t.Errorf("conditions changed since %s: %v", version, quiet.Status.Conditions)
	}

	if err := n.admin.Delete(t.Context(), lax); err != nil {
		t.Fatal(err)
	}
	n.eventually(func() error {
		for _, job := range n.hookJobs("shop", "lax") {
			if job.OwnerReferences[0].UID == lax.UID {
				return fmt.Errorf("Job %s was not deleted", job.Name)
			}
		}
		return nil
	})
}

// TestAHookTimeoutHoldsOrPassesTheRevision: the timeout of a hook holds the revision of one app, and the other app ignores it.
func TestAHookTimeoutHoldsOrPassesTheRevision(t *testing.T) {
	n := newTeam(t, "late")
	files := shopFiles("shop", "web", "lax")
	const timed = "  hooks:\n    pre:\n    - {name: migrate, image: none.example/migrate, timeout: 20m, onFailure: %s}\n"
	files["projects/shop/apps/web/app.yaml"] += fmt.Sprintf(timed, "Stop")
	files["projects/shop/apps/lax/app.yaml"] += fmt.Sprintf(timed, "Continue")
	n.push(files)
	for _, app := range []string{"web", "lax"} {
		n.over(n.hookJob("shop", app, "pre-migrate"), corev1.PodFailed, "DeadlineExceeded")
	}
	const why = "its last pod did not end within 20m0s and was stopped"
	web, lax := n.app("shop", "web"), n.app("shop", "lax")
	if got := n.until(web, v1alpha1.ReadyCondition, metav1.ConditionFalse, v1alpha1.PreHookFailedReason); !strings.Contains(got, why) || !conditions.IsStalled(web) {
		t.Errorf("the message is %q", got)
	}
	n.absent("shop", "web")
	n.ready(lax)
	n.configMap("shop", "lax")
	if h := lax.Status.Hooks; len(h) != 1 || h[0].Result != v1alpha1.HookFailed || !strings.Contains(h[0].Message, why) {
		t.Errorf("status.hooks is %+v", h)
	}
	n.eventually(func() error {
		events := &eventsv1.EventList{}
		if err := n.admin.List(t.Context(), events, client.InNamespace(lax.Namespace)); err != nil {
			return err
		}
		for _, e := range events.Items {
			if e.Regarding.Name == "lax" && e.Reason == v1alpha1.PreHookFailedReason && strings.Contains(e.Note, "the app goes on (onFailure): ") && strings.Contains(e.Note, why) {
				return nil
			}
		}
		return fmt.Errorf("none of %d events reports the timeout", len(events.Items))
	})
}

func transitions(app *v1alpha1.App) string {
	all := ""
	for _, c := range app.Status.Conditions {
		all += c.Type + c.LastTransitionTime.String()
	}
	return all
}

// TestHooksRunAroundAHelmRelease: a hook without an image uses the app's.
func TestHooksRunAroundAHelmRelease(t *testing.T) {
	n := newTeam(t, "hookedrelease")
	files := withRelease(shopFiles("shop"))
	files["projects/shop/apps/released/app.yaml"] += hooks
	files["projects/shop/apps/image/app.yaml"] = "apiVersion: paas.kubeop.io/v1alpha1\nkind: App\nmetadata: {name: image}\nspec:\n" +
		"  type: Image\n  image: {reference: \"none.example/image:1\", replicas: 0}\n  hooks: {pre: [{name: migrate}]}\n"
	n.push(files)
	job := n.hookJob("shop", "released", "pre-migrate")
	n.absent("shop", "released")
	n.over(job, corev1.PodSucceeded)
	n.over(n.hookJob("shop", "released", "post-warm"), corev1.PodSucceeded)
	n.ready(n.app("shop", "released"))
	n.configMap("shop", "released")

	job = n.hookJob("shop", "image", "pre-migrate")
	if got := job.Spec.Template.Spec.Containers[0].Image; got != "none.example/image:1" {
		t.Errorf("the hook's image is %s, want %q", got, "none.example/image:1")
	}
	n.over(job, corev1.PodSucceeded)
	n.ready(n.app("shop", "image"))
}
