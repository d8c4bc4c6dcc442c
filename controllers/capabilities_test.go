package controllers

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// TestChartsSeeKindsThatAreDefinedLater: .Capabilities are read anew when the API server serves another kind.
func TestChartsSeeKindsThatAreDefinedLater(t *testing.T) {
	n := newTeam(t, "capable")
	files := helmApp("values: {greeting: first}")
	files["projects/shop/apps/web/chart/templates/late.yaml"] = `{apiVersion: v1, kind: ConfigMap, metadata: {name: late}, data: {served: "{{ .Capabilities.APIVersions.Has "late.example.com/v1" }}"}}`
	n.push(files)
	n.greets("first")
	served := func() string {
		late := &corev1.ConfigMap{}
		if err := n.admin.Get(t.Context(), client.ObjectKey{Namespace: n.namespace(), Name: "late"}, late); err != nil {
			t.Fatal(err)
		}
		return late.Data["served"]
	}
	if got := served(); got != "false" {
		t.Fatalf("before the kind is defined, it is served: %s", got)
	}
	definition := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: things.late.example.com}, spec: {
		group: late.example.com, scope: Namespaced, names: {plural: things, singular: thing, kind: Thing, listKind: ThingList},
		versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}`), &definition.Object); err != nil {
		t.Fatal(err)
	}
	if err := n.admin.Create(t.Context(), definition); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.admin.Delete(context.Background(), definition); err != nil {
			t.Error(err)
		}
	})
	// The operator learns about the kind about a second later. Each upgrade reads what it knows by then.
	for i := range 8 {
		greeting := fmt.Sprint("again-", i)
		n.push(map[string]string{"projects/shop/apps/web/app.yaml": helmApp("values: {greeting: " + greeting + "}")["projects/shop/apps/web/app.yaml"]})
		n.greets(greeting)
		if served() == "true" {
			return
		}
	}
	t.Error("the chart does not see the kind")
}
