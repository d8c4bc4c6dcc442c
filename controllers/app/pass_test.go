package app

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/journal"
	"github.com/kubeop/kubeop/delivery/release"
)

// TestNothingIsDoneWhileTheInventoryIsUnknown: what an earlier process began to make would be forgotten, and never pruned.
func TestNothingIsDoneWhileTheInventoryIsUnknown(t *testing.T) {
	app := webApp(func(app *v1alpha1.App) { app.Spec.Type = v1alpha1.AppRaw })
	b := newFixture(t, app, interceptor.Funcs{
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return errors.New("something is applied")
		},
	}, shopProject())
	unread := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errors.New("the journal cannot be read")
		},
	})
	b.recorder.Journal = journal.New(unread, "kubeop-system", b.clock.Now)
	if _, err := b.Reconcile(t.Context(), b.app); err == nil || !strings.Contains(err.Error(), "the journal cannot be read") {
		t.Errorf("the Reconcile ends with %v", err)
	}
	if c := conditions.Get(b.app, v1alpha1.DependenciesReadyCondition); c != nil && c.Status == "True" {
		t.Error("the steps went on")
	}
	if c := conditions.Get(b.app, v1alpha1.AppliedCondition); c == nil || c.Reason != v1alpha1.ApplyFailedReason {
		t.Errorf("the condition is %v", c)
	}
}

// TestAnActionInLineIsReportedLate: thousands of Apps may wait for a worker, and each report is a write of a status.
func TestAnActionInLineIsReportedLate(t *testing.T) {
	for name, c := range map[string]struct {
		outcome release.Outcome
		waited  time.Duration
		reports bool
	}{
		"it runs":                     {release.Outcome{Running: true}, step.Quiet - time.Second, false},
		"it runs for long":            {release.Outcome{Running: true}, step.Quiet + time.Second, true},
		"it is in line":               {release.Outcome{Running: true, Queued: true}, step.Quiet + time.Second, false},
		"it is in line for very long": {release.Outcome{Running: true, Queued: true}, step.QuietInLine + time.Second, true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t, webApp(), interceptor.Funcs{})
			_ = awaitAction(b.s, "release", c.outcome, errors.New("installing"))
			b.clock.Step(c.waited)
			got := b.ended(awaitAction(b.s, "release", c.outcome, errors.New("installing")))
			if reports := strings.Contains(got, "installing"); reports != c.reports {
				t.Errorf("after %s: %s", c.waited, got)
			}
		})
	}
}
