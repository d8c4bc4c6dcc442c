package hook

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/digest"
	"github.com/kubeop/kubeop/delivery/jobs"
	"github.com/kubeop/kubeop/internal/testenv/steptest"
)

// planned is the plan of an app with a hook in each phase, whose delivered content is a text.
func planned(t *testing.T, b *hookFixture, delivered string) *Plan {
	t.Helper()
	plan := &Plan{}
	if err := plan.plan(b.s, Revision{Name: "main@sha1:1", Delivered: delivered, Image: "none.example/web"}); err != nil {
		t.Fatal(err)
	}
	return plan
}

// withHooks is an app with a pre hook "migrate" and a post hook "notify".
func withHooks() *hookFixture {
	b := newHookFixture(&v1alpha1.Hook{Name: "migrate"}, "")
	b.s.App.Spec.Hooks = v1alpha1.Hooks{Pre: []v1alpha1.Hook{{Name: "migrate"}}, Post: []v1alpha1.Hook{{Name: "notify"}}}
	return b
}

// ended writes a status in which all hooks of a plan have this result.
func ended(b *hookFixture, plan *Plan, result string) {
	for _, h := range plan.runs {
		h.result = &v1alpha1.HookStatus{Phase: h.Phase, Name: h.Hook.Name, Input: h.Input, Result: result}
	}
	plan.Record(b.s.App, false)
}

func TestAHookRunsOncePerDeliveredRevision(t *testing.T) {
	b := withHooks()
	ended(b, planned(t, b, "one"), v1alpha1.HookSucceeded)
	if r := planned(t, b, "one").runs[0]; r.Revision != "main@sha1:1" || r.Image != "none.example/web" {
		t.Errorf("the hook gets the revision %q and the image %q", r.Revision, r.Image)
	}
	if next := planned(t, b, "one").next(); next != "" {
		t.Errorf("the content is unchanged, and hook %q runs, want none", next)
	}
	other := planned(t, b, "two")
	if next := other.next(); next != other.runs[0].Name() || other.runs[1].result != nil {
		t.Errorf("the content changed, and the next hook is %q", next)
	}
	b.s.App.Spec.Hooks.Post[0].Args = []string{"-v"}
	changed := planned(t, b, "one")
	if changed.runs[0].result == nil || changed.runs[1].result != nil {
		t.Error("want only the changed hook to run again")
	}
}

func TestHooksHaveThePullSecretsOfTheProject(t *testing.T) {
	b := withHooks()
	b.s.PullSecrets = []v1alpha1.PullSecret{{Registry: "mine", Host: "none.example"}}
	for _, h := range planned(t, b, "one").runs {
		if len(h.PullSecrets) != 1 || h.PullSecrets[0].Registry != "mine" {
			t.Errorf("%s has %v", h, h.PullSecrets)
		}
	}
}

// imageObjects are the Deployment of an Image app that names these pull Secrets.
func imageObjects(secrets ...string) []*unstructured.Unstructured {
	pod := map[string]any{"containers": []any{}}
	var refs []any
	for _, name := range secrets {
		refs = append(refs, map[string]any{"name": name})
	}
	if len(refs) > 0 {
		pod["imagePullSecrets"] = refs
	}
	return []*unstructured.Unstructured{{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "spec": map[string]any{"template": map[string]any{"spec": pod}}}}}
}

// TestARegistryRunsNoHookAgain: it adds names of Secrets to the pods of an Image app, and takes them away, without a change of the app.
func TestARegistryRunsNoHookAgain(t *testing.T) {
	b := withHooks()
	b.s.App.Spec.Image = &v1alpha1.ImageSource{PullSecrets: []v1alpha1.LocalSecretReference{{Name: "kubeop-registry-named"}}}
	planFor := func(secrets ...string) *Plan {
		t.Helper()
		plan := &Plan{}
		if err := plan.plan(b.s, Revision{Delivered: imageObjects(secrets...), Image: "none.example/web"}); err != nil {
			t.Fatal(err)
		}
		return plan
	}
	ended(b, planFor("kubeop-registry-named", "own"), v1alpha1.HookSucceeded)
	if next := planFor("kubeop-registry-named", "own", "kubeop-registry-mine").next(); next != "" {
		t.Errorf("for a new Registry %s runs again", next)
	}
	for _, secrets := range [][]string{{"kubeop-registry-named"}, {"own"}} {
		if planFor(secrets...).next() == "" {
			t.Errorf("the app names only %v now, and no hook runs", secrets)
		}
	}
}

// TestAnUpgradeRunsNoHookAgain: an earlier version recorded what was delivered with the Secrets of Registries. Its results and Jobs count, once
// the status has them as this version records them also without these Secrets.
func TestAnUpgradeRunsNoHookAgain(t *testing.T) {
	b := withHooks()
	b.s.App.Spec.Image = &v1alpha1.ImageSource{}
	seal := digest.Seal(sealing)
	revision := func(secrets ...string) Revision {
		return Revision{Delivered: imageObjects(secrets...), Image: "none.example/web", Seal: seal}
	}
	before, err := jobs.Digest(imageObjects("kubeop-registry-mine"))
	if err != nil {
		t.Fatal(err)
	}
	for _, again := range []string{"", ".12345678"} {
		recorded := &Plan{}
		for _, r := range []jobs.Run{{Phase: jobs.Pre, Hook: &b.s.App.Spec.Hooks.Pre[0]}, {Phase: jobs.Post, Hook: &b.s.App.Spec.Hooks.Post[0]}} {
			input, err := jobs.InputOf(before, r.Phase, r.Hook)
			if err != nil {
				t.Fatal(err)
			}
			r.App, r.Seal, r.Input = b.s.App, seal, jobs.Sealed(input+again, seal)
			recorded.runs = append(recorded.runs, &run{Run: r})
		}
		recorded.planned = true
		ended(b, recorded, v1alpha1.HookSucceeded)
		upgraded := &Plan{}
		if err := upgraded.plan(b.s, revision("kubeop-registry-mine")); err != nil {
			t.Fatal(err)
		}
		if next := upgraded.next(); next != "" {
			t.Errorf("%s runs again after an upgrade", next)
		}
		job := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": recorded.runs[0].Name(), "labels": map[string]any{v1alpha1.AppLabel: "web"}}}}
		recorded.runs[0].Mark(job)
		if h := upgraded.runs[0]; !h.Is(job) || upgraded.runs[1].Is(job) {
			t.Errorf("the Job %s that an earlier version made for the hook is not its own", job.GetName())
		}
		upgraded.Record(b.s.App, false)
		for i, h := range b.s.App.Status.Hooks {
			if h.Input == recorded.runs[i].Input || !strings.HasSuffix(h.Input, again) {
				t.Errorf("%s is recorded with input %s, before %s", h.Name, h.Input, recorded.runs[i].Input)
			}
		}
		later := &Plan{}
		if err := later.plan(b.s, revision()); err != nil {
			t.Fatal(err)
		}
		if next := later.next(); next != "" {
			t.Errorf("%s runs again when the Registry goes", next)
		}
	}
}

func TestAResultOfAnotherPhaseDoesNotCount(t *testing.T) {
	b := withHooks()
	b.s.App.Spec.Hooks.Post[0].Name = "migrate"
	plan := planned(t, b, "one")
	b.s.App.Status.Hooks = []v1alpha1.HookStatus{{Phase: jobs.Pre, Name: "migrate", Input: plan.runs[0].Input, Result: v1alpha1.HookSucceeded}}
	if again := planned(t, b, "one"); again.runs[0].result == nil || again.runs[1].result != nil {
		t.Error("the post hook has the result of the pre hook")
	}
}

func TestAFailedHookRunsAgainOncePerRequest(t *testing.T) {
	b := withHooks()
	ended(b, planned(t, b, "one"), v1alpha1.HookFailed)
	if plan := planned(t, b, "one"); plan.next() != "" {
		t.Errorf("%s runs again without a request, want none", plan.next())
	}
	b.s.App.Annotations = map[string]string{meta.ForceRequestAnnotation: "now"}
	plan := planned(t, b, "one")
	first := plan.next()
	if first == "" || plan.runs[0].Input != jobs.Again(strings.Split(plan.runs[0].Input, ".")[0], "now") {
		t.Errorf("the hook does not run again; its input is %s", plan.runs[0].Input)
	}
	ended(b, plan, v1alpha1.HookFailed)
	if again := planned(t, b, "one"); again.next() != "" {
		t.Error("the hook runs twice for one request")
	}
	b.s.App.Annotations[meta.ForceRequestAnnotation] = "once more"
	if again := planned(t, b, "one"); again.next() == "" || again.next() == first {
		t.Errorf("for another request the next hook is %q", again.next())
	}
}

func TestASucceededHookDoesNotRunAgainOnRequest(t *testing.T) {
	b := withHooks()
	ended(b, planned(t, b, "one"), v1alpha1.HookSucceeded)
	b.s.App.Annotations = map[string]string{meta.ForceRequestAnnotation: "now"}
	if plan := planned(t, b, "one"); plan.next() != "" {
		t.Errorf("%s runs again, want none", plan.next())
	}
}

func TestARequestIsHandledOnceTheHookRanOrTheRevisionIsDelivered(t *testing.T) {
	for name, c := range map[string]struct {
		forced, done, helm, want bool
	}{
		"neither":                   {},
		"a hook ran again":          {forced: true, want: true},
		"the revision is delivered": {done: true, want: true},
		"a release handles the request by itself": {forced: true, done: true, helm: true},
	} {
		app := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{meta.ForceRequestAnnotation: "now"}}}
		if c.helm {
			app.Spec.Helm = &v1alpha1.HelmSource{}
		}
		(&Plan{forced: c.forced}).Record(app, c.done)
		if got := app.Status.LastHandledForceAt == "now"; got != c.want {
			t.Errorf("%s: handled %t, want %t", name, got, c.want)
		}
	}
}

func TestAMissingPlanKeepsTheStatus(t *testing.T) {
	b := withHooks()
	b.s.App.Status.Hooks = []v1alpha1.HookStatus{{Phase: jobs.Pre, Name: "migrate"}}
	b.s.App.Status.RunningHook = &v1alpha1.RunningHook{Job: "web-migrate"}
	(&Plan{}).Record(b.s.App, false)
	if len(b.s.App.Status.Hooks) != 1 || b.s.App.Status.RunningHook == nil {
		t.Errorf("the status is %+v", b.s.App.Status)
	}
	planned(t, b, "one").Record(b.s.App, false)
	if len(b.s.App.Status.Hooks) != 0 || b.s.App.Status.RunningHook != nil {
		t.Errorf("after a new plan the status is %+v", b.s.App.Status)
	}
}

func TestAHookThatRunsAgainStaysReportedUntilItEnds(t *testing.T) {
	b := withHooks()
	ended(b, planned(t, b, "one"), v1alpha1.HookFailed)
	b.s.App.Annotations = map[string]string{meta.ForceRequestAnnotation: "now"}
	planned(t, b, "one").Record(b.s.App, false)
	if hooks := b.s.App.Status.Hooks; len(hooks) != 2 || hooks[0].Result != v1alpha1.HookFailed {
		t.Errorf("the status has %+v", hooks)
	}
}

func TestHooksAreNeededWhileTheSpecOrTheStatusNamesOne(t *testing.T) {
	app := &v1alpha1.App{}
	if Needed(app) || HasPost(app) {
		t.Error("hooks are needed for an App without any")
	}
	app.Status.Hooks = []v1alpha1.HookStatus{{Name: "migrate"}}
	if !Needed(app) {
		t.Error("Jobs of hooks of an earlier spec are not deleted")
	}
	app.Status.Hooks, app.Status.RunningHook = nil, &v1alpha1.RunningHook{Job: "web-migrate"}
	if !Needed(app) {
		t.Error("a running hook of an earlier spec is not awaited")
	}
	b := withHooks()
	b.s.App.Spec.Hooks.Pre = nil
	if !Needed(b.s.App) || !HasPost(b.s.App) {
		t.Error("a post hook alone is not enough for hooks to be needed")
	}
}

// TestAFailedHookStopsTheRevisionUnlessIgnored: the pre hook fails, with both values of onFailure.
func TestAFailedHookStopsTheRevisionUnlessIgnored(t *testing.T) {
	for onFailure, stops := range map[v1alpha1.HookFailure]bool{"": true, v1alpha1.HookStop: true, v1alpha1.HookContinue: false} {
		b := withHooks()
		b.s.App.Spec.Hooks.Pre[0].OnFailure = onFailure
		plan := planned(t, b, "one")
		plan.runs[0].result, plan.runs[0].fresh = &v1alpha1.HookStatus{Result: v1alpha1.HookFailed, Message: "exit code 1"}, true
		err := b.runPhase(t.Context(), b.s, plan, jobs.Pre, nil)
		if (err != nil) != stops || (stops && err.Error() != `pre hook migrate failed: exit code 1; held until the app changes; to try again before, an owner of the tenant with the role edit or admin may run: kubectl annotate app web -n kubeop-a-b --overwrite reconcile.fluxcd.io/forceAt="$(date +%s)"`) {
			t.Errorf("onFailure %q: %v", onFailure, err)
		}
		passed := "; pre hook migrate failed and was passed over"
		if summary := plan.Summary(); (summary == passed) == stops || (stops && summary != "") {
			t.Errorf("onFailure %q: the summary is %q", onFailure, summary)
		}
		notes := plan.Notes(b.s.App)
		if want := (step.Note{Reason: v1alpha1.PreHookFailedReason, Message: "pre hook migrate failed, and the app goes on (onFailure): exit code 1", Event: "Warning"}); (len(notes) == 1) == stops || !stops && notes[0] != want {
			t.Errorf("onFailure %q: notes %v", onFailure, notes)
		}
		plan.runs[0].fresh = false
		if notes := plan.Notes(b.s.App); len(notes) != 0 {
			t.Errorf("onFailure %q: a failure that was reported is reported again: %v", onFailure, notes)
		}
		plan.runs[0].fresh, plan.runs[0].result.Result = true, v1alpha1.HookSucceeded
		if notes := plan.Notes(b.s.App); len(notes) != 0 || plan.Summary() != "" {
			t.Errorf("onFailure %q: a hook that succeeded is reported as failed: %v, %q", onFailure, notes, plan.Summary())
		}
	}
}

func TestHooksOfOtherPhasesDoNotRun(t *testing.T) {
	b := withHooks()
	plan := planned(t, b, "one")
	plan.runs[0].result = &v1alpha1.HookStatus{Result: v1alpha1.HookSucceeded}
	if err := b.runPhase(t.Context(), b.s, plan, jobs.Pre, nil); err != nil { // The post hook would fail, because the watch is nil.
		t.Error(err)
	}
}

// job is the Job of a hook of the app web.
func job(name string, status batchv1.JobStatus) *batchv1.Job {
	return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-a-b", Name: name, UID: "1", Labels: map[string]string{v1alpha1.AppLabel: "web", v1alpha1.HookLabel: "pre-migrate"}}, Status: status}
}

var completed = batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}}

func TestAHookWaitsForJobsOfEarlierRevisions(t *testing.T) {
	otherApp, noHook := job("api-old", batchv1.JobStatus{}), job("plain", batchv1.JobStatus{})
	otherApp.Labels[v1alpha1.AppLabel] = "api"
	delete(noHook.Labels, v1alpha1.HookLabel)
	leaving := job("leaving", batchv1.JobStatus{})
	leaving.DeletionTimestamp, leaving.Finalizers = &metav1.Time{Time: metav1.Now().Time}, []string{"a/b"}
	cases := map[string]struct {
		job   *batchv1.Job
		waits bool
		found int
	}{
		"one that runs":               {job("old", batchv1.JobStatus{}), true, 0},
		"one that ended":              {job("old", completed), false, 1},
		"one that is being deleted":   {leaving, false, 1},
		"the one of this revision":    {job("now", batchv1.JobStatus{}), false, 1},
		"one of another App":          {otherApp, false, 0},
		"a Job that is not of a hook": {noHook, false, 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			b := newHookFixture(&v1alpha1.Hook{Name: "migrate"}, "", c.job)
			all, err := unfinished(t.Context(), b.s, b.plan, "now")
			if (err != nil) != c.waits || len(all) != c.found || (err != nil && !step.Waits(err)) {
				t.Errorf("found %d Jobs, error %v", len(all), err)
			}
			if running := b.plan.running; (running != nil) != c.waits || c.waits && running.Job != "old" {
				t.Errorf("reported as running is %+v", running)
			}
		})
	}
}

// TestAHookThatLeftTheSpecIsAwaitedWhileItRuns: the next hook does not start before it ends.
func TestAHookThatLeftTheSpecIsAwaitedWhileItRuns(t *testing.T) {
	cases := map[string]struct {
		running, want string
	}{
		"the former hook runs":  {"old", "waits"},
		"the present hook runs": {"", "goes on"},
		"no hook was running":   {"none", "goes on"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			b := withHooks()
			b.s.Client = fake.NewClientBuilder().WithObjects(job("old", batchv1.JobStatus{})).Build()
			plan := planned(t, b, "one")
			b.seen.Get(b.s.App).looked = true
			switch c.running {
			case "old":
				b.seen.Get(b.s.App).running = "old"
			case "":
				b.seen.Get(b.s.App).running = plan.next()
			}
			err := b.awaitFormer(t.Context(), b.s, plan)
			if got := map[bool]string{true: "waits", false: "goes on"}[err != nil]; got != c.want || err != nil && !step.Waits(err) {
				t.Errorf("the hook %s with error %v, want %q", got, err, c.want)
			}
		})
	}
}

// TestTheStatusNamesHooksUntilTheirJobsAreGone: they left the spec, or are of an earlier revision.
func TestTheStatusNamesHooksUntilTheirJobsAreGone(t *testing.T) {
	away := interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
		return errors.New("away")
	}}
	for name, c := range map[string]struct {
		job    *batchv1.Job
		fails  interceptor.Funcs
		hooks  bool // The spec has hooks.
		status string
	}{
		"the Job runs, and the spec has no hooks":                 {job: job("old", batchv1.JobStatus{}), status: "migrate, old runs, needed"},
		"the Jobs cannot be listed, and the spec has no hooks":    {job: job("old", completed), fails: away, status: "migrate, old runs, needed"},
		"the Job has ended, and the spec has no hooks":            {job: job("old", completed), status: "condition removed"},
		"the Job runs, and the spec has hooks for another input":  {job: job("old", batchv1.JobStatus{}), hooks: true, status: "old runs, needed"},
		"the Jobs cannot be listed, and the spec has other hooks": {job: job("old", completed), fails: away, hooks: true, status: "old runs, needed"},
	} {
		t.Run(name, func(t *testing.T) {
			b := withHooks()
			if !c.hooks {
				b.s.App.Spec.Hooks = v1alpha1.Hooks{}
			}
			b.s.Client = fake.NewClientBuilder().WithObjects(c.job).WithInterceptorFuncs(c.fails).Build()
			b.s.App.Status.Hooks = []v1alpha1.HookStatus{{Phase: jobs.Pre, Name: "migrate", Input: "of before"}}
			b.s.App.Status.RunningHook = &v1alpha1.RunningHook{Job: "old"}
			plan := &Plan{}
			if err := b.Pre(t.Context(), b.s, plan, Revision{Name: "r", Delivered: "one"}, nothing); (err == nil) != (c.status == "condition removed") {
				t.Errorf("got error %v", err)
			}
			plan.Record(b.s.App, false)
			var got []string
			for _, h := range b.s.App.Status.Hooks {
				got = append(got, h.Name)
			}
			if running := b.s.App.Status.RunningHook; running != nil {
				got = append(got, running.Job+" runs")
			}
			if Needed(b.s.App) {
				got = append(got, "needed")
			}
			if slices.Contains(plan.Notes(b.s.App), step.Note{Condition: v1alpha1.HooksSucceededCondition}) {
				got = append(got, "condition removed")
			}
			if all := strings.Join(got, ", "); all != c.status {
				t.Errorf("the status: %s, want %s", all, c.status)
			}
		})
	}
}

// TestTheStatusNamesTheJobOfAPostHookWhileTheAppIsUnhealthy: such a pass ends before the post hooks. A Job of another revision is not named.
func TestTheStatusNamesTheJobOfAPostHookWhileTheAppIsUnhealthy(t *testing.T) {
	b := withHooks()
	b.s.App.Spec.Hooks.Pre = nil
	post := planned(t, b, "one").next()
	for job, want := range map[string]bool{post: true, "of-another-revision": false} {
		b.s.App.Status.RunningHook = &v1alpha1.RunningHook{Job: job}
		planned(t, b, "one").Record(b.s.App, false)
		if running := b.s.App.Status.RunningHook; (running != nil) != want {
			t.Errorf("after a pass without post hooks, with %s as running: %+v", job, running)
		}
	}
	b.s.App.Status.RunningHook = &v1alpha1.RunningHook{Job: post}
	ended(b, planned(t, b, "one"), v1alpha1.HookSucceeded)
	if running := b.s.App.Status.RunningHook; running != nil {
		t.Errorf("after its end: %+v", running)
	}
}

// TestOnlyJobsOfOtherRevisionsAreDeleted: the Job of this revision stays for its log.
func TestOnlyJobsOfOtherRevisionsAreDeleted(t *testing.T) {
	b := newHookFixture(&v1alpha1.Hook{Name: "migrate"}, "", job("old", completed))
	present := b.failed(t, "", "")
	present.SetLabels(map[string]string{v1alpha1.AppLabel: "web"})
	b.h.Mark(present)
	if err := b.s.Client.Create(t.Context(), present.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	old := present.DeepCopy()
	old.SetName("old")
	old.SetUID("1")
	if err := b.plan.clear(t.Context(), b.s, []*unstructured.Unstructured{old, present}); err != nil {
		t.Fatal(err)
	}
	left := &batchv1.JobList{}
	if err := b.s.Client.List(t.Context(), left); err != nil || len(left.Items) != 1 || left.Items[0].Name != present.GetName() {
		t.Errorf("the remaining Jobs are %v, error %v", left.Items, err)
	}
}

func TestAJobThatCannotStartIsExplained(t *testing.T) {
	resource := schema.GroupResource{Group: "batch", Resource: "jobs"}
	down := errors.New("down")
	unguarded := apierrors.NewInvalid(schema.GroupKind{Group: "batch", Kind: "Job"}, "x", field.ErrorList{
		field.Forbidden(nil, "ValidatingAdmissionPolicy 'kubeop-guardrails-deny' with binding 'kubeop-guardrails-deny' denied request: "+
			"failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction"),
	})
	cases := map[string]struct {
		image  string
		admit  error
		create error
		want   string
	}{
		"the Job is not valid":   {"a/b", nil, apierrors.NewInvalid(schema.GroupKind{Group: "batch", Kind: "Job"}, "x", nil), `stopped PreHookFailed: making the Job of the pre hook migrate: Job.batch "x" is invalid`},
		"no image":               {"", nil, nil, "stopped PreHookFailed: pre hook migrate has no image: set it in app.yaml, unless the app is of type Image"},
		"it is not allowed":      {"a/b", down, nil, "failed Failed: pre hook migrate: down"},
		"the Job is gone":        {"a/b", nil, apierrors.NewAlreadyExists(resource, "x"), `failed PreHookFailed: reading the Job of the pre hook migrate: jobs.batch "web-migrate-15438896" not found`},
		"the name is taken":      {"taken", nil, apierrors.NewAlreadyExists(resource, "x"), "failed PreHookFailed: the name of the Job of the pre hook migrate is taken; an administrator of the cluster may run: kubectl delete job web-migrate-15438896 -n kubeop-a-b, after 15s"},
		"the Job is invalid":     {"a/b", nil, apierrors.NewBadRequest("bad"), "stopped PreHookFailed: making the Job of the pre hook migrate: bad"},
		"no guardrails are seen": {"a/b", nil, unguarded, "failed PreHookFailed: making the Job of the pre hook migrate: Job.batch \"x\" is invalid: <nil>: Forbidden: ValidatingAdmissionPolicy 'kubeop-guardrails-deny' with binding 'kubeop-guardrails-deny' denied request: failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction"},
		"the API server is down": {"a/b", nil, down, "failed PreHookFailed: making the Job of the pre hook migrate: down"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			b := newHookFixture(&v1alpha1.Hook{Name: "migrate", Image: c.image}, "")
			created := false
			if c.image == "taken" {
				another := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: b.s.App.Namespace, Name: b.h.Name()}}
				if err := b.s.Client.Create(t.Context(), another); err != nil {
					t.Fatal(err)
				}
			}
			b.s.Client = interceptor.NewClient(b.s.Client.(client.WithWatch), interceptor.Funcs{
				Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
					created = true
					return c.create
				},
			})
			err := b.start(t.Context(), b.s, b.plan, b.h, beginning{admit: func(*unstructured.Unstructured) error { return c.admit }})
			if got := steptest.Outcome(t, err); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if created != (c.create != nil) {
				t.Errorf("the Job was created: %t", created)
			}
			if b.seen.Get(b.s.App).running != "" {
				t.Error("a Job that was not created is recorded as running")
			}
		})
	}
}

// TestAJobIsTheHooksAlsoIfTheAnswerThatItWasMadeIsLost.
func TestAJobIsTheHooksAlsoIfTheAnswerThatItWasMadeIsLost(t *testing.T) {
	b := newHookFixture(&v1alpha1.Hook{Name: "migrate", Image: "a/b"}, "")
	b.s.Client = interceptor.NewClient(b.s.Client.(client.WithWatch), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if err := c.Create(ctx, o, opts...); err != nil {
				return err
			}
			return apierrors.NewAlreadyExists(schema.GroupResource{Group: "batch", Resource: "jobs"}, o.GetName()) // As for a request that is sent again.
		},
	})
	err := b.start(t.Context(), b.s, b.plan, b.h, beginning{admit: func(job *unstructured.Unstructured) error {
		job.SetLabels(map[string]string{v1alpha1.AppLabel: "web"})
		return nil
	}})
	if !step.Waits(err) || b.seen.Get(b.s.App).running != b.h.Name() {
		t.Errorf("error %v, running %q", err, b.seen.Get(b.s.App).running)
	}
}

func TestAJobIsMarkedAfterItWasAdmitted(t *testing.T) {
	b := newHookFixture(&v1alpha1.Hook{Name: "migrate", Image: "a/b"}, "")
	err := b.start(t.Context(), b.s, b.plan, b.h, beginning{admit: func(job *unstructured.Unstructured) error {
		job.SetLabels(map[string]string{v1alpha1.AppLabel: "web", v1alpha1.HookLabel: "forged"})
		return nil
	}})
	if !step.Waits(err) {
		t.Fatalf("error %v", err)
	}
	made := &unstructured.Unstructured{}
	made.SetGroupVersionKind(jobs.Kind)
	if err := b.s.Client.Get(t.Context(), client.ObjectKey{Namespace: "kubeop-a-b", Name: b.h.Name()}, made); err != nil {
		t.Fatal(err)
	}
	if !b.h.Is(made) || b.seen.Get(b.s.App).running != made.GetName() {
		t.Errorf("the Job has the labels %v", made.GetLabels())
	}
	b.Forget(b.s.App)
	if b.seen.Get(b.s.App).running != "" {
		t.Error("the run of a deleted app is still remembered")
	}
}

func TestASucceededHookHasNoMessage(t *testing.T) {
	b := newHookFixture(&v1alpha1.Hook{Name: "migrate"}, "a line of the log")
	done := b.failed(t, "", "")
	if err := unstructured.SetNestedSlice(done.Object, []any{map[string]any{"type": "Complete", "status": "True"}}, "status", "conditions"); err != nil {
		t.Fatal(err)
	}
	b.seen.Get(b.s.App).running = b.h.Name()
	if err := b.finish(t.Context(), b.s, b.plan, b.h, done); err != nil {
		t.Fatal(err)
	}
	if h := b.h.result; h.Result != v1alpha1.HookSucceeded || h.Message != "" || !b.h.fresh || h.FinishedAt.Time != b.s.Now() || h.Input != "0123" {
		t.Errorf("got %+v", h)
	}
	if b.plan.forced || b.seen.Get(b.s.App).running != "" {
		t.Error("a first run handled a request, or is still recorded as running")
	}
}
