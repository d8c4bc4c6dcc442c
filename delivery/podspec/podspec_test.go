package podspec

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func parsed(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		t.Fatal(err)
	}
	return object
}

// TestEachKindHasItsPodWhereKubernetesReadsIt: a rule for pods that looks elsewhere is none.
func TestEachKindHasItsPodWhereKubernetesReadsIt(t *testing.T) {
	const template = "{metadata: {labels: {a: b}}, spec: {hostNetwork: true}}"
	for name, c := range map[string]struct {
		object, path string
		fixed        bool
	}{
		"Pod":                   {"{apiVersion: v1, kind: Pod, metadata: {labels: {a: b}}, spec: {hostNetwork: true}}", "", true},
		"PodTemplate":           {"{apiVersion: v1, kind: PodTemplate, template: " + template + "}", "template", false},
		"ReplicationController": {"{apiVersion: v1, kind: ReplicationController, spec: {template: " + template + "}}", "spec.template", false},
		"DaemonSet":             {"{apiVersion: apps/v1, kind: DaemonSet, spec: {template: " + template + "}}", "spec.template", false},
		"Deployment":            {"{apiVersion: apps/v1, kind: Deployment, spec: {template: " + template + "}}", "spec.template", false},
		"ReplicaSet":            {"{apiVersion: apps/v1, kind: ReplicaSet, spec: {template: " + template + "}}", "spec.template", false},
		"StatefulSet":           {"{apiVersion: apps/v1, kind: StatefulSet, spec: {template: " + template + "}}", "spec.template", false},
		"Job":                   {"{apiVersion: batch/v1, kind: Job, spec: {template: " + template + "}}", "spec.template", true},
		"CronJob":               {"{apiVersion: batch/v1, kind: CronJob, spec: {jobTemplate: {spec: {template: " + template + "}}}}", "spec.jobTemplate.spec.template", false},
	} {
		t.Run(name, func(t *testing.T) {
			pod := Of(parsed(t, c.object))
			if pod == nil {
				t.Fatal("it has no pod")
			}
			if strings.Join(pod.Path, ".") != c.path || pod.Fixed != c.fixed || pod.Spec["hostNetwork"] != true || pod.Metadata["labels"] == nil {
				t.Errorf("got %+v, want the path %q and fixed: %t", pod, c.path, c.fixed)
			}
		})
	}
}

func TestObjectsWithoutAPodHaveNone(t *testing.T) {
	for name, object := range map[string]string{
		"another kind":           "{apiVersion: v1, kind: Service, spec: {template: {spec: {}}}}",
		"of another group":       "{apiVersion: example.com/v1, kind: Deployment, spec: {template: {spec: {}}}}",
		"no spec":                "{apiVersion: v1, kind: Pod}",
		"a text as spec":         "{apiVersion: v1, kind: Pod, spec: x}",
		"no template":            "{apiVersion: apps/v1, kind: Deployment, spec: {}}",
		"a text above it":        "{apiVersion: apps/v1, kind: Deployment, spec: x}",
		"a list as template":     "{apiVersion: batch/v1, kind: Job, spec: {template: []}}",
		"a template without one": "{apiVersion: batch/v1, kind: Job, spec: {template: {}}}",
	} {
		if pod := Of(parsed(t, object)); pod != nil {
			t.Errorf("%s: got %+v", name, pod)
		}
	}
	if pod := Of(parsed(t, "{apiVersion: v1, kind: Pod, metadata: x, spec: {}}")); pod == nil || pod.Metadata != nil {
		t.Errorf("metadata that are a text: got %+v", pod)
	}
}

// TestContainersOfEverySortAreListed: one that is left out would be judged by no rule.
func TestContainersOfEverySortAreListed(t *testing.T) {
	pod := Of(parsed(t, "{apiVersion: v1, kind: Pod, spec: {ephemeralContainers: [{name: debug}], containers: [{name: web}, {name: side}], initContainers: [{name: init}]}}"))
	var names []string
	containers, ok := pod.Containers()
	for _, c := range containers {
		names = append(names, c["name"].(string))
	}
	if want := []string{"init", "web", "side", "debug"}; !ok || !slices.Equal(names, want) {
		t.Errorf("got %v, %t, want %v", names, ok, want)
	}
	for _, field := range []string{"initContainers", "containers", "ephemeralContainers"} {
		broken := Of(parsed(t, "{apiVersion: v1, kind: Pod, spec: {"+field+": [{name: a}, b]}}"))
		if containers, ok := broken.Containers(); ok || containers != nil {
			t.Errorf("%s with a text in them: got %v", field, containers)
		}
	}
	if containers, ok := Of(parsed(t, "{apiVersion: v1, kind: Pod, spec: {}}")).Containers(); !ok || len(containers) > 0 {
		t.Errorf("none: got %v, %t", containers, ok)
	}
}
