package fieldmanager

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

func TestUnmanagedFieldsAreCutOutOfAnObject(t *testing.T) {
	hook := map[string]any{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
		"metadata": map[string]any{"name": "web", "annotations": map[string]any{"cert-manager.io/inject-ca-from": "web/web"}},
		"webhooks": []any{map[string]any{"name": "a.example.com", "clientConfig": map[string]any{"caBundle": "Cg==", "url": "https://a"}}},
	}
	o := &unstructured.Unstructured{Object: hook}
	if !InjectsCABundles(o) {
		t.Fatal("the annotation is not seen")
	}
	got := Unmanaged{CABundles: true}.Without(o)
	want := []any{map[string]any{"name": "a.example.com", "clientConfig": map[string]any{"url": "https://a"}}}
	if diff := cmp.Diff(want, got.Object["webhooks"]); diff != "" {
		t.Errorf("webhooks (-want +got):\n%s", diff)
	}
	if config, _, _ := unstructured.NestedSlice(o.Object, "webhooks"); config[0].(map[string]any)["clientConfig"].(map[string]any)["caBundle"] != "Cg==" {
		t.Error("the manifest itself was changed")
	}
}

func TestUnmanagedFieldsAreReleased(t *testing.T) {
	cases := map[string]struct {
		unmanaged    Unmanaged
		manager      string
		fields, want string
		released     bool
	}{
		"replicas among others":        {Unmanaged{Replicas: true}, v1alpha1.FieldManager, `{"f:spec":{"f:paused":{},"f:replicas":{}}}`, `{"f:spec":{"f:paused":{}}}`, true},
		"nothing but replicas":         {Unmanaged{Replicas: true}, v1alpha1.FieldManager, `{"f:spec":{"f:replicas":{}}}`, `{}`, true},
		"no replicas":                  {Unmanaged{Replicas: true}, v1alpha1.FieldManager, `{"f:spec":{"f:paused":{}}}`, `{"f:spec":{"f:paused":{}}}`, false},
		"another's":                    {Unmanaged{Replicas: true}, "other", `{"f:spec":{"f:replicas":{}}}`, `{"f:spec":{"f:replicas":{}}}`, false},
		"nothing ceded":                {Unmanaged{}, v1alpha1.FieldManager, `{"f:spec":{"f:replicas":{}}}`, `{"f:spec":{"f:replicas":{}}}`, false},
		"a bundle of a webhook":        {Unmanaged{CABundles: true}, v1alpha1.FieldManager, `{"f:webhooks":{"k:{\"name\":\"a\"}":{".":{},"f:clientConfig":{"f:caBundle":{}}}}}`, `{"f:webhooks":{"k:{\"name\":\"a\"}":{".":{}}}}`, true},
		"replicas that a person set":   {Unmanaged{Replicas: true}, "kubectl-edit", `{"f:spec":{"f:paused":{},"f:replicas":{}}}`, `{"f:spec":{"f:paused":{}}}`, true},
		"a bundle that nobody injects": {Unmanaged{Replicas: true}, v1alpha1.FieldManager, `{"f:webhooks":{"k:{\"name\":\"a\"}":{"f:clientConfig":{"f:caBundle":{}}}}}`, `{"f:webhooks":{"k:{\"name\":\"a\"}":{"f:clientConfig":{"f:caBundle":{}}}}}`, false},
		"no replicas, unsorted":        {Unmanaged{Replicas: true}, v1alpha1.FieldManager, `{"f:spec":{"f:paused":{},"f:other":{}}}`, `{"f:spec":{"f:paused":{},"f:other":{}}}`, false},
		"what cannot be decoded":       {Unmanaged{Replicas: true}, v1alpha1.FieldManager, `no JSON`, `no JSON`, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			entry := metav1.ManagedFieldsEntry{Manager: c.manager, Operation: metav1.ManagedFieldsOperationApply, FieldsV1: &metav1.FieldsV1{}}
			entry.FieldsV1.SetRawBytes([]byte(c.fields))
			if got := c.unmanaged.Release(&entry); got != c.released {
				t.Errorf("released is %t, want %t", got, c.released)
			}
			if got := string(entry.FieldsV1.GetRawBytes()); got != c.want {
				t.Errorf("fields are %s, want %s", got, c.want)
			}
		})
	}
}
