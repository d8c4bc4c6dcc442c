package step

import (
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// TestAnObjectNearTheSizeLimitSaysSo as long as it is near it, in what is sent to the API server.
func TestAnObjectNearTheSizeLimitSaysSo(t *testing.T) {
	for name, tc := range map[string]struct {
		size           int
		marked, expect bool
	}{
		"small":                    {100, false, false},
		"large":                    {nearLimit, false, true},
		"still large":              {nearLimit, true, true},
		"small again":              {100, true, false},
		"a little below the limit": {nearLimit - 2000, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			app := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", Annotations: map[string]string{"a": strings.Repeat("x", tc.size)}}}
			if tc.marked && !markSize(app, nearLimit) {
				t.Fatal("an object near the limit is not marked")
			}
			data, err := marshalMarked(app)
			if c := conditions.Get(app, v1alpha1.NearSizeLimitCondition); tc.expect && (c == nil || c.Status != metav1.ConditionTrue || c.Reason != v1alpha1.TooLargeReason ||
				c.Message != "takes 1.0 MiB of the 1.5 MiB that the API server stores: split it in Git into several before it is full") {
				t.Errorf("the condition is %+v", c)
			}
			if got := strings.Contains(string(data), v1alpha1.NearSizeLimitCondition); err != nil || got != tc.expect {
				t.Errorf("what is sent has the condition: %t, %v, want %t", got, err, tc.expect)
			}
		})
	}
}
