package definitions

import (
	"context"
	"errors"
	"testing"
	"testing/fstest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

const crd = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: apps.example.com}\nspec: {group: example.com}\n"

// TestErrorsNameTheDefinitionAndTheAct that the API server refused.
func TestErrorsNameTheDefinitionAndTheAct(t *testing.T) {
	away := errors.New("no API server")
	gets := 0
	get := func(fails int) interceptor.Funcs {
		gets = 0
		return interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				if gets++; gets == fails {
					return away
				}
				return c.Get(ctx, key, o, opts...)
			},
			Apply: func(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error {
				if fails == 0 {
					return away
				}
				return nil
			},
		}
	}
	patch := interceptor.Funcs{Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
		return away
	}}
	for want, with := range map[string]func() (interceptor.Funcs, string){
		"applying CustomResourceDefinition apps.example.com: no API server":                                         func() (interceptor.Funcs, string) { return get(0), crd },
		"applying CustomResourceDefinition apps.example.com: reading it: no API server":                             func() (interceptor.Funcs, string) { return get(1), crd },
		"applying CustomResourceDefinition apps.example.com: waiting until the API server serves it: no API server": func() (interceptor.Funcs, string) { return get(2), crd },
		"applying CustomResourceDefinition apps.example.com: taking over its fields: no API server":                 func() (interceptor.Funcs, string) { return patch, crd },
		"reading crds/apps.yaml: error converting YAML to JSON: yaml: line 1: did not find expected node content":   func() (interceptor.Funcs, string) { return get(0), "[" },
	} {
		funcs, text := with()
		live := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}}
		live.SetName("apps.example.com")
		live.SetManagedFields([]metav1.ManagedFieldsEntry{{
			Manager: "helm", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "apiextensions.k8s.io/v1", FieldsType: "FieldsV1",
			FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:group":{}}}`),
		}})
		c := fake.NewClientBuilder().WithScheme(runtime.NewScheme()).WithReturnManagedFields().WithObjects(live).WithInterceptorFuncs(funcs).Build()
		err := Apply(t.Context(), c, fstest.MapFS{"crds/apps.yaml": &fstest.MapFile{Data: []byte(text)}}, "crds/*.yaml")
		if err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}

// TestADefinitionThatChangedMeanwhileIsReadAgain: the API server writes the status of a new definition at any time.
func TestADefinitionThatChangedMeanwhileIsReadAgain(t *testing.T) {
	live := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}}
	live.SetName("apps.example.com")
	live.SetManagedFields([]metav1.ManagedFieldsEntry{{
		Manager: "helm", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "apiextensions.k8s.io/v1", FieldsType: "FieldsV1",
		FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:group":{}}}`),
	}})
	patches, applied := 0, errors.New("applied")
	c := fake.NewClientBuilder().WithScheme(runtime.NewScheme()).WithReturnManagedFields().WithObjects(live).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			if patches++; patches == 1 {
				return &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonConflict}}
			}
			return nil
		},
		Apply: func(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error {
			return applied
		},
	}).Build()
	err := Apply(t.Context(), c, fstest.MapFS{"crds/apps.yaml": &fstest.MapFile{Data: []byte(crd)}}, "crds/*.yaml")
	if !errors.Is(err, applied) || patches != 2 {
		t.Errorf("after %d patches: %v", patches, err)
	}
}
