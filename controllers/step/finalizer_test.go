package step

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// TestOnlyThisObjectLosesItsFinalizer: one that was made anew under the same name keeps it, because the patch names the UID and the version, and others'
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
		"kubeop's alone":   {finalizers: []string{v1alpha1.Finalizer}, want: `{"metadata":{"finalizers":[],"resourceVersion":"7","uid":"first"}}`, there: true},
		"others' as well":  {finalizers: []string{"a.example/x", v1alpha1.Finalizer, "b.example/y"}, want: `{"metadata":{"finalizers":["a.example/x","b.example/y"],"resourceVersion":"7","uid":"first"}}`, there: true},
		"it is gone":       {finalizers: []string{v1alpha1.Finalizer}, want: `{"metadata":{"finalizers":[],"resourceVersion":"7","uid":"first"}}`, answer: apierrors.NewNotFound(apps, "web")},
		"it was made anew": {finalizers: []string{v1alpha1.Finalizer}, want: `{"metadata":{"finalizers":[],"resourceVersion":"7","uid":"first"}}`, answer: apierrors.NewConflict(apps, "web", errors.New("UID")), fails: true},
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
			app := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-acme-shop", Name: "web", UID: "first", ResourceVersion: "7", Finalizers: c.finalizers}}
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

// TestFinalizersOfOthersStayWhenTheCacheIsLate: those that were added since the object was read.
func TestFinalizersOfOthersStayWhenTheCacheIsLate(t *testing.T) {
	for name, c := range map[string]struct {
		stale []string
		write func(*Runner, *v1alpha1.App) (ctrl.Result, error)
	}{
		"when kubeop's is added": {nil, func(r *Runner, app *v1alpha1.App) (ctrl.Result, error) {
			return r.Run(t.Context(), app, &facts{app: app})
		}},
		"when kubeop's is removed": {[]string{v1alpha1.Finalizer}, func(r *Runner, app *v1alpha1.App) (ctrl.Result, error) {
			return r.Finalize(t.Context(), app, &facts{app: app})
		}},
		"when a suspended object is let go": {[]string{v1alpha1.Finalizer}, func(r *Runner, app *v1alpha1.App) (ctrl.Result, error) {
			app.Spec.Suspend = true
			return r.Finalize(t.Context(), app, &facts{app: app})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t, web(func(a *v1alpha1.App) { a.Finalizers = c.stale }))
			stale := b.app.DeepCopy()
			b.app.Finalizers = append(b.app.Finalizers, "a.example/x")
			if err := b.Client.Update(t.Context(), b.app); err != nil {
				t.Fatal(err)
			}
			if result, err := c.write(b.Runner, stale); err != nil || result.RequeueAfter != conflictPause {
				t.Errorf("got %+v, %v", result, err)
			}
			if c.stale != nil && !slices.Contains(stale.Finalizers, v1alpha1.Finalizer) {
				t.Error("the finalizer seems to be removed")
			}
			b.read(t, b.app)
			if want := append(slices.Clone(c.stale), "a.example/x"); !slices.Equal(b.app.Finalizers, want) {
				t.Errorf("its finalizers are %v, want %v", b.app.Finalizers, want)
			}
			if _, err := c.write(b.Runner, b.app.DeepCopy()); err != nil {
				t.Fatal(err)
			}
			if b.read(t, b.app); !slices.Contains(b.app.Finalizers, "a.example/x") || slices.Contains(b.app.Finalizers, v1alpha1.Finalizer) == (len(c.stale) > 0) {
				t.Errorf("at last its finalizers are %v", b.app.Finalizers)
			}
		})
	}
}

// TestNothingIsFinalizedWithoutTheFinalizer: what the object made was deleted before, and another object may have made it again.
func TestNothingIsFinalizedWithoutTheFinalizer(t *testing.T) {
	b := newFixture(t, web(func(a *v1alpha1.App) {
		a.DeletionTimestamp, a.Finalizers = &metav1.Time{Time: time.Unix(1, 0)}, []string{"example.com/other"}
	}))
	f := &facts{app: b.app}
	ran := false
	result, err := b.Finalize(t.Context(), b.app, f, Of("Removed", f, func(context.Context, *facts) error { ran = true; return nil }))
	if ran || err != nil || !result.IsZero() {
		t.Errorf("ran: %t, %+v, %v", ran, result, err)
	}
}
