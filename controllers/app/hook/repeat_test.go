package hook

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/jobs"
)

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
