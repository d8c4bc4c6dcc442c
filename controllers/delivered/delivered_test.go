package delivered

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

const namespace = "kubeop-acme-shop"

var (
	one, two, three = strings.Repeat("1", 40), strings.Repeat("2", 40), strings.Repeat("3", 40)
	start           = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
)

// project has apps whose statuses a test writes.
type project struct {
	t        *testing.T
	reporter Reporter
	apps     map[string]*v1alpha1.App
	now      time.Time
	away     error
}

// newProject has apps that delivered the first commit, before the operator started.
func newProject(t *testing.T, names ...string) *project {
	t.Helper()
	p := &project{t: t, apps: map[string]*v1alpha1.App{}, now: start}
	for _, name := range names {
		p.declare(name, one)
		p.deliver(name, one, v1alpha1.DeliverySucceeded)
	}
	p.want()
	p.pass(time.Minute)
	return p
}

func (p *project) pass(d time.Duration) { p.now = p.now.Add(d) }

// declare has a commit change an app.
func (p *project) declare(name, commit string) *v1alpha1.App {
	app := p.apps[name]
	if app == nil {
		app = &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(name)}}
		p.apps[name] = app
	}
	app.Generation++
	app.Annotations = map[string]string{v1alpha1.RevisionAnnotation: "main@sha1:" + commit}
	return app
}

// deliver records how the newest delivery of an app ends, or is going on.
func (p *project) deliver(name, commit, result string, with ...func(*v1alpha1.DeliveryRecord)) {
	app := p.apps[name]
	ended := metav1.NewTime(p.now)
	d := v1alpha1.DeliveryRecord{Revision: "main@sha1:" + commit, Commit: commit, Author: "Ann", Generation: app.Generation, Result: result,
		StartedAt: metav1.NewTime(p.now.Add(-12 * time.Second)), FinishedAt: &ended}
	app.Status.ObservedGeneration = app.Generation
	for _, f := range with {
		f(&d)
	}
	app.Status.Deliveries = append([]v1alpha1.DeliveryRecord{d}, app.Status.Deliveries...)
}

// end ends the newest delivery of an app.
func (p *project) end(name, result string) {
	d := &p.apps[name].Status.Deliveries[0]
	ended := metav1.NewTime(p.now)
	d.Result, d.FinishedAt = result, &ended
}

func (p *project) look() (*Report, error) {
	p.t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		p.t.Fatal(err)
	}
	var objects []client.Object
	for _, app := range p.apps {
		objects = append(objects, app.DeepCopy())
	}
	reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, o ...client.ListOption) error {
			return errors.Join(p.away, c.List(ctx, list, o...))
		},
	}).Build()
	return p.reporter.Look(p.t.Context(), reader, "shop", namespace, p.now)
}

// want compares the events of a Reconcile whose status is written; it returns when the next one is wanted.
func (p *project) want(events ...string) time.Duration {
	p.t.Helper()
	report, err := p.look()
	if err != nil {
		p.t.Fatal(err)
	}
	var got []string
	for _, n := range report.Notes {
		if n.Condition != "" || n.Event != "Normal" || n.Reason != "Delivered" {
			p.t.Errorf("note %+v", n)
		}
		got = append(got, n.Message)
	}
	if diff := cmp.Diff(events, got); diff != "" {
		p.t.Errorf("events (-want +got):\n%s", diff)
	}
	report.Sent()
	return report.Again
}

func TestACommitIsOneEventOnceAllItsAppsAreDone(t *testing.T) {
	p := newProject(t, "api", "db", "web")
	for _, name := range []string{"api", "web"} {
		p.declare(name, two)
	}
	p.deliver("api", two, v1alpha1.DeliverySucceeded)
	if again := p.want(); again != patience {
		t.Errorf("kept back for %s", again)
	}
	p.deliver("web", two, v1alpha1.DeliveryProgressing)
	p.want()
	p.pass(20 * time.Second)
	p.end("web", v1alpha1.DeliverySucceeded)
	if again := p.want("Delivered 22222222 by Ann within 32s: 2 apps: api, web"); again != 0 {
		t.Errorf("again after %s", again)
	}
	p.want()
}

func TestTheEventSaysWhatWasDeliveredAndWhatWasNot(t *testing.T) {
	p := newProject(t, "api", "broken", "chart", "image", "paused", "refused", "stopped")
	for name := range p.apps {
		p.declare(name, two)
	}
	ready := metav1.Condition{Type: v1alpha1.ReadyCondition, Status: metav1.ConditionFalse, Reason: "NotAllowed"}
	p.apps["refused"].Status.Conditions, p.apps["refused"].Status.ObservedGeneration = []metav1.Condition{ready}, 2
	p.apps["stopped"].Spec.Suspend = true
	p.apps["paused"].Status.Conditions = []metav1.Condition{{Type: v1alpha1.SuspendedCondition, Status: metav1.ConditionTrue}} // By the annotation.
	p.deliver("api", two, v1alpha1.DeliverySucceeded)
	p.deliver("broken", two, v1alpha1.DeliveryFailed, func(d *v1alpha1.DeliveryRecord) { d.Reason = "Unhealthy" })
	p.deliver("chart", two, v1alpha1.DeliverySucceeded, func(d *v1alpha1.DeliveryRecord) { d.Revision, d.Release = "1.2.3", 4 })
	p.deliver("image", two, v1alpha1.DeliverySucceeded, func(d *v1alpha1.DeliveryRecord) {
		d.Image = "registry.example.com/shop/web:1.7@sha256:" + strings.Repeat("a", 64)
	})
	p.want("Delivered 22222222 by Ann within 12s: 3 of 7 apps: api, chart (1.2.3, release 4), image (image registry.example.com/shop/web:1.7@sha256:aaaaaaaa); " +
		"not delivered: broken (Unhealthy), paused (suspended), refused (NotAllowed), stopped (suspended)")
	p.pass(time.Minute)
	p.end("broken", v1alpha1.DeliverySucceeded)
	p.want("Delivered 22222222 by Ann within 1m12s: 1 of 4 apps: broken; not delivered: paused (suspended), refused (NotAllowed), stopped (suspended)")
}

// TestAFailureOfTheLastSpecDoesNotCountForTheCommit: the app has not read the commit yet, so the event waits for it.
func TestAFailureOfTheLastSpecDoesNotCountForTheCommit(t *testing.T) {
	p := newProject(t, "api", "late")
	p.apps["late"].Status.Conditions = []metav1.Condition{{Type: v1alpha1.ReadyCondition, Status: metav1.ConditionFalse, Reason: "Unhealthy"}}
	p.declare("api", two)
	p.declare("late", two)
	p.deliver("api", two, v1alpha1.DeliverySucceeded)
	if again := p.want(); again != patience {
		t.Errorf("kept back for %s, want %s", again, patience)
	}
	p.deliver("late", two, v1alpha1.DeliverySucceeded)
	p.want("Delivered 22222222 by Ann within 12s: 2 apps: api, late")
}

func TestAnAppAtWorkDoesNotKeepBackTheEventForEver(t *testing.T) {
	p := newProject(t, "api", "web")
	p.declare("api", two)
	p.declare("web", two)
	p.deliver("api", two, v1alpha1.DeliverySucceeded)
	p.pass(9 * time.Minute)
	if again := p.want(); again != time.Minute {
		t.Errorf("kept back for %s", again)
	}
	p.pass(time.Minute)
	p.want("Delivered 22222222 by Ann within 12s: 1 of 2 apps: api; not delivered: web (Progressing)")
}

func TestAnAppWithNothingToDeliverOfTheCommitDelaysItLittle(t *testing.T) {
	p := newProject(t, "api", "other")
	p.declare("api", two)
	p.declare("other", two).Generation-- // A comment in its file.
	p.deliver("api", two, v1alpha1.DeliverySucceeded)
	if again := p.want(); again != unmoved {
		t.Errorf("kept back for %s", again)
	}
	p.pass(unmoved)
	p.want("Delivered 22222222 by Ann within 12s: 1 app: api")
}

func TestEachCommitHasItsEventHoweverQuicklyTheyFollow(t *testing.T) {
	p := newProject(t, "api", "web")
	for _, commit := range []string{two, three} {
		p.declare("api", commit)
		p.deliver("api", commit, v1alpha1.DeliverySucceeded)
		p.pass(time.Second)
	}
	p.declare("web", two)
	if again := p.want("Delivered 33333333 by Ann within 12s: 1 app: api"); again == 0 {
		t.Error("the event of the commit before is not kept back")
	}
	p.deliver("web", two, v1alpha1.DeliverySucceeded)
	p.want("Delivered 22222222 by Ann within 14s: 2 apps: api, web")
	p.want()
}

func TestADeliveryWithoutACommitIsNamedByItsRevision(t *testing.T) {
	p := newProject(t, "chart")
	p.declare("chart", "").Annotations = nil
	p.deliver("chart", "", v1alpha1.DeliverySucceeded, func(d *v1alpha1.DeliveryRecord) { d.Revision, d.Author, d.Release = "1.2.3", "", 2 })
	p.want("Delivered 1.2.3 within 12s: 1 app: chart (release 2)")
}

func TestARestartRepeatsNoEvent(t *testing.T) {
	p := newProject(t, "api")
	p.declare("api", two)
	p.deliver("api", two, v1alpha1.DeliveryProgressing)
	p.reporter.Forget("shop")
	p.want()
	p.end("api", v1alpha1.DeliverySucceeded)
	p.want("Delivered 22222222 by Ann within 12s: 1 app: api")
	p.reporter.Forget("shop")
	p.want()
}

func TestAnEventThatWasNotSentComesAgain(t *testing.T) {
	p := newProject(t, "api")
	p.declare("api", two)
	p.deliver("api", two, v1alpha1.DeliverySucceeded)
	if report, err := p.look(); err != nil || len(report.Notes) != 1 {
		t.Errorf("got %+v, %v", report, err)
	}
	p.want("Delivered 22222222 by Ann within 12s: 1 app: api")
}

func TestTheEventIsShortHoweverManyApps(t *testing.T) {
	var names []string
	for i := range 500 {
		names = append(names, fmt.Sprintf("app-%03d", i))
	}
	p := newProject(t, names...)
	for _, name := range names {
		p.declare(name, two)
		p.deliver(name, two, v1alpha1.DeliverySucceeded, func(d *v1alpha1.DeliveryRecord) { d.Author = strings.Repeat("ä", 300) })
	}
	p.want("Delivered 22222222 by " + strings.Repeat("ä", 59) + "… within 12s: 500 apps: " + strings.Join(names[:8], ", ") + ", and 492 more")
}

func TestAFailedListIsAnError(t *testing.T) {
	p := newProject(t)
	p.away = errors.New("the API server is away")
	if report, err := p.look(); !errors.Is(err, p.away) || report != nil {
		t.Errorf("got %+v, %v", report, err)
	}
}

func TestOnlyWhatBeginsOrEndsADeliveryWakes(t *testing.T) {
	record := v1alpha1.DeliveryRecord{Revision: "1", StartedAt: metav1.NewTime(start), Result: v1alpha1.DeliveryProgressing}
	ended, other := record, record
	ended.Result, other.Revision = v1alpha1.DeliverySucceeded, "2"
	app := func(all ...v1alpha1.DeliveryRecord) *v1alpha1.App {
		return &v1alpha1.App{Status: v1alpha1.AppStatus{Deliveries: all}}
	}
	for name, c := range map[string]struct {
		was, is *v1alpha1.App
		want    bool
	}{
		"nothing":      {app(), app(), false},
		"the first":    {app(), app(record), true},
		"the same":     {app(record), app(record), false},
		"its end":      {app(record), app(ended), true},
		"the next one": {app(ended), app(other, ended), true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Changed.Update(event.UpdateEvent{ObjectOld: c.was, ObjectNew: c.is}); got != c.want {
				t.Errorf("got %t, want %t", got, c.want)
			}
		})
	}
}
