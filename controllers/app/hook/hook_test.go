package hook

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/app/inputs"
	"github.com/kubeop/kubeop/controllers/app/subject"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/digest"
	"github.com/kubeop/kubeop/delivery/health"
	"github.com/kubeop/kubeop/delivery/jobs"
)

// hookFixture is an app with one hook, and the objects in its namespace.
type hookFixture struct {
	*Runner
	s     *subject.Subject
	plan  *Plan
	h     *run
	clock *clocktesting.FakePassiveClock
}

func newHookFixture(hook *v1alpha1.Hook, logs string, held ...client.Object) *hookFixture {
	app := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-a-b", Name: "web", UID: "1"}}
	c := fake.NewClientBuilder().WithObjects(held...).Build()
	clock := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
	b := &hookFixture{
		Runner: &Runner{Inputs: &inputs.Reader{}}, clock: clock,
		s: (&subject.Subjects{Clock: clock}).New(app),
		h: &run{Run: jobs.Run{App: app, Phase: jobs.Pre, Hook: hook, Input: "0123"}},
	}
	b.s.Client = c
	b.plan = &Plan{runs: []*run{b.h}}
	b.Explainer = func(_ string, mask func(string) string) (health.Explainer, error) {
		read := func(context.Context, string, string, string, bool) (string, error) { return logs, nil }
		return health.Explainer{Client: c, Logs: read, Mask: mask}, nil
	}
	return b
}

// failed is the hook's Job, with the reason and message of its failure.
func (b *hookFixture) failed(t *testing.T, reason, message string) *unstructured.Unstructured {
	t.Helper()
	job := &batchv1.Job{
		TypeMeta:   metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
		ObjectMeta: metav1.ObjectMeta{Namespace: b.s.App.Namespace, Name: b.h.Name(), UID: "2"},
		Spec:       batchv1.JobSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"of": "hook"}}},
		Status:     batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Reason: reason, Message: message}}},
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(job)
	if err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: content}
}

func secretOf(name, key, value string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-a-b", Name: name}, Data: map[string][]byte{key: []byte(value)}}
}

// TestMessageAndLogOfAHookAreMasked: a hook's program writes its secrets into its termination message and its log.
func TestMessageAndLogOfAHookAreMasked(t *testing.T) {
	secrets := map[string]string{"db": "pa55-w0rd", "dsn": "postgres://db/shop?key=s3cr3t", "app": "t0p-m0st", "cert": "-----first-----\n-----second-----"}
	held := []client.Object{&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-a-b", Name: "web-1", Labels: map[string]string{"of": "hook"}},
		Spec:       corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "migrate"}}},
		Status: corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: []corev1.ContainerStatus{{
			Name: "migrate", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Message: "cannot log in with pa55-w0rd"}},
		}}},
	}}
	logs := ""
	for name, value := range secrets {
		held = append(held, secretOf(name, "value", value))
		logs += name + " is " + value + "\n"
	}
	from := func(name string) *corev1.EnvVarSource {
		return &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: "value"}}
	}
	hook := &v1alpha1.Hook{
		Name: "migrate", Env: []corev1.EnvVar{{Name: "PASSWORD", ValueFrom: from("db")}, {Name: "DSN", ValueFrom: from("dsn")}},
		EnvFrom: []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "none-such"}}}},
	}
	b := newHookFixture(hook, logs, held...)
	b.s.App.Spec.Image = &v1alpha1.ImageSource{
		Env:         []corev1.EnvVar{{Name: "TOKEN", ValueFrom: from("app")}},
		SecretFiles: []v1alpha1.ImageSecretFiles{{SecretRef: v1alpha1.LocalSecretReference{Name: "cert"}}},
	}
	if err := b.finish(t.Context(), b.s, b.plan, b.h, b.failed(t, "BackoffLimitExceeded", "no more")); err != nil {
		t.Fatal(err)
	}
	message := b.h.result.Message
	for _, want := range []string{"exit code 1: cannot log in with ***", "| db is ***", "app is ***", "dsn is ***", "cert is ***"} {
		if !strings.Contains(message, want) {
			t.Errorf("the message does not contain %q: %s", want, message)
		}
	}
	for name, value := range secrets {
		for line := range strings.SplitSeq(value, "\n") {
			if strings.Contains(message, line) {
				t.Errorf("the message contains the Secret %s: %s", name, message)
			}
		}
	}
}

// TestTheReasonOfAnUnschedulableHookIsKept: the pod that showed it is gone when the Job's time is over.
func TestTheReasonOfAnUnschedulableHookIsKept(t *testing.T) {
	b := newHookFixture(&v1alpha1.Hook{Name: "migrate", Timeout: &metav1.Duration{Duration: time.Minute}}, "")
	b.s.App.Status.RunningHook = &v1alpha1.RunningHook{Job: b.h.Name(), Message: "Job/web-migrate: its last pod is not scheduled: too little cpu"}
	if err := b.finish(t.Context(), b.s, b.plan, b.h, b.failed(t, batchv1.JobReasonDeadlineExceeded, "Job was active longer than specified deadline")); err != nil {
		t.Fatal(err)
	}
	const want = "no pod of it ended within its timeout of 1m0s; before that: Job/web-migrate: its last pod is not scheduled: too little cpu"
	if h := b.h.result; h.Message != want || h.Result != v1alpha1.HookFailed {
		t.Errorf("got %+v", h)
	}
}

// TestOnlyTheJobThatWasReadIsDeleted: another Job of the name is created between read and deletion.
func TestOnlyTheJobThatWasReadIsDeleted(t *testing.T) {
	seen := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-a-b", Name: "web-former", UID: "former"}}
	b := newHookFixture(&v1alpha1.Hook{Name: "migrate"}, "", seen)
	kind := jobs.Kind.GroupVersion().WithResource("jobs").GroupResource()
	b.s.Client = interceptor.NewClient(b.s.Client.(client.WithWatch), interceptor.Funcs{
		// The fake knows no precondition on the UID; this is the API server's.
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			options := (&client.DeleteOptions{}).ApplyOptions(opts)
			if p := options.Preconditions; p != nil && p.UID != nil && *p.UID != types.UID("another") {
				return apierrors.NewConflict(kind, o.GetName(), nil)
			}
			return c.Delete(ctx, o, opts...)
		},
	})
	job := b.failed(t, "", "")
	job.SetName(seen.Name)
	if err := b.plan.clear(t.Context(), b.s, []*unstructured.Unstructured{job}); !apierrors.IsConflict(err) {
		t.Errorf("got %v", err)
	}
	if err := b.s.Client.Get(t.Context(), client.ObjectKeyFromObject(seen), seen); err != nil {
		t.Errorf("another Job was deleted: %v", err)
	}
}

// sealing seals a digest as a key would.
func sealing(digest string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte("key"+digest))) }

// TestHooksReportedWithUnsealedDigestsDoNotRunAgain: the result that an earlier version reported still holds for the same input.
func TestHooksReportedWithUnsealedDigestsDoNotRunAgain(t *testing.T) {
	hook := v1alpha1.Hook{Name: "migrate", Image: "none.example/migrate"}
	app := &v1alpha1.App{}
	app.Spec.Type, app.Spec.Hooks.Pre = v1alpha1.AppRaw, []v1alpha1.Hook{hook}
	plain := func() string {
		t.Helper()
		delivered, err := jobs.Digest(nil)
		if err != nil {
			t.Fatal(err)
		}
		input, err := jobs.InputOf(delivered, jobs.Pre, &hook)
		if err != nil {
			t.Fatal(err)
		}
		return input
	}
	seal := digest.Seal(sealing)
	for name, again := range map[string]string{"once": "", "once more, by hand": ".12345678"} {
		s, plan := (&subject.Subjects{}).New(app), &Plan{}
		input := plain()
		ended := metav1.NewTime(time.Unix(1000, 0))
		app.Status.Hooks = []v1alpha1.HookStatus{{Phase: jobs.Pre, Name: "migrate", Input: input + again, Result: v1alpha1.HookSucceeded, FinishedAt: ended}}
		if err := plan.plan(s, Revision{Seal: seal}); err != nil {
			t.Fatal(err)
		}
		if h := plan.runs[0]; h.result == nil || h.Input != seal.Short(input)+again {
			t.Errorf("%s: the known result of the run for %s is %+v", name, h.Input, h.result)
		}
		plan.Record(app, false)
		want := []v1alpha1.HookStatus{{Phase: jobs.Pre, Name: "migrate", Input: seal.Short(input) + again, Result: v1alpha1.HookSucceeded, FinishedAt: ended}}
		if diff := cmp.Diff(want, app.Status.Hooks); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestTheMessageOfAnotherJobIsNotAReason: the status still has that of an earlier hook, or none after a restart.
func TestTheMessageOfAnotherJobIsNotAReason(t *testing.T) {
	for name, running := range map[string]*v1alpha1.RunningHook{
		"no hook in the status": nil,
		"this hook, with none":  {Job: "web-migrate-15438896"},
		"another hook":          {Job: "web-other", Message: "Job/web-other: too little cpu"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newHookFixture(&v1alpha1.Hook{Name: "migrate", Timeout: &metav1.Duration{Duration: time.Minute}}, "")
			b.s.App.Status.RunningHook = running
			if err := b.finish(t.Context(), b.s, b.plan, b.h, b.failed(t, batchv1.JobReasonDeadlineExceeded, "Job was active longer than specified deadline")); err != nil {
				t.Fatal(err)
			}
			if h := b.h.result; h.Message != "no pod of it ended within its timeout of 1m0s" || h.Result != v1alpha1.HookFailed {
				t.Errorf("got %+v", h)
			}
		})
	}
}

// TestTheConditionGoesWithTheHooks, and an explanation that cannot be asked for is an error.
func TestTheConditionGoesWithTheHooks(t *testing.T) {
	for name, c := range map[string]struct {
		hooks v1alpha1.Hooks
		notes int
	}{"no hooks": {notes: 1}, "a pre hook": {hooks: v1alpha1.Hooks{Pre: []v1alpha1.Hook{{}}}}, "a post hook": {hooks: v1alpha1.Hooks{Post: []v1alpha1.Hook{{}}}}} {
		app := &v1alpha1.App{}
		app.Spec.Hooks = c.hooks
		notes := (&Plan{}).Notes(app)
		if len(notes) != c.notes || c.notes == 1 && notes[0] != (step.Note{Condition: v1alpha1.HooksSucceededCondition}) {
			t.Errorf("%s: the notes are %+v", name, notes)
		}
	}
	b := newHookFixture(&v1alpha1.Hook{Name: "migrate"}, "")
	b.Explainer = func(string, func(string) string) (health.Explainer, error) {
		return health.Explainer{}, errors.New("no client")
	}
	if err := b.finish(t.Context(), b.s, b.plan, b.h, b.failed(t, "BackoffLimitExceeded", "no more")); err == nil || err.Error() != "no client" {
		t.Errorf("got %v", err)
	}
}
