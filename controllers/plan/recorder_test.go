package plan

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/app/subject"
)

var configMaps = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}

func settings(name string, data map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"namespace": "shop", "name": name}, "data": data}}
	o.SetGroupVersionKind(configMaps)
	return o
}

// tried is a recorder on an API server that has the ConfigMap "old". dryRuns are the dry runs that the API server got.
type tried struct {
	*recorder
	t       *testing.T
	dryRuns []string
	fails   error
}

func try(t *testing.T, itself bool) *tried {
	r := &tried{t: t}
	there := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "old"}, Data: map[string]string{"a": "1", "b": "2"}}
	changed := func() error {
		r.t.Error("the cluster was changed")
		return errors.New("changed")
	}
	api := fake.NewClientBuilder().WithObjects(there).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(_ context.Context, _ client.WithWatch, o client.Object, _ client.Patch, options ...client.PatchOption) error {
			if !slices.Contains((&client.PatchOptions{}).ApplyOptions(options).DryRun, metav1.DryRunAll) {
				return changed()
			}
			r.dryRuns = append(r.dryRuns, o.GetName())
			return r.fails
		},
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return changed() },
		Update: func(context.Context, client.WithWatch, client.Object, ...client.UpdateOption) error { return changed() },
		Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error { return changed() },
	}).Build()
	r.recorder = newRecorder(api, itself)
	return r
}

// see reads an object, as an apply and a deletion do first.
func (r *tried) see(name string) {
	r.t.Helper()
	if _, known, err := r.live(r.t.Context(), configMaps, types.NamespacedName{Namespace: "shop", Name: name}); err != nil || !known {
		r.t.Fatalf("%s is known: %t, %v", name, known, err)
	}
}

func (r *tried) apply(o *unstructured.Unstructured) error {
	r.t.Helper()
	data, err := yaml.Marshal(o.Object)
	if err != nil {
		r.t.Fatal(err)
	}
	if data, err = yaml.YAMLToJSON(data); err != nil {
		r.t.Fatal(err)
	}
	return r.Patch(r.t.Context(), o, client.RawPatch(types.ApplyPatchType, data), client.FieldOwner("kubeop"))
}

// wantChanges compares the recorded changes.
func (r *tried) wantChanges(want ...Change) {
	r.t.Helper()
	of := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	got := r.changes(&delivery{app: of, made: &Rendered{Subject: (&subject.Subjects{}).New(of)}})
	sortChanges(got)
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(Change{})); diff != "" {
		r.t.Errorf("changes (-want +got):\n%s", diff)
	}
}

func TestWritesOfAPlanAreRecordedAndNotSent(t *testing.T) {
	for name, itself := range map[string]bool{"with the rights of the deployer": true, "in this process": false} {
		t.Run(name, func(t *testing.T) {
			r := try(t, itself)
			for _, object := range []string{"old", "new"} {
				r.see(object)
				if err := r.apply(settings(object, map[string]any{"a": "9"})); err != nil {
					t.Fatal(err)
				}
			}
			fields := []Field{{Path: "/data/a", Before: `"1"`, After: `"9"`}}
			if itself { // The answer of this API server has only what was sent.
				fields = append(fields, Field{Path: "/data/b", Before: `"2"`})
			}
			r.wantChanges(Change{Action: Create, Object: "ConfigMap/new"}, Change{Action: Update, Object: "ConfigMap/old", Fields: fields})
			if want := map[bool]int{true: 2, false: 0}[itself]; len(r.dryRuns) != want {
				t.Errorf("the API server got the dry runs %v, want %d", r.dryRuns, want)
			}
		})
	}
}

func TestADeletionIsRecordedAndNotSent(t *testing.T) {
	r := try(t, true)
	r.see("old")
	if err := r.Delete(t.Context(), settings("old", nil)); err != nil {
		t.Fatal(err)
	}
	r.wantChanges(Change{Action: Delete, Object: "ConfigMap/old"})
	// It still exists for the API server, so a dry run of what recreates it would be one of an update.
	if err := r.apply(settings("old", map[string]any{"a": "9"})); err != nil || len(r.dryRuns) != 0 {
		t.Errorf("%v, the API server got the dry runs %v", err, r.dryRuns)
	}
	r.wantChanges(Change{Action: Recreate, Object: "ConfigMap/old"})
}

// TestARefusalOfTheAPIServerIsReturned, and the plan has no change of the object.
func TestARefusalOfTheAPIServerIsReturned(t *testing.T) {
	r := try(t, true)
	r.fails = apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "new", errors.New("quota"))
	r.see("new")
	if err := r.apply(settings("new", nil)); !apierrors.IsForbidden(err) {
		t.Errorf("got %v", err)
	}
	r.wantChanges()
}

// TestNothingIsReadInANamespaceThatDoesNotExist: the deployer of a new project has no rights yet.
func TestNothingIsReadInANamespaceThatDoesNotExist(t *testing.T) {
	r := newRecorder(interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, key.Name, errors.New("no rights"))
		},
	}), false)
	r.absent = "new"
	if live, known, err := r.live(t.Context(), configMaps, types.NamespacedName{Namespace: "new", Name: "web"}); live != nil || !known || err != nil {
		t.Errorf("got %v, %t, %v", live, known, err)
	}
	if _, _, err := r.live(t.Context(), configMaps, types.NamespacedName{Namespace: "other", Name: "web"}); !apierrors.IsForbidden(err) {
		t.Errorf("of another namespace: %v", err)
	}
}

// TestAnotherPatchIsADryRunToo: it changes who owns fields.
func TestAnotherPatchIsADryRunToo(t *testing.T) {
	for itself, want := range map[bool]int{true: 1, false: 0} {
		r := try(t, itself)
		if err := r.Patch(t.Context(), settings("old", nil), client.RawPatch(types.JSONPatchType, []byte("[]"))); err != nil || len(r.dryRuns) != want {
			t.Errorf("with the rights of the deployer: %t; %v after the dry runs %v", itself, err, r.dryRuns)
		}
	}
}

// TestDeclaredFieldsAreLaidOverLiveOnes, so that defaults of the API server are no changes.
func TestDeclaredFieldsAreLaidOverLiveOnes(t *testing.T) {
	for name, tc := range map[string]struct{ is, want, laid any }{
		"a field more":           {map[string]any{"a": 1, "b": 2}, map[string]any{"a": 3}, map[string]any{"a": 3, "b": 2}},
		"a nested one":           {map[string]any{"a": map[string]any{"x": 1}}, map[string]any{"a": map[string]any{"y": 2}}, map[string]any{"a": map[string]any{"x": 1, "y": 2}}},
		"items":                  {[]any{map[string]any{"a": 1, "b": 2}}, []any{map[string]any{"a": 3}}, []any{map[string]any{"a": 3, "b": 2}}},
		"a list of other length": {[]any{1, 2}, []any{3}, []any{3}},
		"another type":           {"text", map[string]any{"a": 1}, map[string]any{"a": 1}},
		"another type of list":   {"text", []any{1}, []any{1}},
		"a value":                {1, 2, 2},
		"nothing before":         {nil, map[string]any{"a": 1}, map[string]any{"a": 1}},
	} {
		if diff := cmp.Diff(tc.laid, overlay(tc.is, tc.want)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
