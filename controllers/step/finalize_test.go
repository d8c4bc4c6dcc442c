package step

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// TestADeletionThatWasNotMeantForTheObjectRemovesNothing finalizes an app of which something else was deleted.
func TestADeletionThatWasNotMeantForTheObjectRemovesNothing(t *testing.T) {
	away := errors.New("the API server is away")
	for name, c := range map[string]struct {
		cause   Cause
		suspend bool
		err     error
		removed bool
		stays   bool
		event   string
		after   time.Duration
	}{
		"meant for it":     {removed: true},
		"its definition's": {cause: Cause{Other: "its definition is being deleted"}, event: "Warning LeftRunning what it made is left running: its definition is being deleted"},
		"suspended":        {suspend: true, event: "Warning LeftRunning what it made is left running: it was suspended when it was deleted"},
		"held": {cause: Cause{Other: "kubeop is being uninstalled", Hold: true}, stays: true, after: heldPause,
			event: "Warning DeletionHeld it stays with what it made, and is looked at again every 10s: kubeop is being uninstalled"},
		"not known": {err: away, stays: true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t, web(func(a *v1alpha1.App) {
				a.DeletionTimestamp, a.Finalizers, a.Spec.Suspend = &metav1.Time{Time: time.Unix(1, 0)}, []string{v1alpha1.Finalizer}, c.suspend
			}))
			b.Cause = func(context.Context, Object) (Cause, error) { return c.cause, c.err }
			f, removed := &facts{app: b.app}, false
			result, err := b.Finalize(t.Context(), b.app, f, Of("Removed", f, func(context.Context, *facts) error { removed = true; return nil }))
			if !errors.Is(err, c.err) || (err != nil && c.err == nil) || result.RequeueAfter != c.after {
				t.Errorf("got %+v and %v", result, err)
			}
			if removed != c.removed {
				t.Errorf("removed: %t, want %t", removed, c.removed)
			}
			err = b.Client.Get(t.Context(), client.ObjectKeyFromObject(b.app), &v1alpha1.App{})
			if gone := apierrors.IsNotFound(err); gone == c.stays || b.patches != 0 {
				t.Errorf("gone: %t, want %t; %d patches", gone, !c.stays, b.patches)
			}
			if got := b.eventTexts(); got != c.event {
				t.Errorf("the events are %q, want %q", got, c.event)
			}
		})
	}
}

// eventTexts returns the events so far.
func (b *fixture) eventTexts() string {
	var all []string
	for {
		select {
		case e := <-b.events.Events:
			all = append(all, e)
		default:
			return strings.Join(all, "\n")
		}
	}
}

// TestTheCauseIsReadOnce: each look at an object that is being removed would be a request.
func TestTheCauseIsReadOnce(t *testing.T) {
	b := newFixture(t, web(func(a *v1alpha1.App) {
		a.UID, a.DeletionTimestamp, a.Finalizers = "1", &metav1.Time{Time: time.Unix(1, 0)}, []string{v1alpha1.Finalizer}
	}))
	asked := 0
	b.Cause = func(context.Context, Object) (Cause, error) { asked++; return Cause{}, nil }
	for _, outcome := range []error{Wait("NotYet", time.Second, "rain"), Wait("NotYet", time.Second, "rain"), nil} {
		b.read(t, b.app)
		f := &facts{app: b.app}
		if _, err := b.Finalize(t.Context(), b.app, f, Of("Removed", f, func(context.Context, *facts) error { return outcome })); err != nil {
			t.Fatal(err)
		}
	}
	if asked != 1 {
		t.Errorf("asked %d times, want 1", asked)
	}
	if _, left := b.meant.Load(b.app.UID); left {
		t.Error("the object is gone and remembered")
	}
}
