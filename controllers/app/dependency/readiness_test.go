package dependency

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/app/subject"
)

// TestAStatusIsMaskedBeforeItIsCut cuts a message in the middle of a secret.
func TestAStatusIsMaskedBeforeItIsCut(t *testing.T) {
	s := (&subject.Subjects{Clock: &clocktesting.FakePassiveClock{}}).New(&v1alpha1.App{})
	s.Hide("hunter22hunter22")
	before := strings.Repeat("x", 192)
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.org/v1", "kind": "Bucket", "metadata": map[string]any{"name": "a"},
		"status": map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "False", "message": before + "hunter22hunter22"}}},
	}}
	if got := byStatus(s, object).lacks; !strings.Contains(got, before) || strings.Contains(got, "hunt") {
		t.Errorf("got %s", got)
	}
}

// TestDependentsAreWokenOnlyByTheStateOfAnApp: another message of a condition wakes none.
func TestDependentsAreWokenOnlyByTheStateOfAnApp(t *testing.T) {
	leaving := metav1.Now()
	ready := summaryOf(readyApp(shop, "db", nil))
	for name, c := range map[string]struct {
		change func(*v1alpha1.App)
		same   bool
	}{
		"nothing":          {func(*v1alpha1.App) {}, true},
		"its message":      {func(a *v1alpha1.App) { a.Status.Conditions[0].Message = "Applied 2 objects, healthy" }, true},
		"its deletion":     {func(a *v1alpha1.App) { a.DeletionTimestamp = &leaving }, false},
		"another folder":   {func(a *v1alpha1.App) { a.Status.ObservedTree = "old" }, false},
		"a new generation": {func(a *v1alpha1.App) { a.Generation++ }, false},
		"it is not ready":  {func(a *v1alpha1.App) { a.Status.Conditions[0].Status = metav1.ConditionFalse }, false},
		"another reason":   {func(a *v1alpha1.App) { a.Status.Conditions[0].Reason = "Other" }, false},
	} {
		if got := summaryOf(readyApp(shop, "db", c.change)); (got == ready) != c.same {
			t.Errorf("%s changed: %q after %q", name, got, ready)
		}
	}
}
