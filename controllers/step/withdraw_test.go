package step

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// TestAConfirmationIsUsedOnce and one that was written meanwhile is kept.
func TestAConfirmationIsUsedOnce(t *testing.T) {
	const confirmation = "confirm"
	refused := errors.New("no API server")
	for name, tc := range map[string]struct {
		annotations map[string]string
		outdated    bool
		refuses     error
		patches     int
		left        map[string]string
		fails       func(error) bool
	}{
		"there":                     {annotations: map[string]string{confirmation: "a", "other": "b"}, patches: 1, left: map[string]string{"other": "b"}},
		"not there":                 {annotations: map[string]string{"other": "b"}, left: map[string]string{"other": "b"}},
		"no annotations":            {},
		"written again meanwhile":   {annotations: map[string]string{confirmation: "a"}, outdated: true, patches: 1, left: map[string]string{confirmation: "a", "newer": "c"}, fails: apierrors.IsConflict},
		"the API server refuses it": {annotations: map[string]string{confirmation: "a"}, refuses: refused, patches: 1, left: map[string]string{confirmation: "a"}, fails: func(err error) bool { return errors.Is(err, refused) }},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := v1alpha1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			patches := 0
			c := fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
				Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, options ...client.PatchOption) error {
					if patches++; tc.refuses != nil {
						return tc.refuses
					}
					return c.Patch(ctx, o, patch, options...)
				},
			}).WithObjects(&v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", Annotations: tc.annotations}}).Build()
			app, key := &v1alpha1.App{}, client.ObjectKey{Namespace: "ns", Name: "web"}
			if err := c.Get(t.Context(), key, app); err != nil {
				t.Fatal(err)
			}
			if tc.outdated {
				newer := app.DeepCopy()
				newer.Annotations["newer"] = "c"
				if err := c.Update(t.Context(), newer); err != nil {
					t.Fatal(err)
				}
			}
			before := app.DeepCopy()
			err := Withdraw(t.Context(), c, app, confirmation)
			if (err != nil) != (tc.fails != nil) || err != nil && (!tc.fails(err) || !strings.Contains(err.Error(), "removing the confirmation confirm of web")) {
				t.Errorf("got %v", err)
			}
			if patches != tc.patches {
				t.Errorf("%d patches, want %d", patches, tc.patches)
			}
			if diff := cmp.Diff(before, app); diff != "" {
				t.Errorf("it changed the object (-before +after):\n%s", diff)
			}
			if err := c.Get(t.Context(), key, app); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.left, app.Annotations); diff != "" {
				t.Errorf("annotations (-want +got):\n%s", diff)
			}
		})
	}
}
