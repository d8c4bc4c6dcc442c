package history

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/app/subject"
	"github.com/kubeop/kubeop/controllers/step"
)

var (
	one, two = strings.Repeat("1", 40), strings.Repeat("2", 40)
	began    = time.Unix(1000, 0)
)

// fixture passes one App through Reconciles.
type fixture struct {
	t        *testing.T
	keeper   Keeper
	app      *v1alpha1.App
	clock    *clocktesting.FakePassiveClock
	subjects subject.Subjects
}

func newFixture(t *testing.T) *fixture {
	clock := clocktesting.NewFakePassiveClock(began)
	return &fixture{t: t, clock: clock, subjects: subject.Subjects{Clock: clock}, app: &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{UID: "1", Generation: 1}}}
}

// declare sets the commit that declares the App.
func (b *fixture) declare(hash, author string) {
	b.app.Annotations = map[string]string{v1alpha1.RevisionAnnotation: "main@sha1:" + hash, v1alpha1.AuthorAnnotation: author}
}

// pass is one Reconcile, some seconds after the last one, whose last step ends with err.
func (b *fixture) pass(after int, source Source, err error) {
	b.clock.SetTime(b.clock.Now().Add(time.Duration(after) * time.Second))
	d := b.keeper.Begin(b.app)
	d.Ended(nil)
	d.Ended(err)
	d.Record(b.subjects.New(b.app), source, err == nil)
	d.Written()
}

// seen are the deliveries of the status, each as a line.
func (b *fixture) seen() []string {
	var all []string
	for _, d := range b.app.Status.Deliveries {
		line := fmt.Sprintf("%s %s %s", d.Revision, d.Result, d.Reason)
		if d.Duration != nil {
			line += d.Duration.Duration.String()
		}
		all = append(all, line)
	}
	return all
}

func (b *fixture) want(deliveries ...string) {
	b.t.Helper()
	if diff := cmp.Diff(deliveries, b.seen()); diff != "" {
		b.t.Errorf("deliveries (-want +got):\n%s", diff)
	}
}

var (
	waits     = step.Wait(v1alpha1.ProgressingReason, time.Second, "0 of 1 pods")
	unhealthy = step.Fail(v1alpha1.UnhealthyReason, errors.New("crashes"))
)

func TestADeliveryIsRecordedOnceWithItsAuthorAndDuration(t *testing.T) {
	b := newFixture(t)
	b.declare(one, "Ann")
	source := Source{Revision: "main@sha1:" + one}
	b.pass(0, source, waits)
	b.want("main@sha1:" + one + " Progressing ")
	for range 3 {
		b.pass(12, source, nil)
	}
	b.pass(1, source, unhealthy) // It succeeded; that it crashes later is not about this delivery.
	b.want("main@sha1:" + one + " Succeeded 12s")
	finished := metav1.NewTime(began.Add(12 * time.Second))
	want := v1alpha1.DeliveryRecord{
		Revision: source.Revision, Generation: 1, Commit: one, Author: "Ann", StartedAt: metav1.NewTime(began), FinishedAt: &finished,
		Duration: &metav1.Duration{Duration: 12 * time.Second}, Result: v1alpha1.DeliverySucceeded,
	}
	if diff := cmp.Diff(want, b.app.Status.Deliveries[0]); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestAFailedDeliveryMaySucceedInTheEnd(t *testing.T) {
	b := newFixture(t)
	source := Source{Revision: "1.2.3", Release: 1}
	b.pass(0, source, unhealthy)
	b.pass(60, source, unhealthy)
	b.want("1.2.3 Failed Unhealthy0s")
	b.pass(1, source, waits)
	b.want("1.2.3 Failed Unhealthy0s")
	source.Release = 2
	b.pass(1, source, nil)
	b.want("1.2.3 Succeeded 1m2s")
	if release := b.app.Status.Deliveries[0].Release; release != 2 {
		t.Errorf("it is release %d, want 2", release)
	}
}

// TestARestartRepeatsNoDelivery: the status has them.
func TestARestartRepeatsNoDelivery(t *testing.T) {
	b := newFixture(t)
	for _, revision := range []string{"1.0.0", "1.0.1"} {
		b.pass(1, Source{Revision: revision}, nil)
	}
	b.keeper = Keeper{}
	b.pass(12, Source{Revision: "1.0.1"}, nil)
	b.want("1.0.1 Succeeded 0s", "1.0.0 Succeeded 0s")
}

func TestAFailedDeliveryStaysBesideTheNext(t *testing.T) {
	b := newFixture(t)
	b.pass(0, Source{Revision: "1.0.0"}, unhealthy)
	b.pass(1, Source{Revision: "1.0.1"}, waits)
	b.want("1.0.1 Progressing ", "1.0.0 Failed Unhealthy0s")
}

// TestTheFirstFailureOfAReconcileIsTheReason, also if the steps after it go on and all is done.
func TestTheFirstFailureOfAReconcileIsTheReason(t *testing.T) {
	b := newFixture(t)
	d := b.keeper.Begin(b.app)
	d.Ended(step.GoOn(step.Stop(v1alpha1.PreHookFailedReason, errors.New("no"))))
	d.Ended(unhealthy)
	d.Record(b.subjects.New(b.app), Source{Revision: "1.0.0"}, true)
	b.want("1.0.0 Failed PreHookFailed0s")
}

func TestANewSourceOrSpecIsAnotherDelivery(t *testing.T) {
	first := Source{Revision: "main@sha1:" + one, Author: "Ann", Image: "r.example/web:v1", Release: 1}
	for name, c := range map[string]struct {
		change func(*fixture, *Source)
		want   int
	}{
		"nothing":             {func(*fixture, *Source) {}, 1},
		"another commit":      {func(_ *fixture, s *Source) { s.Revision = "main@sha1:" + two }, 2},
		"another spec":        {func(b *fixture, _ *Source) { b.app.Generation++ }, 2},
		"another image":       {func(_ *fixture, s *Source) { s.Image = "r.example/web:v2" }, 2},
		"an upgrade":          {func(_ *fixture, s *Source) { s.Release++ }, 2},
		"an unknown revision": {func(_ *fixture, s *Source) { s.Revision = "" }, 1},
		"an upgrade of what the status has as applied": {func(b *fixture, s *Source) {
			b.app.Status.LastAppliedRevision, b.app.Status.ObservedGeneration = s.Revision, b.app.Generation
			b.app.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ReadyCondition, Status: metav1.ConditionTrue}}
			s.Release++
		}, 2},
		"a cache that is late": {func(b *fixture, _ *Source) { b.app.Status.Deliveries = nil }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			b, source := newFixture(t), first
			b.pass(0, source, nil)
			c.change(b, &source)
			b.pass(1, source, nil)
			if len(b.app.Status.Deliveries) != c.want {
				t.Errorf("%d deliveries: %v, want %d", len(b.app.Status.Deliveries), b.seen(), c.want)
			}
		})
	}
}

// TestALateCacheRepeatsNoDelivery: the App is read as it was before the last delivery was recorded.
func TestALateCacheRepeatsNoDelivery(t *testing.T) {
	b := newFixture(t)
	b.pass(0, Source{Revision: "1.0.0"}, nil)
	before := b.app.Status.Deliveries
	b.pass(10, Source{Revision: "1.0.1"}, waits)
	b.app.Status.Deliveries = before
	b.pass(10, Source{Revision: "1.0.1"}, nil)
	b.want("1.0.1 Succeeded 10s", "1.0.0 Succeeded 0s")
	b.app.Status.Deliveries = before
	b.pass(10, Source{Revision: "1.0.1"}, unhealthy)
	b.want("1.0.1 Succeeded 10s", "1.0.0 Succeeded 0s")
}

func TestTheCommitIsThatOfTheSourceOrOfTheApp(t *testing.T) {
	for name, c := range map[string]struct {
		source         Source
		commit, author string
	}{
		"its own folder": {Source{Revision: "main@sha1:" + one}, one, "Ann"},
		"a Git source":   {Source{Revision: "main@sha1:" + two, Author: "Bob"}, two, "Bob"},
		"a chart":        {Source{Revision: "1.2.3"}, one, "Ann"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t)
			b.declare(one, "Ann")
			b.pass(0, c.source, nil)
			if d := b.app.Status.Deliveries[0]; d.Commit != c.commit || d.Author != c.author {
				t.Errorf("commit %s by %s", d.Commit, d.Author)
			}
		})
	}
}

// TestAnOlderAppGetsNoDeliveryForWhatRuns: after an upgrade of kubeop, nothing is delivered anew.
func TestAnOlderAppGetsNoDeliveryForWhatRuns(t *testing.T) {
	b := newFixture(t)
	source := Source{Revision: "main@sha1:" + one}
	b.app.Status.LastAppliedRevision, b.app.Status.ObservedGeneration = source.Revision, 1
	b.app.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ReadyCondition, Status: metav1.ConditionTrue}}
	b.pass(0, source, nil)
	b.want()
	source.Revision = "main@sha1:" + two
	b.pass(0, source, nil)
	b.want(source.Revision + " Succeeded 0s")
	for name, change := range map[string]func(*v1alpha1.App){
		"a new spec":         func(a *v1alpha1.App) { a.Generation = 2 },
		"it was never ready": func(a *v1alpha1.App) { a.Status.Conditions = nil },
	} {
		b := newFixture(t)
		source := Source{Revision: "main@sha1:" + one}
		b.app.Status.LastAppliedRevision, b.app.Status.ObservedGeneration = source.Revision, 1
		b.app.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ReadyCondition, Status: metav1.ConditionTrue}}
		change(b.app)
		if b.pass(0, source, nil); len(b.seen()) != 1 {
			t.Errorf("%s: %q", name, b.seen())
		}
	}
}

// TestAnotherCommitOfTheAppIsAnotherDelivery, although the revision of its chart is the same.
func TestAnotherCommitOfTheAppIsAnotherDelivery(t *testing.T) {
	b := newFixture(t)
	for _, hash := range []string{one, two} {
		b.declare(hash, "Ann")
		b.pass(1, Source{Revision: "1.2.3"}, nil)
	}
	b.want("1.2.3 Succeeded 0s", "1.2.3 Succeeded 0s")
}

func TestTenDeliveriesAreKept(t *testing.T) {
	b := newFixture(t)
	for i := range 15 {
		b.pass(1, Source{Revision: fmt.Sprintf("1.0.%d", i)}, nil)
	}
	if got := b.seen(); len(got) != kept || got[0] != "1.0.14 Succeeded 0s" || got[9] != "1.0.5 Succeeded 0s" {
		t.Errorf("got %v", got)
	}
}

func TestAForgottenAppBeginsAnew(t *testing.T) {
	b := newFixture(t)
	b.pass(0, Source{Revision: "1.0.0"}, nil)
	b.keeper.Forget(b.app)
	b.app.Status.Deliveries = nil
	b.pass(0, Source{Revision: "1.0.1"}, nil)
	b.want("1.0.1 Succeeded 0s")
}

func TestOnlyFailuresOfReadyCount(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"a wait":                {waits, ""},
		"left out":              {step.Skip(), ""},
		"a source that is away": {step.Degrade(unhealthy), ""},
		"a failure":             {unhealthy, "Unhealthy"},
		"a stop":                {step.Stop(v1alpha1.NotAllowedReason, errors.New("no")), "NotAllowed"},
		"a hook that may fail":  {step.GoOn(step.Stop(v1alpha1.PreHookFailedReason, errors.New("no"))), "PreHookFailed"},
	} {
		d := &Deliveries{}
		if d.Ended(c.err); d.failed != c.want {
			t.Errorf("%s: got %q, want %q", name, d.failed, c.want)
		}
	}
}
