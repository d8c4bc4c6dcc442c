package main

import (
	"testing"
	"time"

	"github.com/kubeop/kubeop/e2e/measure"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// object returns a minimal object of an app, which the test's progress function reads.
func object(name, input string, applied, ready bool) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": name}, "input": input, "applied": applied, "ready": ready,
	}}
}

func readObject(o *unstructured.Unstructured) progress {
	return progress{
		Input: o.Object["input"].(string), Applied: o.Object["applied"].(bool), Ready: o.Object["ready"].(bool), Message: "says",
		Handled: "token of " + o.GetName(),
	}
}

var pushed = time.Now()

func after(seconds int) time.Time { return pushed.Add(time.Duration(seconds) * time.Second) }

func missing(t *testing.T, tr *tracker, want int) {
	t.Helper()
	if got, example := tr.missing(); got != want {
		t.Fatalf("%d are missing (%s), want %d", got, example, want)
	}
}

func TestTrackerMarksTheFirstTime(t *testing.T) {
	tr := newTracker(readObject)
	tr.saw(object("a", "old", true, true), after(0))
	tr.expect(map[string]string{"a": "new", "b": "new"})
	missing(t, tr, 2)
	tr.saw(object("a", "new", false, false), after(1))
	tr.saw(object("a", "new", true, false), after(2))
	missing(t, tr, 2)
	tr.saw(object("a", "new", true, true), after(3))
	tr.saw(object("b", "new", true, true), after(5))
	missing(t, tr, 0)
	// Later states do not change the times, even if the app is not ready any more.
	tr.saw(object("b", "new", false, false), after(6))
	tr.saw(object("b", "new", true, true), after(7))
	missing(t, tr, 0)
	applied, ready := tr.results(pushed)
	if diff := cmp.Diff([]float64{2, 5}, []float64{measure.Percentile(applied, 0), measure.Percentile(applied, 1)}); diff != "" || ready != 5 {
		t.Errorf("ready after %g; applied (-want +got):\n%s", ready, diff)
	}
}

func TestTrackerPrefersFailedAppsAsExample(t *testing.T) {
	tr := newTracker(func(o *unstructured.Unstructured) progress {
		return progress{Failed: o.GetName() == "b", Message: o.GetName() + " failed"}
	})
	tr.expect(map[string]string{"a": "new", "b": "new", "c": "new", "d": "new"})
	for _, name := range []string{"a", "b", "c"} {
		tr.saw(object(name, "", false, false), after(0))
	}
	for range 20 { // maps have no order
		if got, example := tr.missing(); got != 4 || example != "b: b failed" {
			t.Fatalf("%d are missing: %s", got, example)
		}
	}
}

func TestTrackerWaitsUntilAppsAreGone(t *testing.T) {
	tr := newTracker(readObject)
	tr.saw(object("a", "old", true, true), after(0))
	tr.expect(map[string]string{"a": ""})
	missing(t, tr, 1)
	tr.saw(object("a", "old", false, false), after(1))
	missing(t, tr, 1)
	tr.lost("a", after(2))
	missing(t, tr, 0)
	if applied, ready := tr.results(pushed); ready != 2 || applied[0] != 2 {
		t.Errorf("gone after %g, %g", applied, ready)
	}
}

func TestTrackerCountsAnswers(t *testing.T) {
	tr := newTracker(readObject)
	tr.saw(object("a", "", true, true), after(0))
	tr.saw(object("b", "", true, true), after(0))
	if got, _ := tr.unanswered("token of a"); got != 1 {
		t.Errorf("%d have not answered, want one", got)
	}
}
