package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/e2e/stage"
)

func TestValuesHaveTheRequestedSize(t *testing.T) {
	for _, size := range []int{0, 1, 64, 65, 6 << 10} {
		got := 0
		for _, value := range (app{Name: "a", Turn: 1, Padding: size}).values()["padding"].(map[string]any) {
			got += len(value.(string))
		}
		if got != size {
			t.Errorf("%d bytes of padding, want %d", got, size)
		}
	}
	if diff := cmp.Diff(app{Name: "a", Padding: 99}.values(), app{Name: "a", Padding: 99}.values()); diff != "" {
		t.Errorf("the same app has other values the second time:\n%s", diff)
	}
}

// TestAppFileIsAnApp writes an app of each type as in the repository, and reads it with the API's types and the tracker.
func TestAppFileIsAnApp(t *testing.T) {
	a := app{Name: "app-0001", Turn: 3, Interval: time.Minute}
	for name, kind := range appTypes {
		t.Run(name, func(t *testing.T) {
			k := benched(kind)
			got := &v1alpha1.App{}
			if err := yaml.UnmarshalStrict(k.appFile(a), got); err != nil {
				t.Fatal(err)
			}
			if got.Name != a.Name || got.Spec.Type != kind || got.Spec.Interval.Duration != time.Minute {
				t.Errorf("got %+v", got.Spec)
			}
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(got)
			if err != nil {
				t.Fatal(err)
			}
			if p := k.progress(&unstructured.Unstructured{Object: content}); p.Input != a.input() {
				t.Errorf("its input is %q, want %q", p.Input, a.input())
			}
		})
	}
}

// benched returns a driver that was not started.
func benched(kind v1alpha1.AppType) *kubeop {
	return &kubeop{kind: kind, chart: map[string]any{"path": "chart"}, manifests: &stage.Repository{OperatorURL: "http://git/manifests.git"}}
}

func TestTheStatusOfAnAppShowsItsProgress(t *testing.T) {
	a := app{Name: "a", Turn: 2, Interval: time.Minute}
	condition := func(kind string, status metav1.ConditionStatus, generation int64) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, ObservedGeneration: generation, Message: "why"}
	}
	tests := map[string]struct {
		observed       int64
		conditions     []metav1.Condition
		applied, ready bool
	}{
		"not reconciled": {observed: -1},
		"released, not healthy yet": {observed: 1, applied: true, conditions: []metav1.Condition{
			condition(v1alpha1.ReleasedCondition, metav1.ConditionTrue, 2), condition(v1alpha1.ReadyCondition, metav1.ConditionUnknown, 2)}},
		"ready": {observed: 2, applied: true, ready: true, conditions: []metav1.Condition{
			condition(v1alpha1.ReleasedCondition, metav1.ConditionTrue, 2), condition(v1alpha1.ReadyCondition, metav1.ConditionTrue, 2)}},
		"ready at the turn before": {observed: 1, conditions: []metav1.Condition{
			condition(v1alpha1.ReleasedCondition, metav1.ConditionTrue, 1), condition(v1alpha1.ReadyCondition, metav1.ConditionTrue, 1)}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o := &v1alpha1.App{}
			if err := yaml.UnmarshalStrict(benched(v1alpha1.AppHelm).appFile(a), o); err != nil {
				t.Fatal(err)
			}
			o.Generation, o.Status.ObservedGeneration, o.Status.Conditions = 2, test.observed, test.conditions
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
			if err != nil {
				t.Fatal(err)
			}
			got := (&kubeop{}).progress(&unstructured.Unstructured{Object: content})
			if got.Input != a.input() || got.Applied != test.applied || got.Ready != test.ready {
				t.Errorf("got %+v", got)
			}
		})
	}
}
