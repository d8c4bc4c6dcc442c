package expr

import (
	"strings"
	"testing"

	"github.com/fluxcd/pkg/apis/kustomize"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestExpressionsAreReadInOrder: inProgress, failed, current. An error says which one it is about, and nothing of the object.
func TestExpressionsAreReadInOrder(t *testing.T) {
	object := func(generation, observed int64, phase any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "db.example/v1", "kind": "Database",
			"metadata": map[string]any{"name": "hidden", "generation": generation},
			"status":   map[string]any{"observedGeneration": observed, "phase": phase},
		}}
	}
	byPhase := kustomize.HealthCheckExpressions{
		InProgress: "status.phase == 'Busy'", Failed: "status.phase in ['Busy', 'Broken']", Current: "status.phase in ['Busy', 'Broken', 'Done']",
	}
	for name, tc := range map[string]struct {
		expressions kustomize.HealthCheckExpressions
		object      *unstructured.Unstructured
		want        Health
		says        string
	}{
		"all are true":              {byPhase, object(1, 1, "Busy"), InProgress, ""},
		"failed and current":        {byPhase, object(1, 1, "Broken"), Failed, ""},
		"only current":              {byPhase, object(1, 1, "Done"), Current, ""},
		"none is true":              {byPhase, object(1, 1, "Odd"), InProgress, ""},
		"its last change is unseen": {byPhase, object(2, 1, "Done"), InProgress, ""},
		"it lacks a field":          {kustomize.HealthCheckExpressions{Failed: "status.gone == 1", Current: "status.phase == 'Done'"}, object(1, 1, "Done"), Current, ""},
		"it lacks a part":           {kustomize.HealthCheckExpressions{Failed: "has(spec.gone)", Current: "has(data.gone)"}, object(1, 1, "Done"), InProgress, ""},
		"its kind":                  {kustomize.HealthCheckExpressions{Current: "kind == 'Database' && apiVersion == 'db.example/v1' && self.kind == kind"}, object(1, 1, ""), Current, ""},
		"failed cannot be judged":   {kustomize.HealthCheckExpressions{Failed: "status.phase > 1", Current: "true"}, object(1, 1, "hidden"), InProgress, "failed: no such overload"},
		"current cannot be judged":  {kustomize.HealthCheckExpressions{Current: "status.phase == ''+string(1/0)"}, object(1, 1, "hidden"), InProgress, "current: "},
	} {
		t.Run(name, func(t *testing.T) {
			check, err := NewCheck(&kustomize.CustomHealthCheck{APIVersion: "db.example/v1", Kind: "Database", HealthCheckExpressions: tc.expressions})
			if err != nil {
				t.Fatal(err)
			}
			got, err := check.Judge(t.Context(), tc.object)
			if got != tc.want || tc.says == "" && err != nil || tc.says != "" && (err == nil || !strings.HasPrefix(err.Error(), tc.says)) {
				t.Errorf("got %d, %v, want %d, %q", got, err, tc.want, tc.says)
			}
			if err != nil && strings.Contains(err.Error(), "hidden") {
				t.Errorf("the error shows the object: %v", err)
			}
		})
	}
}

func TestAWrongCheckIsRefusedWithItsField(t *testing.T) {
	for name, tc := range map[string]struct {
		apiVersion, kind string
		expressions      kustomize.HealthCheckExpressions
		says             string
	}{
		"apiVersion":           {"a/b/c", "Database", kustomize.HealthCheckExpressions{Current: "true"}, "apiVersion: "},
		"no kind":              {"db.example/v1", "", kustomize.HealthCheckExpressions{Current: "true"}, "kind: is required"},
		"a Secret":             {"v1", "Secret", kustomize.HealthCheckExpressions{Current: "true"}, "kind: no expression may read a Secret"},
		"a list of Secrets":    {"v1", "secretlist", kustomize.HealthCheckExpressions{Current: "true"}, "kind: no expression may read a Secret"},
		"a Secret of a vendor": {"vault.example/v1", "Secret", kustomize.HealthCheckExpressions{Current: "true"}, ""},
		"no current":           {"db.example/v1", "Database", kustomize.HealthCheckExpressions{Failed: "true"}, "current: is required"},
		"inProgress":           {"db.example/v1", "Database", kustomize.HealthCheckExpressions{InProgress: "1", Current: "true"}, "inProgress: "},
		"failed":               {"db.example/v1", "Database", kustomize.HealthCheckExpressions{Failed: "(", Current: "true"}, "failed: "},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := NewCheck(&kustomize.CustomHealthCheck{APIVersion: tc.apiVersion, Kind: tc.kind, HealthCheckExpressions: tc.expressions})
			if tc.says == "" && err != nil || tc.says != "" && (err == nil || !strings.HasPrefix(err.Error(), tc.says)) {
				t.Errorf("got %v, want %q", err, tc.says)
			}
		})
	}
}
