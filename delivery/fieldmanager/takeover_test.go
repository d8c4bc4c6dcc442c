package fieldmanager

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
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

// TestFieldsAreTakenBackFromTheObjectThatWasSeenOnly patches the owners of fields: those that a person set become kubeop's, unmanaged ones
// nobody's, and those of other managers stay. An object that replaced the one that was seen is left alone.
func TestFieldsAreTakenBackFromTheObjectThatWasSeenOnly(t *testing.T) {
	entry := func(manager, fields string) metav1.ManagedFieldsEntry {
		operation := metav1.ManagedFieldsOperationUpdate
		if manager == v1alpha1.FieldManager {
			operation = metav1.ManagedFieldsOperationApply
		}
		return metav1.ManagedFieldsEntry{Manager: manager, Operation: operation, APIVersion: "apps/v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields)}
	}
	ours := entry(v1alpha1.FieldManager, `{"f:spec":{"f:paused":{},"f:replicas":{}}}`)
	edited, controller := entry("kubectl-edit", `{"f:spec":{"f:minReadySeconds":{}}}`), entry("controller", `{"f:status":{"f:replicas":{}}}`)
	live := metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "1", ResourceVersion: "7", ManagedFields: []metav1.ManagedFieldsEntry{ours, edited, controller}}
	for name, c := range map[string]struct {
		seen types.UID
		left Unmanaged
		want map[string]string
	}{
		"by hand":                        {"1", Unmanaged{}, map[string]string{v1alpha1.FieldManager: `{"f:spec":{"f:minReadySeconds":{},"f:paused":{},"f:replicas":{}}}`, "controller": `{"f:status":{"f:replicas":{}}}`}},
		"by hand, scaled by another one": {"1", Unmanaged{Replicas: true}, map[string]string{v1alpha1.FieldManager: `{"f:spec":{"f:minReadySeconds":{},"f:paused":{}}}`, "controller": `{"f:status":{"f:replicas":{}}}`}},
		"scaled by another one":          {"1", Unmanaged{Replicas: true}, map[string]string{v1alpha1.FieldManager: `{"f:spec":{"f:paused":{}}}`, "controller": `{"f:status":{"f:replicas":{}}}`}},
		"it was replaced":                {"2", Unmanaged{}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			live := live.DeepCopy()
			if name == "scaled by another one" {
				live.ManagedFields = []metav1.ManagedFieldsEntry{ours, controller}
			}
			var got map[string]string
			api := interceptor.NewClient(fake.NewClientBuilder().WithScheme(runtime.NewScheme()).Build(), interceptor.Funcs{
				Get: func(_ context.Context, _ client.WithWatch, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
					if kind := into.GetObjectKind().GroupVersionKind(); kind.GroupVersion().String() != "apps/v1" || kind.Kind != "Deployment" {
						t.Errorf("a %s is read", kind)
					}
					into.(*metav1.PartialObjectMetadata).ObjectMeta = *live.DeepCopy()
					return nil
				},
				Patch: func(_ context.Context, _ client.WithWatch, o client.Object, patch client.Patch, _ ...client.PatchOption) error {
					got = map[string]string{}
					for _, f := range o.GetManagedFields() {
						got[f.Manager] = string(f.FieldsV1.GetRawBytes())
					}
					text, err := patch.Data(o)
					if !strings.Contains(string(text), `{"op":"replace","path":"/metadata/resourceVersion","value":"7"}`) {
						t.Errorf("the patch is not for the version that was read: %s", text)
					}
					return err
				},
			})
			o := &unstructured.Unstructured{}
			o.SetAPIVersion("apps/v1")
			o.SetKind("Deployment")
			seen := live.DeepCopy()
			seen.UID = c.seen
			if err := TakeBack(t.Context(), api, o, seen, c.left); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("the owners (-want +got):\n%s", diff)
			}
		})
	}
}

// TestARestoredObjectIsTakenBackFromItsTool: kubeop then owns what the tool wrote, and not what a controller reports in the status.
func TestARestoredObjectIsTakenBackFromItsTool(t *testing.T) {
	entry := func(manager, subresource, fields string, operation metav1.ManagedFieldsOperationType) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Operation: operation, Subresource: subresource, APIVersion: "paas.kubeop.io/v1alpha1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields)}
	}
	live := metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "1", ResourceVersion: "7", ManagedFields: []metav1.ManagedFieldsEntry{
		entry("velero", "", `{"f:spec":{"f:image":{}}}`, metav1.ManagedFieldsOperationUpdate),
		entry("kubeop", "status", `{"f:status":{"f:conditions":{}}}`, metav1.ManagedFieldsOperationUpdate),
		entry("team", "", `{"f:metadata":{"f:labels":{"f:team":{}}}}`, metav1.ManagedFieldsOperationApply),
	}}
	o := &unstructured.Unstructured{}
	o.SetAPIVersion("paas.kubeop.io/v1alpha1")
	o.SetKind("App")
	for name, c := range map[string]struct {
		// reads and writes are the errors of requests. broken: what a manager owns cannot be decoded.
		reads, writes error
		broken        bool
		want          map[string]string
		says          string
	}{
		"it is there": {want: map[string]string{
			v1alpha1.FieldManager: `{"f:spec":{"f:image":{}}}`, "kubeop status": `{"f:status":{"f:conditions":{}}}`, "team": `{"f:metadata":{"f:labels":{"f:team":{}}}}`,
		}},
		"it is gone":               {reads: apierrors.NewNotFound(schema.GroupResource{Resource: "apps"}, "web")},
		"it cannot be read":        {reads: errors.New("away"), says: "changing the owners of its fields: away"},
		"it cannot be written":     {writes: errors.New("away"), says: "changing the owners of its fields: away"},
		"its owners are no fields": {broken: true, says: "changing the owners of its fields: "},
	} {
		t.Run(name, func(t *testing.T) {
			var got map[string]string
			live := live.DeepCopy()
			if c.broken {
				live.ManagedFields = append(live.ManagedFields, entry("velero", "", `{"f:spec":7}`, metav1.ManagedFieldsOperationUpdate))
			}
			api := interceptor.NewClient(fake.NewClientBuilder().WithScheme(runtime.NewScheme()).Build(), interceptor.Funcs{
				Get: func(_ context.Context, _ client.WithWatch, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
					into.(*metav1.PartialObjectMetadata).ObjectMeta = *live.DeepCopy()
					return c.reads
				},
				Patch: func(_ context.Context, _ client.WithWatch, o client.Object, _ client.Patch, _ ...client.PatchOption) error {
					if c.writes != nil {
						return c.writes
					}
					got = map[string]string{}
					for _, f := range o.GetManagedFields() {
						got[strings.TrimSpace(f.Manager+" "+f.Subresource)] = string(f.FieldsV1.GetRawBytes())
					}
					return nil
				},
			})
			err := TakeBack(t.Context(), api, o, live.DeepCopy(), Unmanaged{})
			if c.says != "" && (err == nil || !strings.HasPrefix(err.Error(), c.says)) || c.says == "" && err != nil {
				t.Errorf("got %v, want %q", err, c.says)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("the owners (-want +got):\n%s", diff)
			}
		})
	}
}
