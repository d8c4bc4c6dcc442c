package step

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// TestAnAnnotationSuspendsUntilItsTime suspends an object, changes the time, and continues when it is reached.
func TestAnAnnotationSuspendsUntilItsTime(t *testing.T) {
	b := newFixture(t, web())
	if _, err := b.run(t, nil); err != nil {
		t.Fatal(err)
	}
	for _, until := range []string{"1970-01-01T01:00:00Z", "1970-01-01T01:00:00Z", "1970-01-01T02:00:00Z"} {
		b.app.Annotations = map[string]string{v1alpha1.SuspendAnnotation: until}
		result, err := b.run(t, errors.New("must not run"))
		at, parsed := time.Parse(time.RFC3339, until)
		if err != nil || parsed != nil || result.RequeueAfter != at.Sub(time.Unix(0, 0)) {
			t.Errorf("until %s: got %+v and %v", until, result, err)
		}
		if !b.app.Spec.Suspend {
			t.Errorf("until %s: the caller does not see that it is suspended", until)
		}
		b.app.Spec.Suspend = false
		if got, want := conditions.GetMessage(b.app, v1alpha1.ReadyCondition), "Suspended until "+until+"; Applied main@sha1:1"; got != want {
			t.Errorf("Ready says %q, want %q", got, want)
		}
		if got, want := conditions.GetMessage(b.app, v1alpha1.SuspendedCondition), "Suspended until "+until; got != want {
			t.Errorf("Suspended says %q, want %q", got, want)
		}
	}
	if b.patches != 3 { // The first run, and one for each time.
		t.Errorf("the status was written %d times, want 3", b.patches)
	}
	b.Clock = clocktesting.NewFakePassiveClock(time.Unix(2*3600, 0))
	if _, err := b.run(t, nil); err != nil {
		t.Fatal(err)
	}
	if got := conditions.GetMessage(b.app, v1alpha1.ReadyCondition); got != "Applied main@sha1:1" || b.app.Status.ReadyMessage != "" {
		t.Errorf("Ready says %q after the time, and the status keeps %q", got, b.app.Status.ReadyMessage)
	}
	if conditions.Has(b.app, v1alpha1.SuspendedCondition) {
		t.Error("Suspended remains after the time")
	}
}

// TestReadySaysOnlyTheEndIfNothingIsKeptOfIt: an earlier version suspended the object, and kept nothing.
func TestReadySaysOnlyTheEndIfNothingIsKeptOfIt(t *testing.T) {
	b := newFixture(t, web(func(a *v1alpha1.App) {
		a.Annotations = map[string]string{v1alpha1.SuspendAnnotation: "1970-01-01T02:00:00Z"}
		conditions.MarkTrue(a, v1alpha1.SuspendedCondition, v1alpha1.SuspendedReason, "Suspended until 1970-01-01T01:00:00Z")
		conditions.MarkTrue(a, v1alpha1.ReadyCondition, v1alpha1.SucceededReason, "Suspended until 1970-01-01T01:00:00Z; Applied")
	}))
	if _, err := b.run(t, nil); err != nil {
		t.Fatal(err)
	}
	if got, want := conditions.GetMessage(b.app, v1alpha1.ReadyCondition), "Suspended until 1970-01-01T02:00:00Z"; got != want {
		t.Errorf("Ready says %q, want %q", got, want)
	}
}

func TestADeletionDoesNotWaitForTheEndOfASuspension(t *testing.T) {
	b := newFixture(t, web(func(a *v1alpha1.App) {
		a.DeletionTimestamp, a.Finalizers = &metav1.Time{Time: time.Unix(1, 0)}, []string{v1alpha1.Finalizer}
		a.Annotations = map[string]string{v1alpha1.SuspendAnnotation: "1970-01-01T01:00:00Z"}
	}))
	var ran bool
	f := &facts{app: b.app}
	_, err := b.Finalize(t.Context(), b.app, f, Of("Removed", f, func(context.Context, *facts) error { ran = true; return nil }))
	if err != nil || !ran {
		t.Errorf("removed: %t, %v", ran, err)
	}
}

func TestOnlyAppsAndRepositoriesAreSuspendedByAnAnnotation(t *testing.T) {
	until := func(value string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.SuspendAnnotation: value}}
	}
	const valid = "2030-01-31T18:00:00Z"
	for name, c := range map[string]struct {
		object Object
		want   bool
	}{
		"an App":                      {&v1alpha1.App{ObjectMeta: until(valid)}, true},
		"a Repository":                {&v1alpha1.Repository{ObjectMeta: until(valid)}, true},
		"a Project":                   {&v1alpha1.Project{ObjectMeta: until(valid)}, false},
		"a Tenant":                    {&v1alpha1.Tenant{ObjectMeta: until(valid)}, false},
		"an App until no time":        {&v1alpha1.App{ObjectMeta: until("tomorrow")}, false},
		"an App without a suspension": {&v1alpha1.App{}, false},
	} {
		if got := !v1alpha1.SuspendedUntil(c.object).IsZero(); got != c.want {
			t.Errorf("%s is suspended: %t, want %t", name, got, c.want)
		}
	}
}
