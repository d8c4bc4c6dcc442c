package condition

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func withConditions(conditions any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": conditions}}}
}

func TestOfFindsByTypeAndTrueByStatusToo(t *testing.T) {
	ready := map[string]any{"type": "Ready", "status": "True", "reason": "R", "message": "m"}
	for name, tc := range map[string]struct {
		object     *unstructured.Unstructured
		want       Condition
		of, isTrue bool
	}{
		"no status":        {object: &unstructured.Unstructured{Object: map[string]any{}}},
		"no list":          {object: withConditions("none")},
		"no condition":     {object: withConditions([]any{"none"})},
		"another type":     {object: withConditions([]any{map[string]any{"type": "Stalled", "status": "True"}})},
		"true":             {object: withConditions([]any{"none", ready}), want: Condition{"True", "R", "m"}, of: true, isTrue: true},
		"false":            {object: withConditions([]any{map[string]any{"type": "Ready", "status": "False"}}), want: Condition{Status: "False"}, of: true},
		"status no string": {object: withConditions([]any{map[string]any{"type": "Ready", "status": true}}), of: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := Of(tc.object, "Ready")
			if diff := cmp.Diff(tc.want, got); diff != "" || ok != tc.of {
				t.Errorf("Of: %t, want %t\n%s", ok, tc.of, diff)
			}
			if _, ok := True(tc.object, "Ready"); ok != tc.isTrue {
				t.Errorf("True: %t, want %t", ok, tc.isTrue)
			}
		})
	}
}

func TestAJobHasEndedByItsConditions(t *testing.T) {
	type result struct {
		Ended, Failed bool
		Why           string
	}
	for name, tc := range map[string]struct {
		conditions []any
		want       result
	}{
		"runs":                    {[]any{}, result{}},
		"about to fail":           {[]any{map[string]any{"type": "FailureTarget", "status": "True"}}, result{}},
		"failed is not true":      {[]any{map[string]any{"type": "Failed", "status": "False", "message": "m"}}, result{}},
		"complete":                {[]any{map[string]any{"type": "SuccessCriteriaMet", "status": "True"}, map[string]any{"type": "Complete", "status": "True", "message": "m"}}, result{Ended: true}},
		"failed with a message":   {[]any{map[string]any{"type": "Failed", "status": "True", "reason": "R", "message": "m"}}, result{true, true, "m"}},
		"failed with a reason":    {[]any{map[string]any{"type": "Failed", "status": "True", "reason": "R"}}, result{true, true, "R"}},
		"failed and says nothing": {[]any{map[string]any{"type": "Failed", "status": "True"}}, result{true, true, ""}},
	} {
		t.Run(name, func(t *testing.T) {
			var got result
			got.Ended, got.Failed, got.Why = JobEnded(withConditions(tc.conditions))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
