package apply

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/garbage"
	"github.com/kubeop/kubeop/delivery/inventory"
)

var web = map[string]string{v1alpha1.TenantLabel: "acme", v1alpha1.AppLabel: "web"}

// around returns the fixture's client with functions round its requests.
func (b *fixture) around(f interceptor.Funcs) client.Client {
	return interceptor.NewClient(b.Client.(client.WithWatch), f)
}

func TestADeleteThatIsRefusedIsNotForgotten(t *testing.T) {
	b := newFixture(t)
	b.must(2, b.config("one", "a"), b.config("two", "a"))
	refusing := b.around(interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			if o.GetName() == "one" {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "one", errors.New("no right"))
			}
			return c.Delete(ctx, o, opts...)
		},
	})
	removed, err := garbage.Remove(t.Context(), garbage.Removal{Live: b.Live, Client: refusing, Entries: b.recorded, Owner: web, Guarded: true})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "ConfigMap/one: ") {
		t.Errorf("got %v", err)
	}
	if got := inventory.Names(removed.Left); got != "ConfigMap/one" {
		t.Errorf("left is %s, want %q", got, "ConfigMap/one")
	}
	// The next pass goes on where this one ended, and so does one after the process was killed before it recorded anything.
	removed, err = garbage.Remove(t.Context(), garbage.Removal{Live: b.Live, Client: b.Client, Entries: b.recorded, Owner: web, Guarded: true})
	if err != nil || len(removed.Left) != 0 {
		t.Errorf("left is %v, %v", removed.Left, err)
	}
}

// TestAnObjectThatAnotherAppAdoptedIsNotDeleted has another app take an object over after it was looked at, as a watch that lags
// Behind would show it.
func TestAnObjectThatAnotherAppAdoptedIsNotDeleted(t *testing.T) {
	b := newFixture(t)
	for name, taken := range map[string]func(*corev1.ConfigMap){
		"taken over": func(o *corev1.ConfigMap) { o.Labels[v1alpha1.AppLabel] = "api" },
		"protected": func(o *corev1.ConfigMap) {
			o.Annotations = map[string]string{v1alpha1.PruneAnnotation: v1alpha1.PruneConfirm}
		},
		"written": func(o *corev1.ConfigMap) { o.Data["theirs"] = "x" },
	} {
		b.recorded = nil
		b.must(1, b.config("one", "a"))
		stale := b.read("one")
		lagging := &Applier{Live: func(context.Context, schema.GroupVersionKind, types.NamespacedName) (metav1.Object, bool, error) {
			return stale, true, nil
		}}
		now := stale.DeepCopy()
		taken(now)
		if err := b.Update(t.Context(), now); err != nil {
			t.Fatal(err)
		}
		removed, err := garbage.Remove(t.Context(), garbage.Removal{Live: lagging.Live, Client: b.Client, Entries: b.recorded, Owner: web, Guarded: true})
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]string{"taken over": "", "protected": "ConfigMap/one", "written": ""}[name]
		if got := inventory.Names(removed.Held); got != want || inventory.Names(removed.Left) != want {
			t.Errorf("%s: held is %q, left %q", name, got, inventory.Names(removed.Left))
		}
		err = b.Get(t.Context(), client.ObjectKeyFromObject(now), now)
		if gone := apierrors.IsNotFound(err); gone != (name == "written") {
			t.Errorf("%s: it is gone: %t", name, gone)
		}
		if err := b.Delete(t.Context(), now); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
	}
}

func TestAnObjectRecordedInARemovedVersionIsDeleted(t *testing.T) {
	b := newFixture(t)
	b.must(1, b.config("one", "a"))
	b.recorded[0].Version = "v1beta1"
	removed, err := garbage.Remove(t.Context(), garbage.Removal{Live: b.Live, Client: b.Client, Entries: b.recorded, Owner: web, Guarded: true})
	if err != nil || len(removed.Left) != 0 {
		t.Errorf("left is %s, %v", inventory.Names(removed.Left), err)
	}
	if err := b.Get(t.Context(), client.ObjectKey{Namespace: b.namespace, Name: "one"}, &corev1.ConfigMap{}); !apierrors.IsNotFound(err) {
		t.Errorf("it is still there: %v", err)
	}
}

// outdated is a mapper that knows ConfigMaps in a version that was served once, until it is reset.
type outdated struct {
	meta.RESTMapper
	now meta.RESTMapper
}

func (m *outdated) Reset() { m.RESTMapper = m.now }

func newOutdated(now meta.RESTMapper) *outdated {
	was := meta.NewDefaultRESTMapper(nil)
	was.Add(schema.GroupVersionKind{Version: "v1beta1", Kind: "ConfigMap"}, meta.RESTScopeNamespace)
	return &outdated{was, now}
}

// TestAnUnservedVersionIsNoDeletion asks in a version that the API server ceased to serve a moment ago, while a watch of
// it shows the object still, and while there is none.
func TestAnUnservedVersionIsNoDeletion(t *testing.T) {
	for name, watched := range map[string]bool{"asked for": false, "watched": true} {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t)
			b.must(1, b.config("one", "a"))
			b.recorded[0].Version = "v1beta1"
			stale := b.read("one")
			a := &Applier{Live: func(context.Context, schema.GroupVersionKind, types.NamespacedName) (metav1.Object, bool, error) {
				if watched {
					return stale, true, nil
				}
				return nil, false, nil
			}}
			mapper := newOutdated(b.RESTMapper())
			c, err := client.New(env.Config, client.Options{Mapper: mapper})
			if err != nil {
				t.Fatal(err)
			}
			removed, err := garbage.Remove(t.Context(), garbage.Removal{Live: a.Live, Client: c, Entries: b.recorded, Owner: web, Guarded: true})
			if err != nil || len(removed.Left) != 0 {
				t.Errorf("left is %s, %v", inventory.Names(removed.Left), err)
			}
			if err := b.Get(t.Context(), client.ObjectKey{Namespace: b.namespace, Name: "one"}, &corev1.ConfigMap{}); !apierrors.IsNotFound(err) {
				t.Errorf("it is still there: %v", err)
			}
		})
	}
}

// TestAPathThatStaysUnservedIsNoDeletion asks an API server that says it serves the version and does not.
func TestAPathThatStaysUnservedIsNoDeletion(t *testing.T) {
	b := newFixture(t)
	b.must(1, b.config("one", "a"))
	b.recorded[0].Version = "v1beta1"
	mapper := newOutdated(nil)
	mapper.now = mapper.RESTMapper
	c, err := client.New(env.Config, client.Options{Mapper: mapper})
	if err != nil {
		t.Fatal(err)
	}
	removed, err := garbage.Remove(t.Context(), garbage.Removal{Live: b.Live, Client: c, Entries: b.recorded, Owner: web, Guarded: true})
	if err == nil || !strings.HasPrefix(err.Error(), "ConfigMap/one: the API server does not serve v1beta1 at present") || inventory.Names(removed.Left) != "ConfigMap/one" {
		t.Errorf("left is %q, %v", inventory.Names(removed.Left), err)
	}
	b.read("one")
}

// TestThePrunePolicyOfTheLiveObjectIsRecorded annotates objects that a watch sees, and others that have to be asked for.
func TestThePrunePolicyOfTheLiveObjectIsRecorded(t *testing.T) {
	cases := map[string]struct {
		watched    bool
		kind, says string
		want       string
		policy     v1alpha1.PrunePolicy
	}{
		"watched, to be confirmed":         {true, "ConfigMap", "confirm", "held", ""},
		"watched, never":                   {true, "ConfigMap", "disabled", "kept", ""},
		"asked for, to be confirmed":       {false, "ConfigMap", "confirm", "held", v1alpha1.PolicyConfirm},
		"asked for, never":                 {false, "ConfigMap", "disabled", "kept", ""},
		"asked for, a kind that has data":  {false, "PersistentVolumeClaim", "", "held", v1alpha1.PolicyConfirm},
		"a kind that has data, but never":  {false, "PersistentVolumeClaim", "disabled", "kept", ""},
		"of a kind that has data, watched": {true, "PersistentVolumeClaim", "disabled", "kept", ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t)
			object := b.config("one", "a")
			if c.kind != "ConfigMap" {
				object = b.object("v1", c.kind, "one", map[string]any{"spec": map[string]any{
					"accessModes": []any{"ReadWriteOnce"}, "resources": map[string]any{"requests": map[string]any{"storage": "1Mi"}},
				}})
			}
			b.must(1, object)
			b.by("somebody", fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.PruneAnnotation, c.says), object)
			a := &Applier{Live: func(ctx context.Context, kind schema.GroupVersionKind, key types.NamespacedName) (metav1.Object, bool, error) {
				if !c.watched {
					return nil, false, nil
				}
				return b.live(ctx, kind, key)
			}}
			var requests atomic.Int64
			counting := b.around(interceptor.Funcs{Get: func(ctx context.Context, under client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				requests.Add(1)
				return under.Get(ctx, key, o, opts...)
			}})
			r := garbage.Removal{Client: counting, Entries: b.recorded, Owner: web, Guarded: true}
			removed, err := garbage.Remove(t.Context(), seenBy(a.Live, r))
			if err != nil {
				t.Fatal(err)
			}
			got := map[bool]string{true: "held", false: "kept"}[len(removed.Held) == 1]
			if got != c.want || len(removed.Held)+len(removed.Kept) != 1 {
				t.Fatalf("held %s, kept %s", inventory.Names(removed.Held), inventory.Names(removed.Kept))
			}
			if all := append(removed.Held, removed.Kept...); all[0].Policy != c.policy {
				t.Errorf("recorded is %q, want %q", all[0].Policy, c.policy)
			}
			if c.want != "held" {
				return
			}
			requests.Store(0)
			r.Entries = removed.Left
			if removed, err = garbage.Remove(t.Context(), seenBy(a.Live, r)); err != nil || len(removed.Held) != 1 || requests.Load() != 0 {
				t.Errorf("the next look takes %d requests and holds %s, %v", requests.Load(), inventory.Names(removed.Held), err)
			}
			// Whoever takes the annotation away lets it go.
			if b.by("somebody", `{"metadata":{"annotations":null}}`, object); !c.watched {
				return
			}
			if removed, err = garbage.Remove(t.Context(), seenBy(a.Live, r)); err != nil || len(removed.Held) != 0 {
				t.Errorf("held is %s, %v", inventory.Names(removed.Held), err)
			}
		})
	}
}

func TestHeldObjectsCostNoRequests(t *testing.T) {
	b := newFixture(t)
	protected := func(o *unstructured.Unstructured, value string) *unstructured.Unstructured {
		o.SetAnnotations(map[string]string{v1alpha1.PruneAnnotation: value})
		return o
	}
	objects := []*unstructured.Unstructured{
		protected(b.config("held", "a"), "confirm"), protected(b.config("stays", "a"), "disabled"),
		protected(b.object("v1", "Secret", "key", map[string]any{}), "confirm"),
		b.object("v1", "PersistentVolumeClaim", "data", map[string]any{"spec": map[string]any{
			"accessModes": []any{"ReadWriteOnce"}, "resources": map[string]any{"requests": map[string]any{"storage": "1Mi"}},
		}}),
	}
	b.must(4, objects...)
	inventory.RecordPolicies(b.recorded, objects)
	// Of Secrets the operator knows the version alone.
	watching := &Applier{Live: func(ctx context.Context, kind schema.GroupVersionKind, key types.NamespacedName) (metav1.Object, bool, error) {
		live, known, err := b.live(ctx, kind, key)
		if kind.Kind == "Secret" && live != nil {
			live = &metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, ResourceVersion: live.GetResourceVersion()}
		}
		return live, known, err
	}}
	var requests atomic.Int64
	counting := b.around(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			requests.Add(1)
			return c.Get(ctx, key, o, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			requests.Add(1)
			return c.Delete(ctx, o, opts...)
		},
	})
	r := garbage.Removal{Client: counting, Entries: b.recorded, Owner: web, Guarded: true}
	removed, err := garbage.Remove(t.Context(), seenBy(watching.Live, r))
	if err != nil || requests.Load() != 0 {
		t.Errorf("%d requests, %v", requests.Load(), err)
	}
	got := fmt.Sprintf("held %s; kept %s; left %s", inventory.Names(removed.Held), inventory.Names(removed.Kept), inventory.Names(removed.Left))
	const want = "held PersistentVolumeClaim/data, ConfigMap/held, Secret/key; kept ConfigMap/stays; left PersistentVolumeClaim/data, ConfigMap/held, Secret/key"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if err := b.Delete(t.Context(), objects[0].DeepCopy()); err != nil {
		t.Fatal(err)
	}
	r.Entries = removed.Left
	if removed, err = garbage.Remove(t.Context(), seenBy(watching.Live, r)); err != nil || inventory.Names(removed.Left) != "PersistentVolumeClaim/data, Secret/key" {
		t.Errorf("what somebody deleted is still held: %s, %v", inventory.Names(removed.Left), err)
	}
	r.Entries, r.Confirmed = removed.Left, true
	if removed, err = garbage.Remove(t.Context(), seenBy(watching.Live, r)); err != nil || inventory.Names(removed.Left) != "PersistentVolumeClaim/data" || len(removed.Leaving) != 1 {
		t.Errorf("after confirmation left is %s, leaving %q, %v", inventory.Names(removed.Left), removed.Leaving, err)
	}
}

func TestObjectsThatOtherAppsDeclareAreLeftForThem(t *testing.T) {
	b := newFixture(t)
	b.must(3, b.config("moved", "a"), b.config("unknown", "a"), b.config("one", "a"))
	removed, err := garbage.Remove(t.Context(), garbage.Removal{Live: b.Live, Client: b.Client, Entries: b.recorded, Owner: web, Guarded: true,
		Wanted: func(_ context.Context, id inventory.ObjectID) (string, error) {
			switch id.Name {
			case "moved":
				return "app api", nil
			case "unknown":
				return "", errors.New("who knows")
			}
			return "", nil
		},
	})
	if err == nil || !strings.Contains(err.Error(), "ConfigMap/unknown: who knows") {
		t.Errorf("got %v", err)
	}
	if diff := cmp.Diff([]string{"ConfigMap/moved for app api"}, removed.Wanted); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := inventory.Names(removed.Left); got != "ConfigMap/moved, ConfigMap/unknown" {
		t.Errorf("left is %s, want %q", got, "ConfigMap/moved, ConfigMap/unknown")
	}
	b.read("moved")
	b.read("unknown")
}
