package step

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/fluxcd/pkg/runtime/metrics"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/internal/fence"
)

// facts is a scope that records a revision.
type facts struct {
	app      *v1alpha1.App
	revision string
}

func (f *facts) Record()         { f.app.Status.LastAttemptedRevision = f.revision }
func (f *facts) Summary() string { return "Applied " + f.revision }

// fixture is a runner over a fake API server that counts status patches.
type fixture struct {
	*Runner
	events  *events.FakeRecorder
	app     *v1alpha1.App
	patches int
}

func newFixture(t *testing.T, app *v1alpha1.App) *fixture {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	b := &fixture{events: events.NewFakeRecorder(10)}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(app).WithStatusSubresource(app).
		WithInterceptorFuncs(interceptor.Funcs{
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
				b.patches++
				return c.SubResource(sub).Patch(ctx, o, p, opts...)
			},
		}).Build()
	b.Runner = &Runner{Client: c, Events: b.events, Clock: clocktesting.NewFakePassiveClock(time.Unix(0, 0))}
	b.read(t, app)
	return b
}

// TestDurationsAreByNamespace: what is measured of ten thousand apps is a series for each project, under Flux's name.
func TestDurationsAreByNamespace(t *testing.T) {
	durations := metrics.NewRecorder()
	for _, name := range []string{"web", "api"} {
		b := newFixture(t, web(func(a *v1alpha1.App) { a.Name = name }))
		b.Durations = durations
		if _, err := b.run(t, nil); err != nil {
			t.Fatal(err)
		}
	}
	series := make(chan prometheus.Metric, 10)
	for _, c := range durations.Collectors() {
		c.Collect(series)
	}
	if len(series) != 1 {
		t.Errorf("two apps of a namespace are %d series, want 1", len(series))
	}
}

func (b *fixture) read(t *testing.T, app *v1alpha1.App) {
	t.Helper()
	b.app = &v1alpha1.App{}
	if err := b.Client.Get(t.Context(), client.ObjectKeyFromObject(app), b.app); err != nil {
		t.Fatal(err)
	}
}

func (b *fixture) run(t *testing.T, outcomes ...error) (ctrl.Result, error) {
	t.Helper()
	f := &facts{app: b.app, revision: "main@sha1:1"}
	var steps []Step
	for i, err := range outcomes {
		name := []string{"First", "Second", "Third"}[i]
		steps = append(steps, Of(name, f, func(context.Context, *facts) error { return err }))
	}
	return b.Run(t.Context(), b.app, f, steps...)
}

func web(change ...func(*v1alpha1.App)) *v1alpha1.App {
	app := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-a-b", Name: "web", Generation: 3}}
	app.Status.ObservedGeneration = -1
	for _, c := range change {
		c(app)
	}
	return app
}

func TestRunStopsAtTheFirstStepThatDoesNotSucceed(t *testing.T) {
	broken := errors.New("the API server is away")
	cases := map[string]struct {
		outcomes []error
		// want are the conditions as "Type=Status Reason".
		want         []string
		message      string
		observed     int64
		after        time.Duration
		wantErr      error
		wantNoEvents bool
	}{
		"all succeed": {
			outcomes: []error{nil, nil}, observed: 3, after: 10 * time.Minute,
			want:    []string{"Ready=True Succeeded", "First=True Succeeded", "Second=True Succeeded"},
			message: "Applied main@sha1:1", wantNoEvents: true,
		},
		"one waits": {
			outcomes: []error{nil, Wait("NotYet", 3*time.Second, "waits for %s", "rain"), nil}, observed: -1, after: 3 * time.Second,
			want: []string{
				"Reconciling=True Progressing", "Ready=Unknown NotYet",
				"First=True Succeeded", "Second=Unknown NotYet", "Third=Unknown Progressing",
			},
			message: "waits for rain", wantNoEvents: true,
		},
		"one stops": {
			outcomes: []error{Stop("Wrong", errors.New("app.yaml:3: no")), nil}, observed: 3, after: 10 * time.Minute,
			want:    []string{"Stalled=True Wrong", "Ready=False Wrong", "First=False Wrong", "Second=Unknown Progressing"},
			message: "app.yaml:3: no",
		},
		"one fails with a reason": {
			outcomes: []error{Fail("Away", broken)}, observed: -1, wantErr: broken,
			want:    []string{"Reconciling=True ProgressingWithRetry", "Ready=False Away", "First=False Away"},
			message: broken.Error(),
		},
		"one fails without": {
			outcomes: []error{broken}, observed: -1, wantErr: broken,
			want:    []string{"Reconciling=True ProgressingWithRetry", "Ready=False Failed", "First=False Failed"},
			message: broken.Error(),
		},
		"one fails and is looked at again soon": {
			outcomes: []error{FailAfter("Unhealthy", 2*time.Second, broken)}, observed: -1, after: 2 * time.Second,
			want:    []string{"Reconciling=True ProgressingWithRetry", "Ready=False Unhealthy", "First=False Unhealthy"},
			message: broken.Error(),
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t, web())
			result, err := b.run(t, c.outcomes...)
			if !errors.Is(err, c.wantErr) || (c.wantErr == nil && err != nil) {
				t.Errorf("got error %v, want %v", err, c.wantErr)
			}
			if d := result.RequeueAfter - c.after; d < -c.after/10 || d > c.after/10 {
				t.Errorf("looks again after %s, want about %s", result.RequeueAfter, c.after)
			}
			b.read(t, b.app)
			if diff := cmp.Diff(c.want, conditionTexts(b.app)); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
			if got := conditions.GetMessage(b.app, v1alpha1.ReadyCondition); got != c.message {
				t.Errorf("Ready says %q, want %q", got, c.message)
			}
			if b.app.Status.ObservedGeneration != c.observed || b.app.Status.LastAttemptedRevision != "main@sha1:1" {
				t.Errorf("status is %+v", b.app.Status)
			}
			if got := len(b.events.Events) == 0; got != c.wantNoEvents {
				t.Errorf("%d events", len(b.events.Events))
			}
		})
	}
}

func conditionTexts(app *v1alpha1.App) []string {
	var all []string
	for _, c := range app.Status.Conditions {
		all = append(all, c.Type+"="+string(c.Status)+" "+c.Reason)
	}
	return all
}

func TestTheSameOutcomeTwiceIsOneWriteAndOneEvent(t *testing.T) {
	for name, outcome := range map[string]error{
		"well": nil, "stopped": Stop("Wrong", errors.New("no")), "waiting": Wait("NotYet", time.Second, "rain"),
		"failed": FailAfter("Away", time.Second, errors.New("no")),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newFixture(t, web())
			for range 3 {
				time.Sleep(1100 * time.Millisecond) // Transition times have seconds.
				if _, err := b.run(t, outcome); err != nil {
					t.Fatal(err)
				}
				b.read(t, b.app)
			}
			if b.patches != 1 || len(b.events.Events) > 1 {
				t.Errorf("%d status patches and %d events, want one of each at most", b.patches, len(b.events.Events))
			}
		})
	}
}

// notified is a scope that is notified when its status is written.
type notified struct {
	facts
	writes int
}

func (n *notified) StatusWritten() { n.writes++ }

// TestAScopeIsNotifiedOfAStatusThatWasWritten, and of none that was not.
func TestAScopeIsNotifiedOfAStatusThatWasWritten(t *testing.T) {
	b := newFixture(t, web())
	n := &notified{facts: facts{app: b.app, revision: "main@sha1:1"}}
	if _, err := b.Run(t.Context(), b.app, n); err != nil || n.writes != 1 {
		t.Errorf("notified %d times, want once; %v", n.writes, err)
	}
	down := errors.New("the API server is down")
	b.Client = interceptor.NewClient(b.Client.(client.WithWatch), interceptor.Funcs{
		SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
			return down
		},
	})
	n.revision = "main@sha1:2"
	if _, err := b.Run(t.Context(), b.app, n); !errors.Is(err, down) || n.writes != 1 {
		t.Errorf("notified %d times of a status that could not be written: %v", n.writes-1, err)
	}
}

func TestRetryIntervalReplacesTheBackoff(t *testing.T) {
	b := newFixture(t, web(func(a *v1alpha1.App) { a.Spec.RetryInterval = &metav1.Duration{Duration: 7 * time.Second} }))
	result, err := b.run(t, errors.New("away"))
	if err != nil || result.RequeueAfter != 7*time.Second {
		t.Errorf("got %+v and %v", result, err)
	}
}

func TestASuspendedObjectRunsNoStep(t *testing.T) {
	b := newFixture(t, web(func(a *v1alpha1.App) { a.Spec.Suspend = true }))
	for range 2 {
		result, err := b.run(t, errors.New("must not run"))
		if err != nil || !result.IsZero() || b.patches != 1 || len(b.app.Finalizers) != 0 {
			t.Errorf("got %+v, %v, %d patches, finalizers %v", result, err, b.patches, b.app.Finalizers)
		}
	}
	b.read(t, b.app)
	if len(b.app.Status.Conditions) != 1 || !conditions.IsTrue(b.app, v1alpha1.SuspendedCondition) {
		t.Errorf("the conditions are %v, want only Suspended", b.app.Status.Conditions)
	}
}

func TestReadySaysThatTheObjectIsSuspended(t *testing.T) {
	b := newFixture(t, web())
	if _, err := b.run(t, nil); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		b.app.Spec.Suspend = true
		if _, err := b.run(t, errors.New("must not run")); err != nil {
			t.Fatal(err)
		}
	}
	b.read(t, b.app)
	ready := conditions.Get(b.app, v1alpha1.ReadyCondition)
	if ready.Message != "Suspended; Applied main@sha1:1" || ready.Status != metav1.ConditionTrue || b.patches != 2 {
		t.Errorf("Ready is %+v after %d patches", ready, b.patches)
	}
}

func TestTheStatusRecordsTheRequestThatWasHandled(t *testing.T) {
	b := newFixture(t, web(func(a *v1alpha1.App) { a.Annotations = map[string]string{meta.ReconcileRequestAnnotation: "now"} }))
	if _, err := b.run(t, Wait("NotYet", time.Second, "rain")); err != nil {
		t.Fatal(err)
	}
	if got := b.app.Status.LastHandledReconcileAt; got != "now" {
		t.Errorf("answered %q, want %q", got, "now")
	}
}

// TestAReconcileKeepsTheVersionItBeganWith has the object change during a Reconcile, which then writes its status.
func TestAReconcileKeepsTheVersionItBeganWith(t *testing.T) {
	b := newFixture(t, web(func(a *v1alpha1.App) {
		a.Annotations, a.Finalizers = map[string]string{v1alpha1.RevisionAnnotation: "main@sha1:1"}, []string{v1alpha1.Finalizer}
	}))
	newer := b.app.DeepCopy()
	newer.Annotations[v1alpha1.RevisionAnnotation], newer.Spec.Suspend = "main@sha1:2", true
	if err := b.Client.Update(t.Context(), newer); err != nil {
		t.Fatal(err)
	}
	if _, err := b.run(t, nil); err != nil {
		t.Fatal(err)
	}
	if got := b.app.Annotations[v1alpha1.RevisionAnnotation]; got != "main@sha1:1" || b.app.Spec.Suspend {
		t.Errorf("after the status was written, the Reconcile is about %s, suspended: %t", got, b.app.Spec.Suspend)
	}
	b.read(t, b.app)
	if !conditions.IsReady(b.app) || b.app.Annotations[v1alpha1.RevisionAnnotation] != "main@sha1:2" {
		t.Errorf("the API server has %+v", b.app)
	}
}

func TestTheFinalizerStaysUntilWhatTheObjectMadeIsGone(t *testing.T) {
	leaving := func(a *v1alpha1.App) {
		a.DeletionTimestamp, a.Finalizers = &metav1.Time{Time: time.Unix(1, 0)}, []string{v1alpha1.Finalizer}
	}
	cases := map[string]struct {
		app     *v1alpha1.App
		outcome error
		gone    bool
	}{
		"what it made is gone":          {web(leaving), nil, true},
		"something is left":             {web(leaving), Wait(v1alpha1.DeletingReason, time.Second, "waits for x"), false},
		"suspended, it lets go at once": {web(leaving, func(a *v1alpha1.App) { a.Spec.Suspend = true }), errors.New("must not run"), true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t, c.app)
			f := &facts{app: b.app}
			if _, err := b.Finalize(t.Context(), b.app, f, Of("Removed", f, func(context.Context, *facts) error { return c.outcome })); err != nil {
				t.Fatal(err)
			}
			err := b.Client.Get(t.Context(), client.ObjectKeyFromObject(c.app), &v1alpha1.App{})
			if gone := client.IgnoreNotFound(err) == nil && err != nil; gone != c.gone {
				t.Errorf("gone is %t, want %t", gone, c.gone)
			}
			if message := conditions.GetMessage(b.app, v1alpha1.ReadyCondition); !c.gone && message != "waits for x" {
				t.Errorf("Ready says %q", message)
			}
		})
	}
}

// TestSuccessIsAnEventAfterAFailure says that an app works again. One that never failed has no event.
func TestSuccessIsAnEventAfterAFailure(t *testing.T) {
	b := newFixture(t, web())
	rain := Wait("NotYet", time.Second, "rain")
	for _, outcome := range []error{rain, nil, rain, nil, Stop("Wrong", errors.New("no")), rain, nil, rain, nil} {
		if _, err := b.run(t, outcome); err != nil {
			t.Fatal(err)
		}
		b.read(t, b.app)
	}
	if n := len(b.events.Events); n != 2 {
		t.Fatalf("%d events, want the failure and its end", n)
	}
	<-b.events.Events
	if got := <-b.events.Events; got != "Normal Succeeded Applied main@sha1:1" {
		t.Errorf("the second event says %q", got)
	}
}

func TestALongMessageIsCutForTheEvent(t *testing.T) {
	b := newFixture(t, web())
	if _, err := b.run(t, Stop("Wrong", errors.New(strings.Repeat("ä", 2000)))); err != nil {
		t.Fatal(err)
	}
	if got := <-b.events.Events; len(got) > 1024+100 || strings.ContainsRune(got, '\uFFFD') {
		t.Errorf("the event has %d bytes: %s", len(got), got)
	}
}

func TestAStopOfTheOperatorIsNoFailureOfTheObject(t *testing.T) {
	b := newFixture(t, web())
	if _, err := b.run(t, nil); err != nil {
		t.Fatal(err)
	}
	b.read(t, b.app)
	ctx, cancel := context.WithCancel(t.Context())
	f := &facts{app: b.app, revision: "main@sha1:2"}
	_, err := b.Run(ctx, b.app, f, Of("First", f, func(ctx context.Context, _ *facts) error { cancel(); return ctx.Err() }))
	if err != nil {
		t.Fatal(err)
	}
	b.read(t, b.app)
	if !conditions.IsReady(b.app) || b.app.Status.LastAttemptedRevision != "main@sha1:2" {
		t.Errorf("the status is %+v", b.app.Status)
	}
}

// TestAWriteRefusedByTheFenceIsNoFailureOfTheObject has a step be refused, and then the status: neither is reported, and both are tried
// again soon, without the queue's backoff.
func TestAWriteRefusedByTheFenceIsNoFailureOfTheObject(t *testing.T) {
	fenced := fmt.Errorf("ConfigMap/web: %w", &url.Error{Op: "Patch", URL: "https://api", Err: fence.ErrFenced})
	want := ctrl.Result{RequeueAfter: fencedPause}
	for name, outcome := range map[string]error{"a failure": fenced, "with a reason": Fail("Away", fenced)} {
		b := newFixture(t, web())
		if result, err := b.run(t, nil, outcome); result != want || err != nil {
			t.Errorf("%s: got %v, %v", name, result, err)
		}
		if len(b.app.Status.Conditions) > 0 || len(b.events.Events) > 0 {
			t.Errorf("%s: it is reported: %v", name, b.app.Status.Conditions)
		}
	}

	b := newFixture(t, web())
	b.Client = interceptor.NewClient(b.Client.(client.WithWatch), interceptor.Funcs{
		SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
			return fenced
		},
	})
	if result, err := b.run(t, nil); result != want || err != nil {
		t.Errorf("the status: got %v, %v", result, err)
	}
	b.app.Finalizers = []string{v1alpha1.Finalizer}
	f := &facts{app: b.app}
	if result, err := b.Finalize(t.Context(), b.app, f, Of("First", f, func(context.Context, *facts) error { return fenced })); result != want || err != nil {
		t.Errorf("a deletion: got %v, %v", result, err)
	}
}

// TestAWriteThatFailsIsTheErrorOfTheReconcile: the finalizer, the status, a checkpoint, and what a suspension and a deletion write.
func TestAWriteThatFailsIsTheErrorOfTheReconcile(t *testing.T) {
	away := errors.New("the API server is away")
	suspended := func(a *v1alpha1.App) { a.Spec.Suspend = true }
	until := func(a *v1alpha1.App) {
		a.Annotations = map[string]string{v1alpha1.SuspendAnnotation: "1970-01-01T01:00:00Z"}
	}
	held := func(a *v1alpha1.App) { a.Finalizers = []string{v1alpha1.Finalizer} }
	leaving := func(a *v1alpha1.App) {
		a.DeletionTimestamp, a.Finalizers = &metav1.Time{Time: time.Unix(1, 0)}, []string{v1alpha1.Finalizer}
	}
	run := func(b *fixture, f *facts) (ctrl.Result, error) {
		return b.Run(t.Context(), b.app, f, Of("First", f, func(context.Context, *facts) error { return nil }))
	}
	for name, c := range map[string]struct {
		app *v1alpha1.App
		do  func(*fixture, *facts) (ctrl.Result, error)
		// says is how the error begins.
		says string
	}{
		"the finalizer":                    {web(), run, "adding the finalizer: "},
		"the status":                       {web(held), run, "writing the status: "},
		"a suspension":                     {web(held, suspended), run, "writing the status: "},
		"a suspension for a time":          {web(held, until), run, "writing the status: "},
		"a deletion":                       {web(leaving), func(b *fixture, f *facts) (ctrl.Result, error) { return b.Finalize(t.Context(), b.app, f) }, "taking the finalizer off: "},
		"a deletion of what was suspended": {web(leaving, suspended), func(b *fixture, f *facts) (ctrl.Result, error) { return b.Finalize(t.Context(), b.app, f) }, "taking the finalizer off: "},
		"a checkpoint": {web(held), func(b *fixture, f *facts) (ctrl.Result, error) {
			return b.Run(t.Context(), b.app, f, Of("First", f, func(ctx context.Context, f *facts) error {
				f.revision = "main@sha1:3"
				if err := Checkpoint(ctx); err != nil {
					return fmt.Errorf("before the step goes on: %w", err)
				}
				return nil
			}))
		}, "writing the status: "},
	} {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t, c.app)
			b.Client = interceptor.NewClient(b.Client.(client.WithWatch), interceptor.Funcs{
				Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
					return away
				},
				SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
					return away
				},
			})
			if result, err := c.do(b, &facts{app: b.app}); !errors.Is(err, away) || !strings.HasPrefix(err.Error(), c.says) || name == "a checkpoint" && !strings.Contains(err.Error(), "before the step goes on") {
				t.Errorf("got %v, %v", result, err)
			}
			if got := b.eventTexts(); got != "" {
				t.Errorf("the events of what was not written are %q", got)
			}
		})
	}
}

func TestAnObjectThatWentMeanwhileIsNoError(t *testing.T) {
	b := newFixture(t, web())
	if err := b.Client.Delete(t.Context(), b.app.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	if result, err := b.run(t, errors.New("must not run")); err != nil || result != (ctrl.Result{}) {
		t.Errorf("got %v, %v", result, err)
	}
}

func TestTheFinalizerIsWrittenOnce(t *testing.T) {
	b, writes := newFixture(t, web()), 0
	b.Client = interceptor.NewClient(b.Client.(client.WithWatch), interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			writes++
			return c.Patch(ctx, o, p, opts...)
		},
	})
	for range 2 {
		if _, err := b.run(t, nil); err != nil {
			t.Fatal(err)
		}
	}
	if b.read(t, b.app); writes != 1 || len(b.app.Finalizers) != 1 {
		t.Errorf("%d writes, finalizers %v", writes, b.app.Finalizers)
	}
}

func TestACheckpointOutsideOfARunWritesNothing(t *testing.T) {
	if err := Checkpoint(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestSuccessAndSuspensionEndReconciling(t *testing.T) {
	for name, c := range map[string]struct {
		suspend bool
		want    []string
	}{
		"success": {false, []string{"Ready=True Succeeded", "First=True Succeeded"}}, "a suspension": {true, []string{"Ready=False Away", "First=False Away", "Suspended=True Suspended"}},
	} {
		b := newFixture(t, web())
		if _, err := b.run(t, FailAfter("Away", time.Second, errors.New("no answer"))); err != nil || !conditions.IsReconciling(b.app) {
			t.Fatalf("%v: %v", err, conditionTexts(b.app))
		}
		b.app.Spec.Suspend = c.suspend
		if _, err := b.run(t, nil); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, conditionTexts(b.app)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestACheckpointIsThereBeforeTheStepGoesOn(t *testing.T) {
	b := newFixture(t, web())
	f := &facts{app: b.app}
	_, err := b.Run(t.Context(), b.app, f, Of("First", f, func(ctx context.Context, f *facts) error {
		f.revision = "main@sha1:3"
		newer := b.app.DeepCopy()
		newer.Generation = 4
		if err := b.Client.Update(ctx, newer); err != nil {
			return err
		}
		if err := Checkpoint(ctx); err != nil {
			return err
		}
		seen := &v1alpha1.App{}
		if err := b.Client.Get(ctx, client.ObjectKeyFromObject(b.app), seen); err != nil {
			return err
		}
		if seen.Status.LastAttemptedRevision != "main@sha1:3" || len(seen.Status.Conditions) != 0 {
			t.Errorf("the status is %+v", seen.Status)
		}
		if b.app.Generation != 3 {
			t.Errorf("the object in hand became generation %d, want 3", b.app.Generation)
		}
		return nil
	}))
	if err != nil || b.patches != 2 {
		t.Errorf("%d patches, %v", b.patches, err)
	}
	b.read(t, b.app)
	if !conditions.IsReady(b.app) || b.app.Status.ObservedGeneration != 3 {
		t.Errorf("the status is %+v", b.app.Status)
	}
}

func TestTheFirstStepThatDoesNotSucceedSetsASharedCondition(t *testing.T) {
	b := newFixture(t, web())
	f := &facts{app: b.app}
	ends := func(err error) func(context.Context, *facts) error {
		return func(context.Context, *facts) error { return err }
	}
	if _, err := b.Run(t.Context(), b.app, f, Of("First", f, ends(Stop("Wrong", errors.New("no")))), Of("Second", f, ends(nil)), Of("First", f, ends(nil))); err != nil {
		t.Fatal(err)
	}
	b.read(t, b.app)
	want := []string{"Stalled=True Wrong", "Ready=False Wrong", "First=False Wrong", "Second=Unknown Progressing"}
	if diff := cmp.Diff(want, conditionTexts(b.app)); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
	broken := GoOn(Stop("Away", errors.New("no")))
	if _, err := b.Run(t.Context(), b.app, f, Of("Third", f, ends(broken)), Of("First", f, ends(Stop("Wrong", errors.New("no")))), Of("Third", f, ends(nil))); err != nil {
		t.Fatal(err)
	}
	if reason := conditions.GetReason(b.app, "Third"); reason != "Away" {
		t.Errorf("what a step said before another one stopped has the reason %s", reason)
	}
}
