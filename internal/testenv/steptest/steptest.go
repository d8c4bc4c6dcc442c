// Package steptest describes in tests how a step ends, as the object's status would report it.
package steptest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
)

// scope is an empty step.Scope.
type scope struct{}

// Record implements step.Scope.
func (scope) Record() {}

// Summary implements step.Scope.
func (scope) Summary() string { return "" }

// Outcome describes how a Reconcile ends if its step returns err: "done", "soon, after 2s", "skipped", or "waits", "stopped" or "failed" with
// the reason and the message of the condition, such as "waits Deleting: waits for apps web, after 1s". It begins with "later steps run; " if
// the Reconcile continues with the next step.
func Outcome(t *testing.T, err error) string {
	t.Helper()
	return outcome(t, err)
}

// AfterFailure is Outcome for an object whose status reports a failure of the step with its present spec.
func AfterFailure(t *testing.T, err error) string {
	t.Helper()
	return outcome(t, err, metav1.Condition{Type: "First", Status: metav1.ConditionFalse, Reason: "Away"})
}

func outcome(t *testing.T, err error, before ...metav1.Condition) string {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	app := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-a-b", Name: "app"}}
	app.Status.Conditions = before
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(app).WithStatusSubresource(app).Build()
	runner := &step.Runner{Client: c, Events: events.NewFakeRecorder(10), Clock: clocktesting.NewFakePassiveClock(time.Unix(0, 0))}
	later := false
	result, failure := runner.Run(t.Context(), app, scope{},
		step.Of("First", scope{}, func(context.Context, scope) error { return err }),
		step.Of("Second", scope{}, func(context.Context, scope) error { later = true; return nil }))
	end := endOf(app, result, failure)
	if later && err != nil && end != "skipped" {
		return "later steps run; " + end
	}
	return end
}

func endOf(app *v1alpha1.App, result ctrl.Result, failure error) string {
	ready, first := conditions.Get(app, v1alpha1.ReadyCondition), conditions.Get(app, "First")
	switch {
	case ready == nil:
		return "soon, after " + result.RequeueAfter.String()
	case first == nil:
		return "skipped"
	case first.Status == metav1.ConditionTrue:
		return "done"
	}
	text := fmt.Sprintf(" %s: %s", first.Reason, first.Message)
	switch {
	case conditions.IsStalled(app):
		return "stopped" + text
	case first.Status == metav1.ConditionUnknown:
		return "waits" + text + ", after " + result.RequeueAfter.String()
	case failure == nil && ready.Status == metav1.ConditionFalse:
		return "failed" + text + ", after " + result.RequeueAfter.String()
	}
	return "failed" + text
}
