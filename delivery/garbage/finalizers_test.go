package garbage

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

func sorted(all []string) []string { return slices.Sorted(slices.Values(all)) }

func TestFinalizersAreRemovedOnlyFromTheOwnersObjectsThatAreBeingDeleted(t *testing.T) {
	const foreign, ours = "example.com/x", v1alpha1.Finalizer
	otherTenant := configMap("tenant", deleted, heldBy(foreign))
	otherTenant.Labels[v1alpha1.TenantLabel] = "beta"
	api := fake.NewClientBuilder().WithObjects(
		configMap("own", deleted, heldBy(foreign)), configMap("two", deleted, heldBy("example.com/y", foreign, ours)), configMap("alive", heldBy(foreign)),
		configMap("other", deleted, heldBy(foreign), ofApp("api")), otherTenant, configMap("kubeops", deleted, heldBy(ours)),
	).Build()
	names := []string{"own", "two", "alive", "other", "tenant", "kubeops", "gone"}
	removed, err := RemoveFinalizers(t.Context(), api, entries(names...), webLabels)
	if err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"example.com/x from ConfigMap/own", "example.com/y, example.com/x from ConfigMap/two"}, removed); diff != "" {
		t.Errorf("removed (-want +got):\n%s", diff)
	}
	left := map[string][]string{}
	for _, name := range names {
		o := &corev1.ConfigMap{}
		if err := api.Get(t.Context(), client.ObjectKey{Namespace: shop, Name: name}, o); err == nil {
			left[name] = o.Finalizers
		}
	}
	want := map[string][]string{"two": {ours}, "alive": {foreign}, "other": {foreign}, "tenant": {foreign}, "kubeops": {ours}}
	if diff := cmp.Diff(want, left); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
}

// TestAConflictOfFinalizersIsLookedAtAgain: the caller comes back while objects are left, so a change meanwhile is no failure.
func TestAConflictOfFinalizersIsLookedAtAgain(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"it changed meanwhile": {err: apierrors.NewConflict(configMaps, "bad", nil)},
		"it is gone":           {err: apierrors.NewNotFound(configMaps, "bad")},
		"no answer":            {err: errAway, want: "ConfigMap/bad: removing the finalizers from ConfigMap/bad: the API server is away"},
	} {
		t.Run(name, func(t *testing.T) {
			api := fake.NewClientBuilder().WithObjects(configMap("bad", deleted, heldBy("example.com/x")), configMap("good", deleted, heldBy("example.com/x"))).WithInterceptorFuncs(interceptor.Funcs{
				Patch: func(ctx context.Context, api client.WithWatch, o client.Object, patch client.Patch, _ ...client.PatchOption) error {
					if o.GetName() == "bad" {
						return c.err
					}
					return api.Patch(ctx, o, patch)
				},
			}).Build()
			removed, err := RemoveFinalizers(t.Context(), api, entries("bad", "good"), webLabels)
			if (err == nil) != (c.want == "") || err != nil && err.Error() != c.want {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if !slices.Contains(removed, "example.com/x from ConfigMap/good") {
				t.Errorf("the other object is not freed: %v", removed)
			}
		})
	}
}

func TestUnreadableObjectsAreReportedAndTheRestIsFreed(t *testing.T) {
	api := fake.NewClientBuilder().WithObjects(configMap("good", deleted, heldBy("example.com/x"))).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, api client.WithWatch, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
			if key.Name == "bad" {
				return errAway
			}
			return api.Get(ctx, key, o)
		},
	}).Build()
	all := append([]v1alpha1.InventoryEntry{{ID: "nonsense"}}, entries("bad", "good")...)
	removed, err := RemoveFinalizers(t.Context(), api, all, webLabels)
	const want = `parsing the inventory ID "nonsense": want <namespace>_<name>_<group>_<kind>` + "\nConfigMap/bad: the API server is away"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if diff := cmp.Diff([]string{"example.com/x from ConfigMap/good"}, removed); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
