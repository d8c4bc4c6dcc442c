package kustomize_test

import (
	"os"
	"strings"
	"testing"

	flux "github.com/fluxcd/pkg/apis/kustomize"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kubeop/kubeop/delivery/render/kustomize"
	"github.com/kubeop/kubeop/internal/testenv/rendering"
)

// imageObjects are what an Image app is rendered to in the tests of package workload.
func imageObjects(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	text, err := os.ReadFile("../workload/testdata/pod.golden.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var objects []*unstructured.Unstructured
	for document := range strings.SplitSeq(string(text), "---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, object)
	}
	return objects
}

func TestPatchesChangeOnlyWhatTheyName(t *testing.T) {
	want := imageObjects(t)
	set := func(n int, value any, fields ...string) {
		if err := unstructured.SetNestedField(want[n].Object, value, fields...); err != nil {
			t.Fatal(err)
		}
	}
	set(0, "bulk", "spec", "template", "spec", "schedulerName")
	set(2, "LoadBalancer", "spec", "type")
	set(2, "a", "metadata", "annotations", "example.com/a")
	set(3, "b", "metadata", "annotations", "example.com/b")
	want = append(want[:1], want[2:]...)
	got, err := kustomize.Patched(imageObjects(t), []flux.Patch{
		{Patch: "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {template: {spec: {schedulerName: bulk}}}\n"},
		{Patch: `[{"op": "add", "path": "/spec/type", "value": "LoadBalancer"}, {"op": "add", "path": "/metadata/annotations", "value": {"example.com/a": "a"}}]`,
			Target: &flux.Selector{Kind: "Service"}},
		{Patch: "kind: any\nmetadata: {name: any, annotations: {example.com/b: b}}\n", Target: &flux.Selector{Kind: "Ing.*", LabelSelector: "app.kubernetes.io/name=web"}},
		{Patch: "$patch: delete\napiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: web}\n"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(rendering.Stream(t, want)), string(rendering.Stream(t, got))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestAPatchThatChangesNothingIsRefused(t *testing.T) {
	const add = `[{"op": "add", "path": "/metadata/annotations", "value": {"a": "b"}}]`
	for name, c := range map[string]struct {
		patch flux.Patch
		want  []string
	}{
		"a target by kind that is none":  {flux.Patch{Patch: add, Target: &flux.Selector{Kind: "StatefulSet"}}, []string{"patches[1]: its target matches none of the objects", "Deployment/web", "Ingress/web"}},
		"a target by name that is none":  {flux.Patch{Patch: add, Target: &flux.Selector{Kind: "Deployment", Name: "we"}}, []string{"patches[1]: its target matches none of the objects"}},
		"a target by label that is none": {flux.Patch{Patch: add, Target: &flux.Selector{LabelSelector: "a=b"}}, []string{"patches[1]: its target matches none of the objects"}},
		"a target that is no pattern":    {flux.Patch{Patch: add, Target: &flux.Selector{Name: "("}}, []string{"patches[1]: target: "}},
		"an object that is none":         {flux.Patch{Patch: "apiVersion: v1\nkind: Service\nmetadata: {name: other}\n"}, []string{"patches[1]: ", "Service", "other"}},
		"a path that is none":            {flux.Patch{Patch: `[{"op": "remove", "path": "/spec/nothing"}]`, Target: &flux.Selector{Kind: "Service"}}, []string{"patches[1] of Service/: ", "/spec/nothing"}},
		"a patch that is none":           {flux.Patch{Patch: "- nothing"}, []string{"patches[1]: "}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := kustomize.Patched(imageObjects(t), []flux.Patch{{Patch: add, Target: &flux.Selector{Kind: "Service"}}, c.patch})
			for _, want := range c.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want %q in it", err, want)
				}
			}
		})
	}
}
