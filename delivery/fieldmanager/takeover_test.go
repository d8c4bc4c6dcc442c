package fieldmanager

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

func TestFieldsAreTakenBackFromPeopleAndRestoreToolsOnly(t *testing.T) {
	applied := metav1.ManagedFieldsEntry{Manager: v1alpha1.FieldManager, Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1("{}")}
	tool := metav1.ManagedFieldsEntry{Manager: "velero", Operation: metav1.ManagedFieldsOperationUpdate, FieldsV1: metav1.NewFieldsV1("{}")}
	for name, c := range map[string]struct {
		version, kind string
		managers      []metav1.ManagedFieldsEntry
		reads         bool
	}{
		"an App that kubeop applied":                {"paas.kubeop.io/v1alpha1", "App", []metav1.ManagedFieldsEntry{applied}, false},
		"an App that kubeop applied and others use": {"paas.kubeop.io/v1alpha1", "App", []metav1.ManagedFieldsEntry{applied, tool}, false},
		"an App that a tool restored":               {"paas.kubeop.io/v1alpha1", "App", []metav1.ManagedFieldsEntry{tool}, true},
		"another kind that a controller wrote":      {"v1", "ConfigMap", []metav1.ManagedFieldsEntry{tool}, false},
	} {
		t.Run(name, func(t *testing.T) {
			read := false
			api := interceptor.NewClient(fake.NewClientBuilder().WithScheme(runtime.NewScheme()).Build(), interceptor.Funcs{
				Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
					read = true
					return nil
				},
				Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
					return nil
				},
			})
			o := &unstructured.Unstructured{}
			o.SetAPIVersion(c.version)
			o.SetKind(c.kind)
			if err := TakeBack(t.Context(), api, o, &metav1.ObjectMeta{ManagedFields: c.managers}, Unmanaged{}); err != nil || read != c.reads {
				t.Errorf("the owners of the fields are read: %t, want %t: %v", read, c.reads, err)
			}
		})
	}
}
