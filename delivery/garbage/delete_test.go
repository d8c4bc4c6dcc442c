package garbage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/inventory"
	"github.com/kubeop/kubeop/delivery/metadata"
)

const shop = "kubeop-acme-shop"

var (
	errAway    = errors.New("the API server is away")
	configMaps = schema.GroupResource{Resource: "configmaps"}
	webLabels  = map[string]string{v1alpha1.TenantLabel: "acme", v1alpha1.ProjectLabel: "shop", v1alpha1.AppLabel: "web"}
)

// unwatched is a watch that watches nothing: each object is read from the API server.
func unwatched(context.Context, schema.GroupVersionKind, types.NamespacedName) (metav1.Object, bool, error) {
	return nil, false, nil
}

// configMap returns a ConfigMap of the app "web".
func configMap(name string, change ...func(*corev1.ConfigMap)) *corev1.ConfigMap {
	o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: name, UID: types.UID("uid-" + name), Labels: map[string]string{}}}
	for label, value := range webLabels {
		o.Labels[label] = value
	}
	for _, f := range change {
		f(o)
	}
	return o
}

func heldBy(finalizers ...string) func(*corev1.ConfigMap) {
	return func(o *corev1.ConfigMap) { o.Finalizers = finalizers }
}

func deleted(o *corev1.ConfigMap) {
	o.DeletionTimestamp = &metav1.Time{Time: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
}

func ofApp(name string) func(*corev1.ConfigMap) {
	return func(o *corev1.ConfigMap) { o.Labels[v1alpha1.AppLabel] = name }
}

func entries(names ...string) (all []v1alpha1.InventoryEntry) {
	for _, name := range names {
		all = append(all, v1alpha1.InventoryEntry{ID: shop + "_" + name + "__ConfigMap", Version: "v1"})
	}
	return all
}

// removal deletes objects of the app "web" through a client.
func removal(c client.Client, all []v1alpha1.InventoryEntry) Removal {
	return Removal{Client: c, Live: unwatched, Entries: all, Owner: webLabels}
}

// TestAnObjectIsDeletedOnlyAsItWasLookedAt: it may have another owner, or a policy, since.
func TestAnObjectIsDeletedOnlyAsItWasLookedAt(t *testing.T) {
	for name, foreground := range map[string]bool{"in the background": false, "in the foreground": true} {
		t.Run(name, func(t *testing.T) {
			var sent *client.DeleteOptions
			c := fake.NewClientBuilder().WithObjects(configMap("one")).WithInterceptorFuncs(interceptor.Funcs{
				Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
					sent = (&client.DeleteOptions{}).ApplyOptions(options)
					return c.Delete(ctx, o)
				},
			}).Build()
			live := &corev1.ConfigMap{}
			if err := c.Get(t.Context(), client.ObjectKey{Namespace: shop, Name: "one"}, live); err != nil {
				t.Fatal(err)
			}
			r := removal(c, entries("one"))
			r.Foreground = foreground
			removed, err := Remove(t.Context(), r)
			if err != nil || len(removed.Left) > 0 {
				t.Fatalf("left are %v, %v", removed.Left, err)
			}
			policy := metav1.DeletePropagationBackground
			if foreground {
				policy = metav1.DeletePropagationForeground
			}
			uid := types.UID("uid-one")
			want := &client.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &live.ResourceVersion}, PropagationPolicy: &policy}
			if diff := cmp.Diff(want, sent); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestAnObjectThatChangesBeforeItsDeletionIsJudgedAnew: the deletion of what was looked at conflicts, and what is there now may be another's.
func TestAnObjectThatChangesBeforeItsDeletionIsJudgedAnew(t *testing.T) {
	conflict := apierrors.NewConflict(configMaps, "one", nil)
	for name, c := range map[string]struct {
		// change is what happens when the object is to be deleted the first times.
		change func(*corev1.ConfigMap)
		times  int
		asked  int
		// held: a finalizer holds it from the beginning. leaves: it is still there afterwards, being deleted.
		held, leaves, stays bool
		want                string
	}{
		"it is the app's still":         {change: func(o *corev1.ConfigMap) { o.Data = map[string]string{"a": "b"} }, times: 1, asked: 2},
		"a finalizer came and holds it": {change: heldBy("example.com/x"), times: 1, asked: 2, leaves: true},
		"it had a finalizer":            {change: ofApp("api"), held: true, times: 1, asked: 1, stays: true},
		"another app took it over":      {change: ofApp("api"), times: 1, asked: 1, stays: true},
		"it changes as often as tried":  {change: func(*corev1.ConfigMap) {}, times: maxTries - 1, asked: maxTries},
		"it changes all the time": {
			change: func(*corev1.ConfigMap) {}, times: maxTries, asked: maxTries, stays: true, want: "ConfigMap/one: it changes all the time, so it could not be deleted",
		},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			one := configMap("one")
			if c.held {
				heldBy("example.com/x")(one)
			}
			api := fake.NewClientBuilder().WithObjects(one).WithInterceptorFuncs(interceptor.Funcs{
				Delete: func(ctx context.Context, api client.WithWatch, o client.Object, _ ...client.DeleteOption) error {
					if asked++; asked > c.times {
						return api.Delete(ctx, o)
					}
					live := &corev1.ConfigMap{}
					if err := api.Get(ctx, client.ObjectKeyFromObject(o), live); err != nil {
						return err
					}
					c.change(live)
					if err := api.Update(ctx, live); err != nil {
						return err
					}
					return conflict
				},
			}).Build()
			removed, err := Remove(t.Context(), removal(api, entries("one")))
			if asked != c.asked || (err == nil) != (c.want == "") || err != nil && err.Error() != c.want {
				t.Errorf("asked %d times, %v; want %d, %q", asked, err, c.asked, c.want)
			}
			if recorded := len(removed.Left) > 0; recorded != (c.want != "" || c.leaves) {
				t.Errorf("left are %v", removed.Left)
			}
			there := api.Get(t.Context(), client.ObjectKey{Namespace: shop, Name: "one"}, &corev1.ConfigMap{}) == nil
			if there != (c.stays || c.leaves) {
				t.Errorf("it stays: %t, want %t", there, c.stays)
			}
		})
	}
}

// TestASecretIsReadBecauseTheWatchHasNoLabelsOfIt, unless the record says that it waits for confirmation.
func TestASecretIsReadBecauseTheWatchHasNoLabelsOfIt(t *testing.T) {
	for policy, want := range map[v1alpha1.PrunePolicy]lists{"": {}, v1alpha1.PolicyConfirm: {Left: []string{"one"}, Held: []string{"one"}}} {
		reads := 0
		api := fake.NewClientBuilder().WithObjects(&corev1.Secret{ObjectMeta: configMap("one").ObjectMeta}).WithInterceptorFuncs(interceptor.Funcs{
			Get: func(ctx context.Context, api client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
				reads++
				return api.Get(ctx, key, o, options...)
			},
		}).Build()
		r := removal(api, []v1alpha1.InventoryEntry{{ID: shop + "_one__Secret", Version: "v1", Policy: policy}})
		r.Guarded = policy != ""
		r.Live = func(context.Context, schema.GroupVersionKind, types.NamespacedName) (metav1.Object, bool, error) {
			return &metav1.ObjectMeta{Namespace: shop, Name: "one", UID: "uid-one"}, true, nil
		}
		removed, err := Remove(t.Context(), r)
		if diff := cmp.Diff(want, listsOf(removed)); diff != "" || err != nil || (reads == 0) != r.Guarded {
			t.Errorf("with policy %q: %d reads, %v (-want +got):\n%s", policy, reads, err, diff)
		}
	}
}

// TestAnObjectThatTheWatchShowsIsNotRead, nor one without a watch of which the record says that claims would go with it.
func TestAnObjectThatTheWatchShowsIsNotRead(t *testing.T) {
	for name, c := range map[string]struct {
		watch   metadata.Watch
		policy  v1alpha1.PrunePolicy
		guarded bool
		reads   int
		want    lists
	}{
		"shown":               {watch: seenBy(fake.NewClientBuilder().WithObjects(configMap("one")).Build())},
		"owns claims":         {watch: unwatched, policy: v1alpha1.PolicyClaims, guarded: true, want: lists{Left: []string{"one"}, Held: []string{"one"}}},
		"owns claims, free":   {watch: unwatched, policy: v1alpha1.PolicyClaims, reads: 1},
		"no policy, no watch": {watch: unwatched, guarded: true, reads: 1},
	} {
		t.Run(name, func(t *testing.T) {
			reads := 0
			api := fake.NewClientBuilder().WithObjects(configMap("one")).WithInterceptorFuncs(interceptor.Funcs{
				Get: func(ctx context.Context, api client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
					reads++
					return api.Get(ctx, key, o, options...)
				},
				Delete: func(ctx context.Context, api client.WithWatch, o client.Object, _ ...client.DeleteOption) error {
					return api.Delete(ctx, o)
				},
			}).Build()
			r := removal(api, entries("one"))
			r.Live, r.Guarded, r.Entries[0].Policy = c.watch, c.guarded, c.policy
			removed, err := Remove(t.Context(), r)
			if diff := cmp.Diff(c.want, listsOf(removed)); diff != "" || err != nil || reads != c.reads {
				t.Errorf("%d reads, want %d; %v (-want +got):\n%s", reads, c.reads, err, diff)
			}
		})
	}
}

// TestAnObjectThatCannotBeReadAfterItsDeletionStaysRecorded: it may still be there.
func TestAnObjectThatCannotBeReadAfterItsDeletionStaysRecorded(t *testing.T) {
	deleted := false
	api := fake.NewClientBuilder().WithObjects(configMap("one")).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, api client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			if deleted {
				return errAway
			}
			return api.Get(ctx, key, o, options...)
		},
		Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error {
			deleted = true
			return nil
		},
	}).Build()
	r := removal(api, entries("one"))
	r.Foreground = true
	if removed, err := Remove(t.Context(), r); !errors.Is(err, errAway) || len(removed.Left) != 1 {
		t.Errorf("left are %v, %v", removed.Left, err)
	}
}

// TestAnObjectThatGoesMeanwhileIsNotRecorded.
func TestAnObjectThatGoesMeanwhileIsNotRecorded(t *testing.T) {
	var fails error = apierrors.NewNotFound(configMaps, "one")
	api := fake.NewClientBuilder().WithObjects(configMap("one")).WithInterceptorFuncs(interceptor.Funcs{
		Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error { return fails },
	}).Build()
	if removed, err := Remove(t.Context(), removal(api, entries("one"))); err != nil || len(removed.Left) > 0 {
		t.Errorf("left are %v, %v", removed.Left, err)
	}
	fails = errAway
	if left, err := Delete(t.Context(), api, unwatched, entries("one"), webLabels); !errors.Is(err, errAway) || len(left) != 1 {
		t.Errorf("it cannot be deleted: left are %v, %v", left, err)
	}
}

// TestAWatchThatShowsNothingIsNotBelieved: the object may have been made a moment ago, and what holds data is asked for once only.
func TestAWatchThatShowsNothingIsNotBelieved(t *testing.T) {
	none := func(context.Context, schema.GroupVersionKind, types.NamespacedName) (metav1.Object, bool, error) {
		return nil, true, nil
	}
	unlisted := func(context.Context, schema.GroupVersionKind, types.NamespacedName) (metav1.Object, bool, error) {
		return nil, true, notListed{}
	}
	late := func(context.Context, schema.GroupVersionKind, types.NamespacedName) (metav1.Object, bool, error) {
		return nil, true, errAway
	}
	for name, c := range map[string]struct {
		watch metadata.Watch
		stays bool
	}{
		"it shows none":                {watch: none},
		"it watches nothing":           {watch: unwatched},
		"the operator may not list it": {watch: unlisted},
		"its first list is not there":  {watch: late, stays: true},
	} {
		t.Run(name, func(t *testing.T) {
			api := fake.NewClientBuilder().WithObjects(configMap("one")).Build()
			r := removal(api, entries("one"))
			r.Live = c.watch
			removed, err := Remove(t.Context(), r)
			if (err != nil) != c.stays || (len(removed.Left) > 0) != c.stays {
				t.Errorf("left are %v, %v", removed.Left, err)
			}
			if there := api.Get(t.Context(), client.ObjectKey{Namespace: shop, Name: "one"}, &corev1.ConfigMap{}) == nil; there != c.stays {
				t.Errorf("it stays: %t, want %t", there, c.stays)
			}
		})
	}
}

// notListed is why a watch knows nothing where the operator may not list.
type notListed struct{}

func (notListed) Error() string  { return "not listed" }
func (notListed) Unlisted() bool { return true }

// TestAFailureHoldsUpNoOtherDeletion: what failed or is still there stays recorded, and only that.
func TestAFailureHoldsUpNoOtherDeletion(t *testing.T) {
	api := fake.NewClientBuilder().WithObjects(configMap("a"), configMap("b"), configMap("c", heldBy("example.com/x"))).WithInterceptorFuncs(interceptor.Funcs{
		Delete: func(ctx context.Context, api client.WithWatch, o client.Object, _ ...client.DeleteOption) error {
			if o.GetName() == "a" {
				return errAway
			}
			return api.Delete(ctx, o)
		},
	}).Build()
	removed, err := Remove(t.Context(), removal(api, append(entries("a", "b", "c", "none"), v1alpha1.InventoryEntry{ID: "nonsense"})))
	if err == nil || !strings.Contains(err.Error(), "ConfigMap/a: the API server is away") || !strings.Contains(err.Error(), `parsing the inventory ID "nonsense"`) {
		t.Errorf("got %v", err)
	}
	var left []string
	for _, e := range removed.Left {
		id, _ := inventory.ParseObjectID(e.ID)
		left = append(left, id.Name)
	}
	if diff := cmp.Diff([]string{"", "a", "c"}, sorted(left)); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
	if len(removed.Leaving) != 1 || removed.Leaving[0].String() != "ConfigMap/c, which the finalizer example.com/x holds" {
		t.Errorf("leaving are %v", removed.Leaving)
	}
}

// noPath is the answer of an API server that serves nothing at the path of a request.
func noPath() error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: 404, Message: "nothing is here", Reason: metav1.StatusReasonNotFound, Details: &metav1.StatusDetails{}}}
}

// TestAnObjectThatIsNotServedAtPresentStaysRecorded: it may still exist. The kind is looked up anew, because it may be served in another
// version now.
func TestAnObjectThatIsNotServedAtPresentStaysRecorded(t *testing.T) {
	for name, c := range map[string]struct {
		fails int
		left  bool
	}{
		"for a moment": {1, false},
		"for longer":   {2, true},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			api := fake.NewClientBuilder().WithObjects(configMap("one")).WithInterceptorFuncs(interceptor.Funcs{
				Get: func(ctx context.Context, api client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
					if asked++; asked <= c.fails {
						return noPath()
					}
					return api.Get(ctx, key, o, options...)
				},
			}).Build()
			mapper := &resets{RESTMapper: api.RESTMapper()}
			removed, err := Remove(t.Context(), removal(mapped{api, mapper}, entries("one")))
			if (err != nil) != c.left || (len(removed.Left) > 0) != c.left || err != nil && !strings.Contains(err.Error(), "the API server does not serve v1 at present: ") {
				t.Errorf("left are %v, %v", removed.Left, err)
			}
			if mapper.times != 1 || asked != 2 {
				t.Errorf("asked %d times, and the kinds were looked up anew %d times", asked, mapper.times)
			}
		})
	}
}

// resets counts how often the kinds are looked up anew.
type resets struct {
	meta.RESTMapper
	times int
}

func (r *resets) Reset() { r.times++ }

type mapped struct {
	client.Client
	mapper meta.RESTMapper
}

func (m mapped) RESTMapper() meta.RESTMapper { return m.mapper }

// TestAnObjectThatLeavesSlowlyIsWaitedFor: the deletion succeeded, and the same object is still there. One that was made anew is deleted, too.
func TestAnObjectThatLeavesSlowlyIsWaitedFor(t *testing.T) {
	for name, c := range map[string]struct {
		uid     types.UID
		asked   int
		leaving int
	}{
		"the same":  {"uid-one", 1, 1},
		"a new one": {"uid-two", 2, 1},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			api := fake.NewClientBuilder().WithObjects(configMap("one")).WithInterceptorFuncs(interceptor.Funcs{
				Delete: func(ctx context.Context, api client.WithWatch, o client.Object, _ ...client.DeleteOption) error {
					asked++
					if err := api.Delete(ctx, configMap("one")); err != nil {
						return err
					}
					return api.Create(ctx, configMap("one", func(o *corev1.ConfigMap) { o.UID = c.uid }))
				},
			}).Build()
			r := removal(api, entries("one"))
			r.Foreground = true
			removed, err := Remove(t.Context(), r)
			if err != nil || asked != c.asked || len(removed.Leaving) != c.leaving || len(removed.Left) != c.leaving {
				t.Errorf("asked %d times; leaving are %v, left are %v, %v", asked, removed.Leaving, removed.Left, err)
			}
		})
	}
}

// TestManyObjectsAreDeleted, more than are deleted at once.
func TestManyObjectsAreDeleted(t *testing.T) {
	var names []string
	var objects []client.Object
	for i := range 3 * concurrency {
		names = append(names, fmt.Sprint("one-of-many-", i))
		objects = append(objects, configMap(names[i]))
	}
	api := fake.NewClientBuilder().WithObjects(objects...).Build()
	removed, err := Remove(t.Context(), removal(api, entries(names...)))
	if err != nil || len(removed.Left) > 0 {
		t.Errorf("left are %v: %v", removed.Left, err)
	}
	left := &corev1.ConfigMapList{}
	if err := api.List(t.Context(), left); err != nil || len(left.Items) > 0 {
		t.Errorf("%d objects stay: %v", len(left.Items), err)
	}
}

// TestObjectsAppliedFirstAreDeletedLast: what pods need goes after them, in whatever order it is recorded. There are more of each kind than are
// deleted at once.
func TestObjectsAppliedFirstAreDeletedLast(t *testing.T) {
	var objects []client.Object
	var recorded []v1alpha1.InventoryEntry
	for _, kind := range []string{"ServiceAccount", "Pod", "Service"} {
		for i := range concurrency + 1 {
			o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: fmt.Sprint("one-", i), Labels: webLabels}}
			o.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
			objects = append(objects, o)
			recorded = append(recorded, v1alpha1.InventoryEntry{ID: fmt.Sprintf("%s_one-%d__%s", shop, i, kind), Version: "v1"})
		}
	}
	var mu sync.Mutex
	var order []string
	api := fake.NewClientBuilder().WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Delete: func(ctx context.Context, api client.WithWatch, o client.Object, _ ...client.DeleteOption) error {
			mu.Lock()
			defer mu.Unlock()
			order = append(order, o.GetObjectKind().GroupVersionKind().Kind)
			return api.Delete(ctx, o)
		},
	}).Build()
	if removed, err := Remove(t.Context(), removal(api, recorded)); err != nil || len(removed.Left) > 0 {
		t.Fatalf("left are %v, %v", removed.Left, err)
	}
	if got := slices.Compact(slices.Clone(order)); len(order) != len(recorded) || !slices.Equal(got, []string{"Pod", "Service", "ServiceAccount"}) {
		t.Errorf("deleted in the order %v", order)
	}
}
