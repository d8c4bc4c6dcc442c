package rollup

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
)

const namespace = "kubeop-acme-shop"

func app(name string, status metav1.ConditionStatus, reason, message string) *v1alpha1.App {
	a := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"owner": "shop"}}}
	if status != "" {
		a.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ReadyCondition, Status: status, Reason: reason, Message: message}}
	}
	return a
}

func ready(name string) *v1alpha1.App { return app(name, metav1.ConditionTrue, "Succeeded", "") }

func waiting(name string) *v1alpha1.App {
	return app(name, metav1.ConditionUnknown, "Progressing", "1 of 3 pods")
}

func broken(name, why string) *v1alpha1.App {
	return app(name, metav1.ConditionFalse, "Unhealthy", why)
}

func reader(t *testing.T, fault error, apps ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(apps...).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, o ...client.ListOption) error {
			return errors.Join(fault, c.List(ctx, list, o...))
		},
	}).Build()
}

func TestTheFirstUnhealthyAppIsNamed(t *testing.T) {
	cases := map[string]struct {
		apps   []client.Object
		want   step.Note
		column string
	}{
		"none":          {nil, step.Note{}, "0/0"},
		"all are ready": {[]client.Object{ready("a"), ready("b")}, step.Note{Status: "True", Reason: "Succeeded"}, "2/2"},
		"one is new": {[]client.Object{app("a", "", "", ""), ready("b")},
			step.Note{Status: "Unknown", Reason: "Progressing", Message: "1 of 2 apps are not ready; shop/a: Progressing"}, "1/2"},
		"one of one is in progress": {[]client.Object{waiting("a")},
			step.Note{Status: "Unknown", Reason: "Progressing", Message: "1 of 1 app is not ready; shop/a: Progressing"}, "0/1"},
		"a broken one before one in progress": {[]client.Object{waiting("a"), broken("c", "Deployment/c: crashes"), broken("d", "too"), ready("e")},
			step.Note{Status: "False", Reason: "AppsNotReady", Message: "3 of 4 apps are not ready; shop/c: Unhealthy: Deployment/c: crashes"}, "1/4"},
		"by name among equals": {[]client.Object{broken("b", "second"), broken("a", "first")},
			step.Note{Status: "False", Reason: "AppsNotReady", Message: "2 of 2 apps are not ready; shop/a: Unhealthy: first"}, "0/2"},
		"a long message of several lines": {[]client.Object{broken("a", strings.Repeat("ä", 300)+"\nmore")},
			step.Note{Status: "False", Reason: "AppsNotReady", Message: "1 of 1 app is not ready; shop/a: Unhealthy: " + strings.Repeat("ä", 199) + "…"}, "0/1"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			apps, elsewhere := &Apps{}, broken("other", "elsewhere")
			elsewhere.Namespace = "kubeop-beta-shop"
			if err := apps.Count(t.Context(), reader(t, nil, append(c.apps, elsewhere)...), namespace, "shop/"); err != nil {
				t.Fatal(err)
			}
			c.want.Condition = v1alpha1.AppsReadyCondition
			if diff := cmp.Diff(c.want, apps.Note()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			counts := v1alpha1.AppCounts{}
			apps.Record(&counts)
			if counts.AppsReady != c.column || counts.Apps != len(c.apps) || counts.ReadyApps != apps.Ready {
				t.Errorf("recorded %+v, want %s", counts, c.column)
			}
		})
	}
}

func TestAFailedListOfAppsIsAnError(t *testing.T) {
	away := errors.New("the API server is away")
	if err := new(Apps).Count(t.Context(), reader(t, away), namespace, ""); !errors.Is(err, away) {
		t.Errorf("got %v", err)
	}
}

// TestOnlyWhatIsCountedWakes: anything else in an App's status changes far more often.
func TestOnlyWhatIsCountedWakes(t *testing.T) {
	cases := map[string]struct {
		was, is *v1alpha1.App
		want    bool
	}{
		"it becomes ready":                         {waiting("a"), ready("a"), true},
		"it breaks":                                {ready("a"), broken("a", "x"), true},
		"it breaks in another way":                 {broken("a", "x"), broken("a", "y"), true},
		"its first condition is Progressing":       {app("a", "", "", ""), waiting("a"), false},
		"it is ready with another message":         {ready("a"), app("a", "True", "Succeeded", "another revision"), false},
		"it progresses with another message":       {waiting("a"), app("a", "Unknown", "Progressing", "2 of 3 pods"), false},
		"it progresses for another reason":         {waiting("a"), app("a", "Unknown", "Deleting", ""), true},
		"only the second line of the cause is new": {broken("a", "x\n1"), broken("a", "x\n2"), false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Changed.Update(event.UpdateEvent{ObjectOld: c.was, ObjectNew: c.is}); got != c.want {
				t.Errorf("got %t, want %t", got, c.want)
			}
		})
	}
	if !Changed.Create(event.CreateEvent{Object: ready("a")}) || !Changed.Delete(event.DeleteEvent{Object: ready("a")}) {
		t.Error("apps that come or go have to be counted")
	}
}

// TestAThousandChangesWakeOnce sends the changes of a thousand apps.
func TestAThousandChangesWakeOnce(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Unix(0, 0))
	q := workqueue.NewTypedRateLimitingQueueWithConfig(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request](),
		workqueue.TypedRateLimitingQueueConfig[reconcile.Request]{DelayingQueue: workqueue.NewTypedDelayingQueueWithConfig(
			workqueue.TypedDelayingQueueConfig[reconcile.Request]{Clock: clock})})
	defer q.ShutDown()
	owner := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "kubeop-acme", Name: "shop"}}
	h := Handler(func(labels map[string]string) []reconcile.Request {
		if labels["owner"] == "" {
			return nil
		}
		return []reconcile.Request{owner}
	})
	for range 1000 {
		h.Update(t.Context(), event.UpdateEvent{ObjectOld: waiting("a"), ObjectNew: ready("a")}, q)
	}
	h.Update(t.Context(), event.UpdateEvent{ObjectOld: waiting("a"), ObjectNew: &v1alpha1.App{}}, q) // Nobody's app.
	if q.Len() != 0 {
		t.Fatal("the owner is woken at once")
	}
	for !clock.HasWaiters() {
		time.Sleep(time.Millisecond)
	}
	clock.Step(Pause + time.Millisecond)
	if got, _ := q.Get(); got != owner {
		t.Errorf("got %v, want %v", got, owner)
	}
	q.Done(owner)
	clock.Step(Pause)
	if q.Len() != 0 {
		t.Errorf("%d more in the queue", q.Len())
	}
	for name, c := range map[string]struct {
		send  func()
		after time.Duration
	}{
		"created": {func() { h.Create(t.Context(), event.CreateEvent{Object: ready("a")}, q) }, createPause},
		"deleted": {func() { h.Delete(t.Context(), event.DeleteEvent{Object: ready("a")}, q) }, Pause},
	} {
		t.Run(name, func(t *testing.T) {
			c.send()
			for !clock.HasWaiters() {
				time.Sleep(time.Millisecond)
			}
			clock.Step(c.after + time.Millisecond)
			if got, _ := q.Get(); got != owner {
				t.Errorf("got %v, want %v", got, owner)
			}
			q.Done(owner)
		})
	}
}

// TestNumbersAreWrittenOnceInAPause of each owner, also after the clock was set back.
func TestNumbersAreWrittenOnceInAPause(t *testing.T) {
	p, now := &Pace{}, time.Unix(1000, 0)
	for _, c := range []struct {
		owner types.UID
		after time.Duration
		want  time.Duration
	}{
		{"a", 0, 0}, {"a", 0, Pause}, {"b", 0, 0}, {"a", Pause / 4, 3 * Pause / 4}, {"a", 3 * Pause / 4, 0}, {"a", 0, Pause}, {"a", -time.Hour, 0}, {"a", Pause / 2, Pause / 2},
	} {
		now = now.Add(c.after)
		if got := p.Take(c.owner, now); got != c.want {
			t.Errorf("%s after %s: got %s, want %s", c.owner, c.after, got, c.want)
		}
	}
	p.Forget("a")
	if got := p.Take("a", now); got != 0 {
		t.Errorf("a new owner has to wait for %s", got)
	}
}
