package dependency

import (
	"strings"
	"testing"

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
