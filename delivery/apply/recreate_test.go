package apply

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func objectsOf(objects ...*unstructured.Unstructured) []*unstructured.Unstructured { return objects }

func (b *fixture) fixed(value string) *unstructured.Unstructured {
	o := b.config("one", value)
	o.Object["immutable"] = true
	return o
}

func (b *fixture) volume(class string) *unstructured.Unstructured {
	return b.object("v1", "PersistentVolumeClaim", "data", map[string]any{"spec": map[string]any{
		"storageClassName": class, "accessModes": []any{"ReadWriteOnce"},
		"resources": map[string]any{"requests": map[string]any{"storage": "1Gi"}},
	}})
}

func (b *fixture) job(image string) *unstructured.Unstructured {
	return b.object("batch/v1", "Job", "one", map[string]any{"spec": map[string]any{"suspend": true, "template": map[string]any{"spec": map[string]any{
		"restartPolicy": "Never", "containers": []any{map[string]any{"name": "web", "image": image}},
	}}}})
}

func (b *fixture) stateful(service string) *unstructured.Unstructured {
	return b.object("apps/v1", "StatefulSet", "db", map[string]any{"spec": map[string]any{
		"replicas": int64(0), "serviceName": service, "selector": map[string]any{"matchLabels": map[string]any{"app": "db"}},
		"persistentVolumeClaimRetentionPolicy": map[string]any{"whenDeleted": "Delete"},
		"template": map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": "db"}}, "spec": map[string]any{
			"containers": []any{map[string]any{"name": "db", "image": "db:1"}},
		}},
	}})
}

func TestImmutableFieldsAreRecreatedOrRefused(t *testing.T) {
	selector := func(b *fixture, value string) *unstructured.Unstructured {
		o := b.deployment(1, "web:1")
		for _, path := range [][]string{{"spec", "selector", "matchLabels", "app"}, {"spec", "template", "metadata", "labels", "app"}} {
			_ = unstructured.SetNestedField(o.Object, value, path...)
		}
		return o
	}
	cases := map[string]struct {
		object func(b *fixture, value string) *unstructured.Unstructured
		field  string
		kept   bool
	}{
		"an immutable ConfigMap":             {(*fixture).fixed, "data", false},
		"a Deployment's selector":            {selector, "spec.selector", false},
		"a Job's template":                   {(*fixture).job, "spec.template", false},
		"a volume claim, never":              {(*fixture).volume, "spec", true},
		"what takes its claims along, never": {(*fixture).stateful, "spec", true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t)
			b.must(1, c.object(b, "a"))
			before := b.uid(c.object(b, "a"))
			_, err := b.apply(c.object(b, "b"))
			if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), c.field) || !strings.Contains(err.Error(), " cannot be changed (") {
				t.Fatalf("got %v", err)
			}
			t.Log(err)
			if advised := strings.Contains(err.Error(), "set force: true"); advised == c.kept {
				t.Errorf("the advice is %v", err)
			}
			if b.uid(c.object(b, "a")) != before || len(b.recorded) != 1 {
				t.Errorf("it was recreated although nothing allows it; recorded is %v", b.recorded)
			}
			result, err := b.Apply(t.Context(), Set{Client: b.Client, Objects: objectsOf(c.object(b, "b")), Recorded: b.recorded, Force: true})
			for Only(err, ErrPending) { // The controller manager deletes what has dependents.
				result, err = b.Apply(t.Context(), Set{Client: b.Client, Objects: objectsOf(c.object(b, "b")), Recorded: result.Entries, Force: true})
			}
			if anew := b.uid(c.object(b, "a")) != before; anew == c.kept || (err == nil) == c.kept {
				t.Errorf("made anew is %t, %v", anew, err)
			}
			if len(result.Entries) != 1 {
				t.Errorf("recorded is %v", result.Entries)
			}
		})
	}
}

func (b *fixture) uid(o *unstructured.Unstructured) string {
	b.t.Helper()
	live := &metav1.PartialObjectMetadata{}
	live.SetGroupVersionKind(o.GroupVersionKind())
	if err := b.Get(b.t.Context(), client.ObjectKeyFromObject(o), live); err != nil {
		b.t.Fatal(err)
	}
	return string(live.UID)
}

// TestForceDoesNotDeleteForAnInvalidObject has an object that no deletion would help.
func TestForceDoesNotDeleteForAnInvalidObject(t *testing.T) {
	b := newFixture(t)
	b.must(1, b.deployment(1, "web:1"))
	before := b.uid(b.deployment(1, "web:1"))
	bad := b.deployment(-1, "web:1")
	_, err := b.Apply(t.Context(), Set{Client: b.Client, Objects: objectsOf(bad), Recorded: b.recorded, Force: true})
	if !apierrors.IsInvalid(err) || strings.Contains(err.Error(), "cannot be changed") {
		t.Errorf("got %v", err)
	}
	if b.uid(bad) != before {
		t.Error("it was deleted")
	}
}

func TestAnObjectThatIsBeingDeletedIsNotWritten(t *testing.T) {
	b := newFixture(t)
	b.must(1, b.config("one", "a"))
	held := b.read("one")
	held.Finalizers = []string{"example.com/held"}
	if err := b.Update(t.Context(), held); err != nil {
		t.Fatal(err)
	}
	if err := b.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "one"}}); err != nil {
		t.Fatal(err)
	}
	if writes, err := b.apply(b.config("one", "b")); writes != 0 || !Only(err, ErrPending) {
		t.Errorf("%d writes and %v", writes, err)
	}
	held = b.read("one")
	held.Finalizers = nil
	if err := b.Update(t.Context(), held); err != nil {
		t.Fatal(err)
	}
	b.must(1, b.config("one", "b"))
}

// TestForceKeepsOwnersOfClaims has a database's custom resource refuse a change while claims with data belong to it, and then do so again
// when somebody has taken the claim from it.
func TestForceKeepsOwnersOfClaims(t *testing.T) {
	b := newFixture(t)
	definition := b.widgets("size")
	properties := definition.Object["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any)["schema"].(map[string]any)["openAPIV3Schema"].(map[string]any)["properties"].(map[string]any)
	size := properties["spec"].(map[string]any)["properties"].(map[string]any)["size"].(map[string]any)
	size["x-kubernetes-validations"] = []any{map[string]any{"rule": "self == oldSelf", "message": "size is fixed"}}
	changed := b.widget("size")
	changed.Object["spec"] = map[string]any{"size": "y"}
	b.must(2, definition, b.widget("size"))
	before := b.uid(changed)
	data := b.volume("")
	_ = unstructured.SetNestedField(data.Object, "pv-of-"+b.namespace, "spec", "volumeName") // It holds data.
	data.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: changed.GetAPIVersion(), Kind: "Widget", Name: "one", UID: types.UID(before)}})
	if err := b.Create(t.Context(), data); err != nil {
		t.Fatal(err)
	}
	force := func() error {
		_, err := b.Apply(t.Context(), Set{Client: b.Client, Objects: objectsOf(changed.DeepCopy()), Recorded: b.recorded, Force: true})
		return err
	}
	err := force()
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "force does not delete a Widget, because it owns claims that hold data and would go with it: data") {
		t.Errorf("got %v", err)
	}
	if b.uid(changed) != before {
		t.Fatal("it was made anew")
	}
	free := data.DeepCopy()
	free.SetOwnerReferences(nil)
	if err := b.Patch(t.Context(), free, client.MergeFrom(data)); err != nil {
		t.Fatal(err)
	}
	if err := force(); err != nil || b.uid(changed) == before {
		t.Errorf("nothing belongs to it, and it was not made anew: %v", err)
	}
	b.uid(data) // It is there.
}
