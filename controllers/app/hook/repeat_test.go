package hook

import (
	"errors"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/jobs"
)

// TestARequestRepeatsEachFailedHook: it counts as handled when the first of them has run again, or when the release begins.
func TestARequestRepeatsEachFailedHook(t *testing.T) {
	for name, helm := range map[string]*v1alpha1.HelmSource{"objects": nil, "a release": {}} {
		t.Run(name, func(t *testing.T) {
			b := withHooks()
			b.s.App.Spec.Helm = helm
			ended(b, planned(t, b, "one"), v1alpha1.HookFailed)
			b.s.App.Annotations = map[string]string{meta.ForceRequestAnnotation: "now"}
			plan := planned(t, b, "one")
			first, second := plan.runs[0], plan.runs[1]
			first.result, plan.forced = &v1alpha1.HookStatus{Phase: first.Phase, Name: first.Hook.Name, Input: first.Input, Result: v1alpha1.HookFailed}, true
			plan.Record(b.s.App, false)
			b.s.App.Status.LastHandledForceAt = "now"
			plan = planned(t, b, "one")
			if again := plan.runs[1]; plan.runs[0].result == nil || again.result != nil || again.Input != second.Input || !strings.Contains(again.Input, ".") {
				t.Fatalf("the first has the result %+v, the second %+v, with the input %s", plan.runs[0].result, again.result, again.Input)
			}
			plan.Record(b.s.App, false)
			if got := b.s.App.Status.Hooks; len(got) != 2 || got[0].Repeat != "" || got[1].Result != v1alpha1.HookFailed || got[1].Repeat != second.Input {
				t.Errorf("the status has %+v", got)
			}
			plan = planned(t, b, "one")
			ended(b, plan, v1alpha1.HookSucceeded)
			if got := b.s.App.Status.Hooks; planned(t, b, "one").next() != "" || got[1].Repeat != "" || got[1].Input != second.Input {
				t.Errorf("it runs for one request again; the status has %+v", got)
			}
		})
	}
}

// TestTheStatusNamesNoJobThatDoesNotExist: somebody deleted the Job of a hook, and a new one is not admitted.
func TestTheStatusNamesNoJobThatDoesNotExist(t *testing.T) {
	b := newHookFixture(&v1alpha1.Hook{Name: "migrate", Image: "none.example/migrate"}, "").in(t)
	b.s.App.Spec.Hooks.Pre = []v1alpha1.Hook{*b.h.Hook}
	plan := planned(t, b, "one")
	b.s.App.Status.RunningHook = &v1alpha1.RunningHook{Job: plan.next(), Message: "it runs"}
	refused := errors.New("refused")
	if err := b.runPhase(t.Context(), b.s, plan, jobs.Pre, func(*unstructured.Unstructured) error { return refused }); !errors.Is(err, refused) {
		t.Fatalf("got %v", err)
	}
	if plan.Record(b.s.App, false); b.s.App.Status.RunningHook != nil {
		t.Errorf("the status names %+v", b.s.App.Status.RunningHook)
	}
}
