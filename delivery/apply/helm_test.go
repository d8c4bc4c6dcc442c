package apply

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/fingerprint"
	"github.com/kubeop/kubeop/delivery/inventory"
	"github.com/kubeop/kubeop/delivery/own"
)

var errWatch = errors.New("the watch is not there yet")

func configID(name string) inventory.ObjectID {
	return inventory.ObjectID{Namespace: "team", Name: name, Kind: "ConfigMap"}
}

// withField is a live object of which kubeop owns one field.
func withField(name, field, version string) *metav1.ObjectMeta {
	return &metav1.ObjectMeta{Namespace: "team", Name: name, ResourceVersion: version, ManagedFields: []metav1.ManagedFieldsEntry{{
		Manager: v1alpha1.FieldManager, Operation: metav1.ManagedFieldsOperationApply, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:data":{"f:` + field + `":{}}}`),
	}}}
}

// showing is an Applier with a watch of these objects; it fails for the object "broken".
func showing(objects ...*metav1.ObjectMeta) *Applier {
	return &Applier{Live: func(_ context.Context, _ schema.GroupVersionKind, key types.NamespacedName) (metav1.Object, bool, error) {
		for _, o := range objects {
			if o.Name == key.Name && o.Namespace == key.Namespace {
				return o, true, nil
			}
		}
		if key.Name == "broken" {
			return nil, true, errWatch
		}
		return nil, true, nil
	}}
}

func configEntry(name, digest string) v1alpha1.InventoryEntry {
	return v1alpha1.InventoryEntry{ID: configID(name).String(), Version: "v1", Digest: digest}
}

func stateOf(name, field string) string {
	return fingerprint.StateOf(configID(name), withField(name, field, "1"))
}

func TestObjectsAreRecordedAsHelmLeftThem(t *testing.T) {
	a := showing(withField("kept", "changed", "1"), withField("bare", "b", "1"), withField("new", "c", "1"))
	left := []Left{
		{ID: configID("written"), Version: "v1", Live: withField("written", "a", "1")},
		{ID: configID("kept"), Version: "v1"}, {ID: configID("bare"), Version: "v1"}, {ID: configID("new"), Version: "v1"}, {ID: configID("gone"), Version: "v1"},
	}
	recorded := []v1alpha1.InventoryEntry{configEntry("written", "before"), configEntry("kept", stateOf("kept", "recorded")), configEntry("bare", ""), configEntry("dropped", "x")}
	want := map[string]string{"written": stateOf("written", "a"), "kept": stateOf("kept", "recorded"), "bare": stateOf("bare", "b"), "new": stateOf("new", "c"), "gone": ""}
	got, err := a.Record(t.Context(), nil, left, recorded)
	if err != nil {
		t.Fatal(err)
	}
	digests := map[string]string{}
	for _, e := range got {
		id, err := inventory.ParseObjectID(e.ID)
		if err != nil || e.Version != "v1" {
			t.Errorf("%+v: %v", e, err)
		}
		digests[id.Name] = e.Digest
	}
	if diff := cmp.Diff(want, digests); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	got, err = a.Record(t.Context(), nil, []Left{left[0], {ID: configID("broken"), Version: "v1"}}, recorded)
	if diff := cmp.Diff(recorded, got); diff != "" || !errors.Is(err, errWatch) || !strings.Contains(err.Error(), "ConfigMap/broken") {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestOnlyObjectsThatOthersChangedAreMoved(t *testing.T) {
	a := showing(withField("same", "a", "5"), withField("changed", "b", "5"), withField("late", "b", "5"))
	recorded := []v1alpha1.InventoryEntry{
		configEntry("same", stateOf("same", "a")), configEntry("changed", stateOf("changed", "a")), configEntry("late", stateOf("late", "a")),
		configEntry("gone", stateOf("gone", "a")), configEntry("not yet", stateOf("not yet", "a")),
	}
	got, err := a.Moved(t.Context(), nil, recorded, map[string]string{configID("late").String(): "6", configID("not yet").String(): "6", configID("changed").String(): "5"})
	want := []v1alpha1.InventoryEntry{configEntry("changed", stateOf("changed", "b")), configEntry("gone", "")}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if got, err := a.Moved(t.Context(), nil, []v1alpha1.InventoryEntry{configEntry("broken", "x")}, nil); !errors.Is(err, errWatch) || got != nil {
		t.Errorf("got %v, %v", got, err)
	}
	if got, err := a.Moved(t.Context(), nil, []v1alpha1.InventoryEntry{{ID: "nonsense"}}, nil); err == nil || got != nil {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestPodsOfAnAppThatMovedKeepItsLabel(t *testing.T) {
	workload := func(app string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "spec": map[string]any{"template": map[string]any{"spec": map[string]any{}}}}}
		own.Owner{Tenant: "acme", Project: "shop", App: app, Namespace: "kubeop-acme-shop"}.Stamp([]*unstructured.Unstructured{o})
		o.SetName("web")
		return o
	}
	of := func(project, app, podsOf string) map[string]string {
		labels := map[string]string{v1alpha1.TenantLabel: "acme", v1alpha1.ProjectLabel: project, v1alpha1.AppLabel: app}
		if podsOf != "" {
			labels[v1alpha1.PodsOfLabel] = podsOf
		}
		return labels
	}
	const labelled = `{"f:spec":{"f:template":{"f:metadata":{"f:labels":{"f:paas.kubeop.io/app":{}}}}}}`
	for name, c := range map[string]struct {
		fields string
		labels map[string]string
		want   string
	}{
		"the same app":                {labelled, of("shop", "web", ""), "web"},
		"from another app":            {labelled, of("shop", "api", ""), "api"},
		"pods of an app before that":  {labelled, of("shop", "web", "older"), "older"},
		"of another project":          {labelled, of("blog", "api", ""), "web"},
		"without an owner":            {labelled, nil, "web"},
		"whose pods have no label":    {"{}", of("shop", "api", ""), ""},
		"whose pods are of this one":  {labelled, of("shop", "api", "web"), "web"},
		"of another tenant's project": {labelled, map[string]string{v1alpha1.TenantLabel: "beta", v1alpha1.ProjectLabel: "shop", v1alpha1.AppLabel: "api"}, "web"},
	} {
		live := &metav1.ObjectMeta{Name: "web", Labels: c.labels, ManagedFields: []metav1.ManagedFieldsEntry{{
			Manager: v1alpha1.FieldManager, Operation: metav1.ManagedFieldsOperationApply, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(c.fields),
		}}}
		kept := (&target{live: live}).withLivePods(workload("web"))
		got, _, err := unstructured.NestedString(kept.Object, "spec", "template", "metadata", "labels", v1alpha1.AppLabel)
		if err != nil || got != c.want {
			t.Errorf("%s: the pods are of %q, want %q; %v", name, got, c.want, err)
		}
	}
	whole := workload("web")
	if (&target{}).withLivePods(whole) != whole {
		t.Error("an object that is not there yet has other pods")
	}
}
