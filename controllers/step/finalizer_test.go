package step

import (
	"context"
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// TestOnlyThisObjectLosesItsFinalizer: one that was made anew under the same name keeps it, because the patch names the UID, and others'
// finalizers stay.
func TestOnlyThisObjectLosesItsFinalizer(t *testing.T) {
	apps := schema.GroupResource{Group: v1alpha1.GroupVersion.Group, Resource: "apps"}
	for name, c := range map[string]struct {
		finalizers []string
		answer     error
		want       string
		there      bool
		fails      bool
	}{
		"kubeop's alone":   {finalizers: []string{v1alpha1.Finalizer}, want: `{"metadata":{"finalizers":[],"uid":"first"}}`, there: true},
		"others' as well":  {finalizers: []string{"a.example/x", v1alpha1.Finalizer, "b.example/y"}, want: `{"metadata":{"finalizers":["a.example/x","b.example/y"],"uid":"first"}}`, there: true},
		"it is gone":       {finalizers: []string{v1alpha1.Finalizer}, want: `{"metadata":{"finalizers":[],"uid":"first"}}`, answer: apierrors.NewNotFound(apps, "web")},
		"it was made anew": {finalizers: []string{v1alpha1.Finalizer}, want: `{"metadata":{"finalizers":[],"uid":"first"}}`, answer: apierrors.NewConflict(apps, "web", errors.New("UID")), fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := v1alpha1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			sent := ""
			r := &Runner{Client: interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).Build(), interceptor.Funcs{
				Patch: func(_ context.Context, _ client.WithWatch, o client.Object, patch client.Patch, _ ...client.PatchOption) error {
					data, err := patch.Data(o)
					sent = string(data)
					return errors.Join(err, c.answer)
				},
			})}
			app := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-acme-shop", Name: "web", UID: "first", Finalizers: c.finalizers}}
			r.meant.Store(app.UID, nil)
			there, err := r.release(t.Context(), app)
			if there != c.there || (err != nil) != c.fails || sent != c.want {
				t.Errorf("got %t, %v; sent %s, want %s", there, err, sent, c.want)
			}
			if _, known := r.meant.Load(app.UID); known != c.fails {
				t.Errorf("what was known of it stays: %t, want %t", known, c.fails)
			}
		})
	}
}
