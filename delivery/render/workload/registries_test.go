package workload

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/internal/testenv/rendering"
)

var (
	none = Settings{}
	one  = Settings{PullSecrets: []v1alpha1.PullSecret{{Registry: "b", Host: "docker.io"}}}
	two  = Settings{PullSecrets: []v1alpha1.PullSecret{{Registry: "a", Host: "a.example"}, {Registry: "b", Host: "docker.io"}}}
	// swapped has them in another order than a project has.
	swapped = Settings{PullSecrets: []v1alpha1.PullSecret{two.PullSecrets[1], two.PullSecrets[0]}}
)

// rendered returns an app with these fields, a container of each of two registries, and its workload.
func rendered(t *testing.T, fields string, settings Settings, recorded ...string) (*v1alpha1.App, *unstructured.Unstructured) {
	t.Helper()
	app := rendering.App(t, fmt.Sprintf(`{metadata: {name: migrate, namespace: kubeop-a-b}, spec: {image: {reference: web:1, initContainers: [{name: first, image: a.example/x}], %s}}}`, fields))
	for _, name := range recorded {
		app.Status.Inventory.Entries = append(app.Status.Inventory.Entries, v1alpha1.InventoryEntry{ID: "kubeop-a-b_" + name + "_batch_Job"})
	}
	objects, err := Render(app, settings)
	if err != nil {
		t.Fatal(err)
	}
	NameJob(app, objects)
	return app, objects[0]
}

// namedBy lists the pull Secrets of the pods of an object.
func namedBy(o *unstructured.Unstructured) string {
	refs, _, _ := unstructured.NestedSlice(o.Object, PodPath(o, pullSecrets)...)
	var names []string
	for _, ref := range refs {
		names = append(names, strings.TrimPrefix(ref.(map[string]any)["name"].(string), v1alpha1.PullSecretPrefix))
	}
	return strings.Join(names, " ")
}

// TestAJobHasTheSameNameWithEachRegistry, so that it does not run again when a Registry comes or goes. A Secret that the app names makes another Job.
func TestAJobHasTheSameNameWithEachRegistry(t *testing.T) {
	for fields, others := range map[string]string{"job: {}": "job: {}, pullSecrets: [{name: kubeop-registry-b}]", "job: {}, pullSecrets: [{name: own}]": "job: {}"} {
		_, first := rendered(t, fields, none)
		for _, settings := range []Settings{one, two} {
			if _, job := rendered(t, fields, settings); job.GetName() != first.GetName() || namedBy(job) == namedBy(first) {
				t.Errorf("the Job with the Secrets %q is named %s, and that with %q %s", namedBy(first), first.GetName(), namedBy(job), job.GetName())
			}
		}
		if _, other := rendered(t, others, none); other.GetName() == first.GetName() {
			t.Errorf("with %s the Job has the same name", others)
		}
	}
}

// TestAJobThatAnEarlierVersionNamedKeepsItsName, so that an upgrade runs no Job again: its name followed from its whole spec.
func TestAJobThatAnEarlierVersionNamedKeepsItsName(t *testing.T) {
	app, job := rendered(t, "job: {}", two)
	former := nameOf(app, job)
	if former == job.GetName() {
		t.Fatal("an earlier version gave the same name")
	}
	if _, kept := rendered(t, "job: {}", two, "migrate-1", former); kept.GetName() != former {
		t.Errorf("the Job %s is named %s after an upgrade", former, kept.GetName())
	}
	for what, fields := range map[string]string{"settings": "job: {backoffLimit: 1}", "args": "job: {}, args: [x]"} {
		if _, changed := rendered(t, fields, two, former); changed.GetName() == former {
			t.Errorf("with other %s it keeps the name", what)
		}
	}
	if app, job := rendered(t, "job: {}", none); nameOf(app, job) != job.GetName() {
		t.Errorf("without Registries an earlier version gave the name %s, this one %s", nameOf(app, job), job.GetName())
	}
}

// TestWithoutRegistriesAnAppIsWhatItIsWithoutThem: the names that the app itself gives stay.
func TestWithoutRegistriesAnAppIsWhatItIsWithoutThem(t *testing.T) {
	text := func(o *unstructured.Unstructured) string {
		data, err := json.Marshal(o.Object)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	for _, fields := range []string{"replicas: 1", "schedule: '@daily'", "job: {}", "job: {}, pullSecrets: [{name: own}, {name: kubeop-registry-b}]"} {
		_, plain := rendered(t, fields, none)
		for _, settings := range []Settings{one, two} {
			app, with := rendered(t, fields, settings)
			before := text(with)
			without := WithoutRegistries(app, []*unstructured.Unstructured{with})[0]
			if diff := cmp.Diff(text(plain), text(without)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", fields, diff)
			}
			if text(with) != before {
				t.Errorf("%s: the object itself was changed", fields)
			}
		}
	}
	raw := &v1alpha1.App{Spec: v1alpha1.AppSpec{Raw: &v1alpha1.RawSource{}}}
	_, job := rendered(t, "job: {}", one)
	if WithoutRegistries(raw, []*unstructured.Unstructured{job})[0] != job {
		t.Error("the Job of a Raw app was changed")
	}
}

// TestAJobKeepsTheSecretsItWasMadeWith, in their order: Kubernetes refuses any other list. Deployments and Raw apps have what they say.
func TestAJobKeepsTheSecretsItWasMadeWith(t *testing.T) {
	made := func(o *unstructured.Unstructured) *metav1.ObjectMeta {
		var items []string
		for _, name := range strings.Fields(namedBy(o)) {
			if name != "own" {
				name = v1alpha1.PullSecretPrefix + name
			}
			items = append(items, fmt.Sprintf(`"k:{\"name\":\"%s\"}":{".":{},"f:name":{}}`, name))
		}
		fields := fmt.Sprintf(`{"f:spec":{"f:template":{"f:spec":{"f:imagePullSecrets":{%s}}}}}`, strings.Join(items, ","))
		entry := metav1.ManagedFieldsEntry{Manager: v1alpha1.FieldManager, Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1(fields)}
		return &metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{entry}}
	}
	for _, fields := range []string{"job: {}", "job: {}, pullSecrets: [{name: own}]", "job: {}, pullSecrets: [{name: kubeop-registry-b}, {name: own}]", "replicas: 1"} {
		for _, then := range []Settings{none, one, two} {
			for _, now := range []Settings{none, one, two, swapped} {
				_, live := rendered(t, fields, then)
				app, o := rendered(t, fields, now)
				want := live
				if live.GetKind() != "Job" {
					want = o
				}
				if diff := cmp.Diff(want.Object, KeepSecrets(app)(o, made(live)).Object); diff != "" {
					t.Errorf("%s, made with %q, now with %q (-want +got):\n%s", fields, namedBy(live), namedBy(o), diff)
				}
			}
		}
	}
	_, live := rendered(t, "job: {}", two)
	_, o := rendered(t, "job: {}", none)
	if raw := (&v1alpha1.App{Spec: v1alpha1.AppSpec{Raw: &v1alpha1.RawSource{}}}); KeepSecrets(raw)(o, made(live)) != o {
		t.Error("the Job of a Raw app was changed")
	}
}
