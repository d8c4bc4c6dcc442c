package hook

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/health"
	"github.com/kubeop/kubeop/delivery/jobs"
	"github.com/kubeop/kubeop/internal/testenv/steptest"
	"github.com/kubeop/kubeop/internal/testenv/watchtest"
)

// runningJob is the hook's Job before it ended.
func (b *hookFixture) runningJob(change ...func(*batchv1.Job)) *batchv1.Job {
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.s.App.Namespace, Name: b.h.Name(), UID: "2"},
		Spec:       batchv1.JobSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"of": "hook"}}},
		Status:     batchv1.JobStatus{Active: 1, StartTime: &metav1.Time{Time: time.Unix(1000, 0)}},
	}
	marked := &unstructured.Unstructured{}
	b.h.Mark(marked)
	job.Labels, job.Annotations = marked.GetLabels(), marked.GetAnnotations()
	job.Labels[v1alpha1.AppLabel], job.Labels[v1alpha1.TenantLabel] = b.s.App.Name, "a"
	for _, c := range change {
		c(job)
	}
	return job
}

// in puts objects into the cluster, with a watch of its Jobs.
func (b *hookFixture) in(t *testing.T, objects ...client.Object) *hookFixture {
	t.Helper()
	api := fake.NewClientBuilder().WithObjects(objects...).WithRESTMapper(watchtest.Mapper(clientgoscheme.Scheme, "")).Build()
	explain := b.Explainer
	b.s.Client, b.Watch = api, watchtest.New(t, api, jobs.Kind)
	b.Explainer = func(namespace string, mask func(string) string) (health.Explainer, error) {
		e, err := explain(namespace, mask)
		e.Client = api
		return e, err
	}
	return b
}

// TestARunningHookIsReportedAfterAWhile, with what keeps it from ending, and without the values of its Secrets.
func TestARunningHookIsReportedAfterAWhile(t *testing.T) {
	crashing := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-a-b", Name: "web-1", Labels: map[string]string{"of": "hook"}},
		Spec:       corev1.PodSpec{RestartPolicy: corev1.RestartPolicyOnFailure, Containers: []corev1.Container{{Name: "migrate"}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{
			Name: "migrate", RestartCount: 4, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
			LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Message: "cannot log in with pa55-w0rd"}},
		}}},
	}
	hook := &v1alpha1.Hook{Name: "migrate", EnvFrom: []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "db"}}}}}
	for name, c := range map[string]struct {
		pods     []client.Object
		waited   time.Duration
		end, why string
		reported bool
	}{
		"it just began":           {[]client.Object{crashing}, 0, "soon, after 2s", "", false},
		"it will end soon":        {[]client.Object{crashing}, 1500 * time.Millisecond, "soon, after 500ms", "", false},
		"it runs without trouble": {nil, 2 * time.Second, "waits Progressing: running pre hook migrate, after 15s", "", true},
		"its container crashes":   {[]client.Object{crashing}, 2 * time.Second, "waits Progressing: running pre hook migrate: Job/web-migrate-15438896: its last pod crashes with exit code 1: cannot log in with ***, after 15s", "Job/web-migrate-15438896: its last pod crashes with exit code 1: cannot log in with ***", true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newHookFixture(hook, "")
			job := b.runningJob()
			b.in(t, append(c.pods, secretOf("db", "password", "pa55-w0rd"), job)...)
			b.s.Waited("hook " + job.Name)
			b.clock.SetTime(b.clock.Now().Add(c.waited))
			got := steptest.Outcome(t, b.runPhase(t.Context(), b.s, b.plan, jobs.Pre, nil))
			if got != c.end || !strings.Contains(got, c.why) || strings.Contains(got, "pa55-w0rd") {
				t.Errorf("got  %q\nwant %q and %q", got, c.end, c.why)
			}
			running := b.plan.running
			if (running != nil) != c.reported || c.reported && (running.Job != job.Name || running.Message != c.why) {
				t.Errorf("reported as running is %+v", running)
			}
		})
	}
}

// TestNothingIsReportedOfAHookWhoseSecretsCannotBeRead: they could not be masked.
func TestNothingIsReportedOfAHookWhoseSecretsCannotBeRead(t *testing.T) {
	hook := &v1alpha1.Hook{Name: "migrate", EnvFrom: []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "db"}}}}}
	for name, ended := range map[string]bool{"it runs": false, "it failed": true} {
		t.Run(name, func(t *testing.T) {
			b := newHookFixture(hook, "")
			job := b.runningJob(func(job *batchv1.Job) {
				if ended {
					job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Message: "no more tries"}}
				}
			})
			b.in(t, job)
			b.s.Client = interceptor.NewClient(b.s.Client.(client.WithWatch), interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
					if _, secret := o.(*corev1.Secret); secret {
						return errors.New("away")
					}
					return c.Get(ctx, key, o, opts...)
				},
			})
			b.s.Waited("hook " + job.Name)
			b.clock.SetTime(b.clock.Now().Add(time.Minute))
			got := steptest.Outcome(t, b.runPhase(t.Context(), b.s, b.plan, jobs.Pre, nil))
			if want := "failed Failed: pre hook migrate: reading Secret db: away"; got != want {
				t.Errorf("got  %q\nwant %q", got, want)
			}
			if b.plan.next() != b.h.Name() {
				t.Errorf("its result is %+v", b.h.result)
			}
		})
	}
}

// TestTheResultOfAJobIsReported as soon as the Job has one, and the next hook begins.
func TestTheResultOfAJobIsReported(t *testing.T) {
	condition := func(kind batchv1.JobConditionType) func(*batchv1.Job) {
		return func(job *batchv1.Job) {
			job.Status.Conditions = []batchv1.JobCondition{{Type: kind, Status: corev1.ConditionTrue, Reason: "R", Message: "no more tries"}}
		}
	}
	const failure = "Job/%s: failed: no more tries; its last pod failed: | last words"
	for name, c := range map[string]struct {
		change func(*batchv1.Job)
		want   v1alpha1.HookStatus
		end    string
	}{
		"it succeeded": {condition(batchv1.JobComplete), v1alpha1.HookStatus{Result: v1alpha1.HookSucceeded}, "done"},
		"it failed":    {condition(batchv1.JobFailed), v1alpha1.HookStatus{Result: v1alpha1.HookFailed, Message: failure}, "stopped PreHookFailed: pre hook migrate failed: " + failure + "; held until"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newHookFixture(&v1alpha1.Hook{Name: "migrate"}, "last words")
			job := b.runningJob(c.change)
			b.in(t, job, &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-a-b", Name: "web-1", Labels: map[string]string{"of": "hook"}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "migrate"}}}, Status: corev1.PodStatus{Phase: corev1.PodFailed},
			})
			b.seen.Get(b.s.App).running = job.Name
			got := steptest.Outcome(t, b.runPhase(t.Context(), b.s, b.plan, jobs.Pre, nil))
			if want := strings.ReplaceAll(c.end, "%s", job.Name); !strings.HasPrefix(got, want) {
				t.Errorf("got  %q\nwant %q", got, want)
			}
			want := c.want
			want.Message = strings.ReplaceAll(want.Message, "%s", job.Name)
			want.Phase, want.Name, want.Input, want.FinishedAt = jobs.Pre, "migrate", "0123", metav1.NewTime(b.clock.Now())
			if diff := cmp.Diff(&want, b.h.result); diff != "" || !b.h.fresh || b.plan.forced {
				t.Errorf("fresh: %t, forced: %t (-want +got):\n%s", b.h.fresh, b.plan.forced, diff)
			}
			if b.seen.Get(b.s.App).running != "" {
				t.Error("an ended Job counts as running")
			}
		})
	}
}

// TestARunningJobIsFoundWithoutAList: the watch shows it, so the API server is not asked in each Reconcile.
func TestARunningJobIsFoundWithoutAList(t *testing.T) {
	b := newHookFixture(&v1alpha1.Hook{Name: "migrate"}, "")
	job := b.runningJob()
	b.in(t, job)
	lists := 0
	b.s.Client = interceptor.NewClient(b.s.Client.(client.WithWatch), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			lists++
			return c.List(ctx, list, opts...)
		},
	})
	for _, want := range []int{1, 1} { // The first Reconcile of a process does not know the Job yet.
		if got := steptest.Outcome(t, b.runPhase(t.Context(), b.s, b.plan, jobs.Pre, nil)); got != "soon, after 2s" || lists != want {
			t.Errorf("%s after %d lists, want %d", got, lists, want)
		}
	}
	b.Forget(b.s.App)
	if _ = b.runPhase(t.Context(), b.s, b.plan, jobs.Pre, nil); lists != 2 {
		t.Errorf("after %d lists a forgotten Job is still known", lists)
	}
}

// TestAHookThatAPersonRepeatedIsForced, so that the request counts as handled.
func TestAHookThatAPersonRepeatedIsForced(t *testing.T) {
	b := newHookFixture(&v1alpha1.Hook{Name: "migrate"}, "")
	b.h.Input = jobs.Again("0123", "now")
	if err := b.finish(t.Context(), b.s, b.plan, b.h, b.failed(t, "R", "no")); err != nil || !b.plan.forced {
		t.Errorf("forced is %t, %v", b.plan.forced, err)
	}
	b.h.Input = "4567"
	if err := b.finish(t.Context(), b.s, b.plan, b.h, b.failed(t, "R", "no")); err != nil || !b.plan.forced {
		t.Errorf("after another hook, forced is %t, %v", b.plan.forced, err)
	}
}

// TestPreAndPostRunTheirOwnPhase: pre hooks run before anything is applied.
func TestPreAndPostRunTheirOwnPhase(t *testing.T) {
	b := newHookFixture(&v1alpha1.Hook{Name: "migrate", Image: "none.example/migrate"}, "").in(t)
	b.s.App.Spec.Hooks.Pre, b.s.App.Spec.Hooks.Post = []v1alpha1.Hook{*b.h.Hook}, []v1alpha1.Hook{{Name: "notify", Image: "none.example/notify"}}
	var admitted []string
	admit := func(job metav1.Object) error {
		admitted = append(admitted, job.GetName())
		return nil
	}
	plan := &Plan{}
	pre := b.Pre(t.Context(), b.s, plan, Revision{Name: "1", Delivered: "one"}, func(job *unstructured.Unstructured) error { return admit(job) })
	if got := steptest.Outcome(t, pre); got != "soon, after 2s" || len(plan.runs) != 2 {
		t.Fatalf("got %q with the hooks %v", got, plan.runs)
	}
	plan.runs[0].result = &v1alpha1.HookStatus{Result: v1alpha1.HookSucceeded}
	b.s.Settled()
	post := b.Post(t.Context(), b.s, plan, func(job *unstructured.Unstructured) error { return admit(job) })
	if got := steptest.Outcome(t, post); got != "soon, after 2s" {
		t.Errorf("got %q", got)
	}
	if diff := cmp.Diff([]string{plan.runs[0].Name(), plan.runs[1].Name()}, admitted); diff != "" {
		t.Errorf("the Jobs (-want +got):\n%s", diff)
	}
	b.seen.Get(b.s.App).running = "web-former"
	if err := b.s.Client.Create(t.Context(), job("web-former", batchv1.JobStatus{})); err != nil {
		t.Fatal(err)
	}
	plan.runs[0].result, b.s.App.Status.Hooks = nil, []v1alpha1.HookStatus{{Phase: jobs.Pre, Name: "migrate", Input: plan.runs[0].Input, Result: v1alpha1.HookSucceeded}}
	if got := steptest.Outcome(t, b.Pre(t.Context(), b.s, &Plan{}, Revision{Name: "1", Delivered: "one"}, nil)); got != "waits Progressing: waits for Job/web-former, a hook of an earlier revision, to end, after 15s" {
		t.Errorf("while a hook that left the spec runs: %q", got)
	}
	if got := steptest.Outcome(t, b.Pre(t.Context(), b.s, &Plan{}, Revision{Delivered: func() {}}, nil)); got != "stopped PreHookFailed: encoding what is delivered: json: unsupported type: func()" {
		t.Errorf("a revision without a digest: %q", got)
	}
}

// TestAProcessLooksOnceForJobsThatAnEarlierOneLeft, and then only for hooks that left the spec.
func TestAProcessLooksOnceForJobsThatAnEarlierOneLeft(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*hookFixture)
		waits  bool
	}{
		"the watch shows one":                {func(*hookFixture) {}, true},
		"the watch shows one of another app": {func(b *hookFixture) { b.s.App.Name = "api" }, false},
		"the watch shows the present one":    {func(b *hookFixture) { b.in(t, b.runningJob()) }, false},
		"the watch shows a Job of the app itself": {func(b *hookFixture) {
			b.in(t, b.runningJob(func(job *batchv1.Job) { job.Name = "web-former"; delete(job.Labels, v1alpha1.HookLabel) }))
		}, false},
		"a hook is reported as running": {func(b *hookFixture) {
			b.s.App.Status.RunningHook = &v1alpha1.RunningHook{Job: "web-former"}
		}, true},
		"this process looked": {func(b *hookFixture) {
			b.s.App.Status.RunningHook = &v1alpha1.RunningHook{Job: "web-former"}
			b.seen.Get(b.s.App).looked = true
		}, false},
		"the next hook runs": {func(b *hookFixture) {
			b.seen.Get(b.s.App).running, b.seen.Get(b.s.App).looked = b.h.Name(), true
		}, false},
		"another hook ran":              {func(b *hookFixture) { b.seen.Get(b.s.App).running = "web-former" }, true},
		"the App has no hooks any more": {func(b *hookFixture) { b.plan.runs = nil }, true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newHookFixture(&v1alpha1.Hook{Name: "migrate"}, "")
			b.in(t, b.runningJob(func(job *batchv1.Job) { job.Name = "web-former" }))
			c.change(b)
			got, want := steptest.Outcome(t, b.awaitFormer(t.Context(), b.s, b.plan)), "done"
			if c.waits {
				want = "waits Progressing: waits for Job/web-former, a hook of an earlier revision, to end, after 15s"
			}
			if got != want || b.seen.Get(b.s.App).looked == c.waits {
				t.Errorf("got  %q\nwant %q; looked: %t", got, want, b.seen.Get(b.s.App).looked)
			}
		})
	}
}

// TestPresentJobsCostNoListAfterARestart: the Jobs of the present revision stay for their logs, and a list for each App would make a restart expensive.
func TestPresentJobsCostNoListAfterARestart(t *testing.T) {
	b := newHookFixture(&v1alpha1.Hook{Name: "migrate"}, "")
	b.in(t, b.runningJob())
	lists := 0
	b.s.Client = interceptor.NewClient(b.s.Client.(client.WithWatch), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			lists++
			return c.List(ctx, list, opts...)
		},
	})
	if got := steptest.Outcome(t, b.awaitFormer(t.Context(), b.s, b.plan)); got != "done" || lists != 0 {
		t.Errorf("%s after %d lists", got, lists)
	}
}

// TestAHookThatHadJustBegunIsAwaitedAfterARestart: the status does not name its Job yet. The commit after it has another post hook, and no pre hook that would
// look for Jobs.
func TestAHookThatHadJustBegunIsAwaitedAfterARestart(t *testing.T) {
	b := newHookFixture(&v1alpha1.Hook{Name: "notify", Image: "none.example/notify"}, "")
	b.h.Phase, b.s.App.Spec.Hooks.Post = jobs.Post, []v1alpha1.Hook{*b.h.Hook}
	b.in(t)
	pass := func(delivered string) string {
		return steptest.Outcome(t, b.Pre(t.Context(), b.s, &Plan{}, Revision{Name: "1", Delivered: delivered}, nil))
	}
	if got := pass("one"); got != "done" {
		t.Fatalf("without Jobs: %q", got)
	}
	b.in(t, b.runningJob(func(job *batchv1.Job) { job.Name = "web-notify-1" }))
	b.Forget(b.s.App)
	const waits = "waits Progressing: waits for Job/web-notify-1, a hook of an earlier revision, to end, after 15s"
	for range 2 {
		if got := pass("two"); got != waits {
			t.Errorf("got  %q\nwant %q", got, waits)
		}
	}
	b.in(t, b.runningJob(func(job *batchv1.Job) { job.Name, job.Status = "web-notify-1", completed }))
	if got := pass("two"); got != "done" {
		t.Errorf("when it ended: %q", got)
	}
}

// TestEachStepReturnsTheErrorOfEachRequest: a hook whose Jobs cannot be listed may be running.
func TestEachStepReturnsTheErrorOfEachRequest(t *testing.T) {
	for name, c := range map[string]struct {
		there []client.Object
		do    func(*hookFixture) error
		least int
	}{
		"a hook begins, and Jobs of earlier revisions are deleted": {[]client.Object{job("old", completed)}, func(b *hookFixture) error { return b.runPhase(t.Context(), b.s, b.plan, jobs.Pre, nothing) }, 3},
		"the App has no hooks any more": {[]client.Object{job("old", completed)}, func(b *hookFixture) error {
			b.plan.runs = nil
			return b.awaitFormer(t.Context(), b.s, b.plan)
		}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			requests := steptest.EachRequest(t, func(f *steptest.Failing) error {
				b := newHookFixture(&v1alpha1.Hook{Name: "migrate", Image: "a/b"}, "").in(t)
				for _, o := range c.there {
					if err := b.s.Client.Create(t.Context(), o.DeepCopyObject().(client.Object)); err != nil {
						t.Fatal(err)
					}
				}
				b.s.Client = f.Client(b.s.Client.(client.WithWatch))
				return c.do(b)
			})
			if requests < c.least {
				t.Errorf("%d requests, want %d at least", requests, c.least)
			}
		})
	}
}

func nothing(*unstructured.Unstructured) error { return nil }

// TestOnlyTheFormerHookIsForgotten: once it ended, the next one is awaited, and Jobs are deleted only if no hooks are left.
func TestOnlyTheFormerHookIsForgotten(t *testing.T) {
	for name, c := range map[string]struct {
		running string
		none    bool
		still   string
		deleted bool
	}{
		"a former one ended":            {running: "web-former"},
		"the App has no hooks any more": {running: "web-former", none: true, deleted: true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newHookFixture(&v1alpha1.Hook{Name: "migrate"}, "", job("web-former", completed))
			b.seen.Get(b.s.App).running = c.running
			if c.none {
				b.plan.runs = nil
			}
			if err := b.awaitFormer(t.Context(), b.s, b.plan); err != nil {
				t.Fatal(err)
			}
			if got := b.seen.Get(b.s.App); got.running != c.still || !got.looked {
				t.Errorf("running is %q, want %q; looked: %t", got.running, c.still, got.looked)
			}
			left := &batchv1.JobList{}
			if err := b.s.Client.List(t.Context(), left); err != nil || (len(left.Items) == 0) != c.deleted {
				t.Errorf("the Jobs are %v, %v", left.Items, err)
			}
		})
	}
}

func TestSecretsAreThoseOfSecretReferencesOnly(t *testing.T) {
	key := corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "db"}}
	env := []corev1.EnvVar{{Name: "A", Value: "x"}, {Name: "B", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{}}}, {Name: "C", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &key}}}
	from := []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{}}, {SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "all"}}}}
	if diff := cmp.Diff([]string{"all", "db"}, secretsIn(env, from)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
