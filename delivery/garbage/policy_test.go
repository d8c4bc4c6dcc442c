package garbage

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/inventory"
)

func annotated(policy string) func(*corev1.ConfigMap) {
	return func(o *corev1.ConfigMap) { o.Annotations = map[string]string{v1alpha1.PruneAnnotation: policy} }
}

// lists are the outcomes of a removal, by the names of the objects.
type lists struct{ Left, Held, Kept, Leaving, Wanted []string }

func listsOf(r Removed) lists {
	names := func(entries []v1alpha1.InventoryEntry) (all []string) {
		for _, e := range entries {
			id, _ := inventory.ParseObjectID(e.ID)
			all = append(all, id.Name)
		}
		return all
	}
	out := lists{Left: names(r.Left), Held: names(r.Held), Kept: names(r.Kept), Wanted: r.Wanted}
	for _, o := range r.Leaving {
		out.Leaving = append(out.Leaving, o.String())
	}
	return out
}

// TestProtectedObjectsStay: policies count only where the removal is guarded, and a confirmation does not delete what is never deleted.
func TestProtectedObjectsStay(t *testing.T) {
	for name, c := range map[string]struct {
		change             func(*corev1.ConfigMap)
		recorded           v1alpha1.PrunePolicy
		guarded, confirmed bool
		want               lists
	}{
		"no policy":                       {change: annotated(""), guarded: true},
		"to be confirmed":                 {change: annotated(v1alpha1.PruneConfirm), guarded: true, want: lists{Left: []string{"one"}, Held: []string{"one"}}},
		"confirmed":                       {change: annotated(v1alpha1.PruneConfirm), guarded: true, confirmed: true},
		"to be confirmed by the record":   {change: annotated(""), recorded: v1alpha1.PolicyConfirm, guarded: true, want: lists{Left: []string{"one"}, Held: []string{"one"}}},
		"confirmed against the record":    {change: annotated(""), recorded: v1alpha1.PolicyConfirm, guarded: true, confirmed: true},
		"never deleted":                   {change: annotated(v1alpha1.PruneDisabled), guarded: true, want: lists{Kept: []string{"one"}}},
		"never deleted, though confirmed": {change: annotated(v1alpha1.PruneDisabled), guarded: true, confirmed: true, want: lists{Kept: []string{"one"}}},
		"never deleted by the record":     {change: annotated(""), recorded: v1alpha1.PolicyDisabled, guarded: true, want: lists{Kept: []string{"one"}}},
		"not guarded":                     {change: annotated(v1alpha1.PruneDisabled), recorded: v1alpha1.PolicyConfirm},
		"of another app":                  {change: func(o *corev1.ConfigMap) { annotated(v1alpha1.PruneConfirm)(o); ofApp("api")(o) }, guarded: true},
		"deleted already, though never to be": {change: func(o *corev1.ConfigMap) {
			annotated(v1alpha1.PruneDisabled)(o)
			deleted(o)
			heldBy("example.com/x")(o)
		}, guarded: true, want: lists{Left: []string{"one"}, Leaving: []string{"ConfigMap/one, which the finalizer example.com/x holds"}}},
	} {
		t.Run(name, func(t *testing.T) {
			api := fake.NewClientBuilder().WithObjects(configMap("one", c.change)).Build()
			r := removal(api, entries("one"))
			r.Guarded, r.Confirmed, r.Entries[0].Policy = c.guarded, c.confirmed, c.recorded
			r.Live = seenBy(api)
			removed, err := Remove(t.Context(), r)
			if diff := cmp.Diff(c.want, listsOf(removed)); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
			if len(removed.Held) > 0 && removed.Left[0].Policy != c.recorded {
				t.Errorf("it is recorded as %q, want %q", removed.Left[0].Policy, c.recorded)
			}
			stays := len(c.want.Left)+len(c.want.Kept) > 0 || strings.Contains(name, "another app")
			if there := api.Get(t.Context(), client.ObjectKey{Namespace: shop, Name: "one"}, &corev1.ConfigMap{}) == nil; there != stays {
				t.Errorf("it stays: %t, want %t", there, stays)
			}
		})
	}
}

// seenBy is a watch that shows what the API server has.
func seenBy(c client.Client) func(context.Context, schema.GroupVersionKind, types.NamespacedName) (metav1.Object, bool, error) {
	return func(ctx context.Context, kind schema.GroupVersionKind, key types.NamespacedName) (metav1.Object, bool, error) {
		o := &metav1.PartialObjectMetadata{}
		o.SetGroupVersionKind(kind)
		if err := c.Get(ctx, key, o); err != nil {
			return nil, true, client.IgnoreNotFound(err)
		}
		return o, true, nil
	}
}

// TestAnObjectThatIsHeldIsReadOnce: without a watch, the next pass goes by the record. Once the watch shows that the object is gone, it is
// not held any more.
func TestAnObjectThatIsHeldIsReadOnce(t *testing.T) {
	reads := 0
	api := fake.NewClientBuilder().WithObjects(configMap("one", annotated(v1alpha1.PruneConfirm))).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, api client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			reads++
			return api.Get(ctx, key, o, options...)
		},
	}).Build()
	r := removal(api, entries("one"))
	r.Guarded = true
	for pass := range 2 {
		removed, err := Remove(t.Context(), r)
		if err != nil || len(removed.Held) != 1 || removed.Left[0].Policy != v1alpha1.PolicyConfirm || reads != 1 {
			t.Fatalf("pass %d: %d reads, held are %v, %v", pass, reads, removed.Held, err)
		}
		r.Entries = removed.Left
	}
	r.Confirmed = true
	if removed, err := Remove(t.Context(), r); err != nil || len(removed.Left) > 0 {
		t.Errorf("an object that was confirmed is left: %v, %v", removed.Left, err)
	}
	r.Confirmed = false
	r.Entries[0].ID = entries("gone")[0].ID
	r.Live = func(context.Context, schema.GroupVersionKind, types.NamespacedName) (metav1.Object, bool, error) {
		return nil, true, nil
	}
	if removed, err := Remove(t.Context(), r); err != nil || len(removed.Left) > 0 {
		t.Errorf("an object that is gone is left: %v, %v", removed.Left, err)
	}
}

// TestAnObjectThatAnotherAppDeclaresIsLeftToIt until that app has applied it.
func TestAnObjectThatAnotherAppDeclaresIsLeftToIt(t *testing.T) {
	api := fake.NewClientBuilder().WithObjects(configMap("api"), configMap("free"), configMap("unknown")).Build()
	r := removal(api, entries("api", "free", "unknown"))
	r.Wanted = func(_ context.Context, id inventory.ObjectID) (string, error) {
		return map[string]string{"api": "the app api"}[id.Name], map[string]error{"unknown": errAway}[id.Name]
	}
	removed, err := Remove(t.Context(), r)
	if err == nil || err.Error() != "ConfigMap/unknown: the API server is away" {
		t.Errorf("got %v", err)
	}
	got := listsOf(removed)
	slices.Sort(got.Left)
	if diff := cmp.Diff(lists{Left: []string{"api", "unknown"}, Wanted: []string{"ConfigMap/api for the app api"}}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestObjectsWithDataWaitForConfirmation: claims that hold data, and what they would be deleted with.
func TestObjectsWithDataWaitForConfirmation(t *testing.T) {
	claim, empty := claimOf("data", ownedBy("apps/v1", "StatefulSet", "db", "2")), claimOf("empty")
	empty.Status.Phase = corev1.ClaimPending
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", UID: "2"}}
	plain := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cache", UID: "3"}}
	kinds := map[string][2]string{"data": {"", "PersistentVolumeClaim"}, "empty": {"", "PersistentVolumeClaim"}, "db": {"apps", "StatefulSet"}, "cache": {"apps", "StatefulSet"}}
	for name, c := range map[string]struct {
		change func(*Removal)
		held   []string
		fails  string
	}{
		"guarded":                              {func(*Removal) {}, []string{"data", "db", "empty"}, ""},
		"confirmed":                            {func(r *Removal) { r.Confirmed = true }, nil, ""},
		"confirmed, but claims are to be kept": {func(r *Removal) { r.Confirmed, r.Retain = true, true }, []string{"data", "db"}, ""},
		"not guarded":                          {func(r *Removal) { r.Guarded = false }, nil, ""},
		"the claims of objects are not looked at": {func(r *Removal) { r.Dependents = nil }, []string{"data", "empty"}, ""},
		"a claim cannot be read": {func(r *Removal) {
			r.Client, r.Confirmed, r.Retain = reading(r.Client, errAway), true, true
		}, []string{"db"}, "looking whether the claim holds data: "},
		"a claim is gone meanwhile": {func(r *Removal) {
			r.Confirmed, r.Retain = true, true
			r.Client = reading(r.Client, apierrors.NewNotFound(schema.GroupResource{Resource: "persistentvolumeclaims"}, "data"))
		}, []string{"db"}, ""},
		"the claims cannot be listed": {func(r *Removal) {
			r.Dependents.Client = interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
				List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return errAway },
			})
		}, []string{"data", "empty"}, "looking for claims that would go with it: "},
	} {
		t.Run(name, func(t *testing.T) {
			api := fake.NewClientBuilder().WithObjects(claim.DeepCopy(), empty.DeepCopy(), set.DeepCopy(), plain.DeepCopy()).Build()
			r := Removal{Client: api, Live: seenBy(api), Guarded: true, Dependents: &Dependents{Client: api, Namespace: "shop"}}
			for _, object := range slices.Sorted(maps.Keys(kinds)) {
				id := inventory.ObjectID{Namespace: "shop", Name: object, Group: kinds[object][0], Kind: kinds[object][1]}
				r.Entries = append(r.Entries, v1alpha1.InventoryEntry{ID: id.String(), Version: "v1"})
			}
			c.change(&r)
			removed, err := Remove(t.Context(), r)
			if (err != nil) != (c.fails != "") || err != nil && (!strings.Contains(err.Error(), c.fails) || !errors.Is(err, errAway)) {
				t.Errorf("got %v, want %q", err, c.fails)
			}
			held := listsOf(removed).Held
			if diff := cmp.Diff(c.held, slices.Sorted(slices.Values(held))); diff != "" {
				t.Errorf("held (-want +got):\n%s", diff)
			}
			for _, e := range removed.Held {
				if want := map[bool]v1alpha1.PrunePolicy{true: v1alpha1.PolicyClaims}[strings.Contains(e.ID, "_db_")]; e.Policy != want {
					t.Errorf("%s is recorded as %q, want %q", e.ID, e.Policy, want)
				}
			}
		})
	}
}

func TestStatefulSetsAndCustomKindsMayOwnClaims(t *testing.T) {
	for kind, want := range map[schema.GroupKind]bool{
		{Group: "apps", Kind: "StatefulSet"}: true, {Group: "apps", Kind: "Deployment"}: false, {Kind: "ConfigMap"}: false,
		{Group: "batch", Kind: "Job"}: false, {Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}: false, {Group: "policy", Kind: "PodDisruptionBudget"}: false,
		{Group: "networking.k8s.io", Kind: "Ingress"}: false, {Group: "gateway.networking.k8s.io", Kind: "HTTPRoute"}: false, {Group: "rbac.authorization.k8s.io", Kind: "Role"}: false,
		{Group: "coordination.k8s.io", Kind: "Lease"}: false, {Group: "discovery.k8s.io", Kind: "EndpointSlice"}: false, {Group: "scheduling.k8s.io", Kind: "PriorityClass"}: false,
		{Group: "storage.k8s.io", Kind: "StorageClass"}: false, {Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"}: false,
		{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: false,
		{Group: "example.com", Kind: "Database"}:                          true, {Group: "example.com", Kind: "StatefulSet"}: true,
	} {
		if got := MayOwnClaims(kind); got != want {
			t.Errorf("%s: %t, want %t", kind, got, want)
		}
	}
}

func TestDeleteIgnoresPolicies(t *testing.T) {
	api := fake.NewClientBuilder().WithObjects(configMap("one", annotated(v1alpha1.PruneDisabled)), configMap("two", heldBy("example.com/x")), configMap("other", ofApp("api"))).Build()
	left, err := Delete(t.Context(), api, seenBy(api), entries("one", "two", "other"), webLabels)
	if diff := cmp.Diff(entries("two"), left); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for name, want := range map[string]bool{"one": false, "other": true} {
		if there := api.Get(t.Context(), client.ObjectKey{Namespace: shop, Name: name}, &corev1.ConfigMap{}) == nil; there != want {
			t.Errorf("%s stays: %t, want %t", name, there, want)
		}
	}
}

// reading fails to read claims as a whole; their metadata can be read.
func reading(c client.Client, err error) client.Client {
	return interceptor.NewClient(c.(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			if _, claim := o.(*corev1.PersistentVolumeClaim); claim {
				return err
			}
			return c.Get(ctx, key, o, options...)
		},
	})
}
