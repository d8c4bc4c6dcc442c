package own

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

func TestClaimsOutliveTheirMaker(t *testing.T) {
	const claim = "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data, annotations: {a: b}}}"
	helm := v1alpha1.AppSpec{Helm: &v1alpha1.HelmSource{}}
	for name, c := range map[string]struct {
		spec         v1alpha1.AppSpec
		object, want string
		changed      []string
	}{
		"a claim of an app without a policy": {v1alpha1.AppSpec{}, claim, claim, nil},
		"a claim of an app with a policy": {v1alpha1.AppSpec{ClaimDeletionPolicy: v1alpha1.ClaimRetain}, claim,
			"{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data, annotations: {a: b, paas.kubeop.io/claim-deletion-policy: Retain}}}", nil},
		"a claim of a chart": {helm, claim,
			"{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data, annotations: {a: b, helm.sh/resource-policy: keep}}}", nil},
		"a claim without annotations": {helm, "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data}}",
			"{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data, annotations: {helm.sh/resource-policy: keep}}}", nil},
		"a StatefulSet that deletes its claims": {helm,
			"{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db}, spec: {persistentVolumeClaimRetentionPolicy: {whenDeleted: Delete, whenScaled: Delete}}}",
			"{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db}, spec: {persistentVolumeClaimRetentionPolicy: {whenDeleted: Retain, whenScaled: Retain}}}", []string{"db"}},
		"a StatefulSet that deletes them when it is scaled": {v1alpha1.AppSpec{ClaimDeletionPolicy: v1alpha1.ClaimDelete},
			"{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db}, spec: {persistentVolumeClaimRetentionPolicy: {whenScaled: Delete}}}",
			"{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db}, spec: {persistentVolumeClaimRetentionPolicy: {whenScaled: Retain}}}", []string{"db"}},
		"a StatefulSet that says nothing": {v1alpha1.AppSpec{},
			"{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db}, spec: {}}", "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db}, spec: {}}", nil},
		"something else": {helm, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}", nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, want := &unstructured.Unstructured{}, &unstructured.Unstructured{}
			for text, o := range map[string]*unstructured.Unstructured{c.object: got, c.want: want} {
				if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
					t.Fatal(err)
				}
			}
			if c.object == c.want {
				got = want.DeepCopy()
			}
			changed := Retain([]*unstructured.Unstructured{got}, &v1alpha1.App{Spec: c.spec})
			if diff := cmp.Diff(want.Object, got.Object); diff != "" {
				t.Errorf("object (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.changed, changed); diff != "" {
				t.Errorf("changed (-want +got):\n%s", diff)
			}
		})
	}
}

func TestChangedStatefulSetsAreNamedInOrder(t *testing.T) {
	set := func(name string) *unstructured.Unstructured {
		return object(t, "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: "+name+"}, spec: {persistentVolumeClaimRetentionPolicy: {whenDeleted: Delete}}}")
	}
	if diff := cmp.Diff([]string{"a", "b", "c"}, Retain([]*unstructured.Unstructured{set("b"), set("c"), set("a")}, &v1alpha1.App{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
