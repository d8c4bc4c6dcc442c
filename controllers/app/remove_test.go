package app

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
)

// deletedApp is the app of the tests, deleted 3 minutes ago, with this inventory.
func deletedApp(entries []v1alpha1.InventoryEntry, set ...func(*v1alpha1.App)) *v1alpha1.App {
	return webApp(append(set, func(app *v1alpha1.App) {
		app.DeletionTimestamp = &metav1.Time{Time: time.Unix(1_000_000, 0).Add(-3 * time.Minute)}
		app.Status.Inventory.Entries = entries
	})...)
}

func annotated(key, value string) func(*v1alpha1.App) {
	return func(app *v1alpha1.App) {
		if app.Annotations == nil {
			app.Annotations = map[string]string{}
		}
		app.Annotations[key] = value
	}
}

func orphan(app *v1alpha1.App) { app.Spec.DeletionPolicy = v1alpha1.AppDeletionOrphan }

func protected(o *corev1.ConfigMap) {
	o.Annotations = map[string]string{v1alpha1.PruneAnnotation: v1alpha1.PruneDisabled}
}

// heldBy makes an object one that is being deleted and has a finalizer.
func heldBy(finalizer string) func(*corev1.ConfigMap) {
	return func(o *corev1.ConfigMap) {
		o.DeletionTimestamp, o.Finalizers = &metav1.Time{Time: time.Unix(999_999, 0)}, []string{finalizer}
	}
}

func TestADeletedAppDeletesOnlyItsOwnObjects(t *testing.T) {
	own, other := labelled(configMap("own"), "web"), labelled(configMap("other"), "api")
	recorded := []v1alpha1.InventoryEntry{entry("ConfigMap", "other"), entry("ConfigMap", "own")}
	bare := shopNamespace()
	delete(bare.Labels, v1alpha1.ProjectLabel)
	cases := map[string]struct {
		app    *v1alpha1.App
		change func(*objectsSeen)
		want   string
		stays  bool
	}{
		"its own are deleted":          {app: deletedApp(recorded), want: "done"},
		"the policy Orphan keeps them": {app: deletedApp(recorded, orphan), want: "done", stays: true},
		"their namespace is being deleted": {
			app: deletedApp(recorded), change: func(o *objectsSeen) { o.namespaces[shop] = endingNamespace() }, want: "done", stays: true,
		},
		"the namespace is gone": {app: deletedApp(recorded), change: func(o *objectsSeen) { o.namespaces = nil }, want: "done", stays: true},
		"the namespace has no owner labels": {
			app: deletedApp(recorded), change: func(o *objectsSeen) { o.namespaces[shop] = bare }, stays: true,
			want: "waits DependencyNotReady: waits for its project to put back the labels of namespace kubeop-acme-shop, after 10s",
		},
		"the watch fails": {app: deletedApp(recorded), change: func(o *objectsSeen) { o.err = errors.New("away") }, want: "failed Failed: away", stays: true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t, c.app, interceptor.Funcs{}, own.DeepCopy(), other.DeepCopy())
			if c.change != nil {
				c.change(b.seen)
			}
			if got := b.ended(b.remover.remove(t.Context(), b.s)); got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
			if got := b.has("ConfigMap", "own"); got != c.stays {
				t.Errorf("the app's object exists: %t, want %t", got, c.stays)
			}
			if !b.has("ConfigMap", "other") {
				t.Error("another app's object was deleted")
			}
		})
	}
}

// TestANamespaceWithoutLabelsIsReadFromTheAPIServer: the watch has only labelled namespaces, and a missing one must not end the removal.
func TestANamespaceWithoutLabelsIsReadFromTheAPIServer(t *testing.T) {
	bare := shopNamespace()
	bare.Labels = nil
	b := newFixture(t, deletedApp([]v1alpha1.InventoryEntry{entry("ConfigMap", "own")}), interceptor.Funcs{}, labelled(configMap("own"), "web"), bare)
	b.seen.namespaces = nil
	want := "waits DependencyNotReady: waits for its project to put back the labels of namespace kubeop-acme-shop, after 10s"
	if got := b.ended(b.remover.remove(t.Context(), b.s)); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if b.recorded() != entry("ConfigMap", "own").ID {
		t.Errorf("the inventory is %q", b.recorded())
	}
}

func TestClusterScopedObjectsAreDeletedWhenTheNamespaceIs(t *testing.T) {
	volume := labelled(&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "disk"}}, "web")
	b := newFixture(t, deletedApp([]v1alpha1.InventoryEntry{clusterEntry("disk"), entry("ConfigMap", "own")}), interceptor.Funcs{}, volume, labelled(configMap("own"), "web"))
	b.seen.namespaces[shop] = endingNamespace()
	if got := b.ended(b.remover.remove(t.Context(), b.s)); got != "done" {
		t.Errorf("got %q, want %q", got, "done")
	}
	if b.has("PersistentVolume", "disk") || !b.has("ConfigMap", "own") {
		t.Error("want the cluster-scoped object deleted, and the other left to the deletion of its namespace")
	}
}

func TestObjectsWithDataStayUnlessTheRemovalIsConfirmed(t *testing.T) {
	recorded := []v1alpha1.InventoryEntry{entry("PersistentVolumeClaim", "data"), entry("ConfigMap", "kept")}
	for name, c := range map[string]struct {
		set      []func(*v1alpha1.App)
		goes     bool
		reported string
	}{
		"nobody confirmed": {reported: "left PersistentVolumeClaim/data, ConfigMap/kept, which are protected from deletion"},
		"confirmed, but to be retained": {
			set: []func(*v1alpha1.App){annotated(v1alpha1.ConfirmAnnotation, v1alpha1.ConfirmAll)}, reported: "left PersistentVolumeClaim/data, ConfigMap/kept",
		},
		"to be deleted, but not confirmed": {
			set: []func(*v1alpha1.App){func(app *v1alpha1.App) { app.Spec.ClaimDeletionPolicy = v1alpha1.ClaimDelete }}, reported: "left PersistentVolumeClaim/data, ConfigMap/kept",
		},
		"the token of a list confirms nothing else": {
			set:      []func(*v1alpha1.App){annotated(v1alpha1.ConfirmAnnotation, "a-token"), func(app *v1alpha1.App) { app.Spec.ClaimDeletionPolicy = v1alpha1.ClaimDelete }},
			reported: "left PersistentVolumeClaim/data, ConfigMap/kept",
		},
		"confirmed and to be deleted": {
			set:  []func(*v1alpha1.App){annotated(v1alpha1.ConfirmAnnotation, v1alpha1.ConfirmAll), func(app *v1alpha1.App) { app.Spec.ClaimDeletionPolicy = v1alpha1.ClaimDelete }},
			goes: true, reported: "left ConfigMap/kept, which are protected from deletion",
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t, deletedApp(recorded, c.set...), interceptor.Funcs{}, labelled(boundClaim("data"), "web"), labelled(configMap("kept"), "web", protected))
			if got := b.ended(b.remover.remove(t.Context(), b.s)); got != "done" {
				t.Errorf("got %q, want %q", got, "done")
			}
			if b.has("PersistentVolumeClaim", "data") == c.goes || !b.has("ConfigMap", "kept") {
				t.Errorf("the claim exists: %t; the protected object exists: %t", b.has("PersistentVolumeClaim", "data"), b.has("ConfigMap", "kept"))
			}
			if sent := b.sent(); !strings.Contains(sent, c.reported) || strings.Count(sent, "left ") != 1 {
				t.Errorf("events: %q, want %q", sent, c.reported)
			}
		})
	}
}

func TestTheRemovalWaitsForObjectsBeingDeleted(t *testing.T) {
	foreign := heldBy("example.com/held")
	dependents := heldBy(metav1.FinalizerDeleteDependents)
	forced := annotated(v1alpha1.ForceRemovalAnnotation, "web")
	const waits = "waits Deleting: waits for ConfigMap/one, which the finalizer example.com/held holds to be gone"
	const how = "; a finalizer that nobody serves any more is taken off, and what it waits for left undone, if that is meant: " +
		"an administrator of the cluster may run: kubectl annotate app web -n kubeop-acme-shop --overwrite paas.kubeop.io/force-removal=web"
	for name, c := range map[string]struct {
		object      *corev1.ConfigMap
		set         []func(*v1alpha1.App)
		want, event string
		freed       bool
	}{
		"a foreign finalizer":             {object: labelled(configMap("one"), "web", foreign), want: waits + how + ", after 1s"},
		"a finalizer of the API server":   {object: labelled(configMap("one"), "web", dependents), want: "waits Deleting: waits for ConfigMap/one, until what it owns is gone to be gone, after 1s"},
		"it is forced":                    {object: labelled(configMap("one"), "web", foreign), set: []func(*v1alpha1.App){forced}, want: waits + ", after 1s", event: "Warning RemovalForced removed finalizers by force: example.com/held from ConfigMap/one", freed: true},
		"it is forced under another name": {object: labelled(configMap("one"), "web", foreign), set: []func(*v1alpha1.App){annotated(v1alpha1.ForceRemovalAnnotation, "api")}, want: waits + how + ", after 1s"},
		"it is forced, and another app's": {object: labelled(configMap("one"), "api", foreign), set: []func(*v1alpha1.App){forced}, want: "done"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t, deletedApp([]v1alpha1.InventoryEntry{entry("ConfigMap", "one")}, c.set...), interceptor.Funcs{}, c.object)
			if got := b.ended(b.remover.remove(t.Context(), b.s)); got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
			if b.has("ConfigMap", "one") == c.freed {
				t.Errorf("the finalizer was removed: %t, want %t", !c.freed, c.freed)
			}
			if sent := b.sent(); sent != c.event {
				t.Errorf("events: %q, want %q", sent, c.event)
			}
			if left := b.recorded() != ""; left != (c.want != "done") {
				t.Errorf("the inventory is %q", b.recorded())
			}
		})
	}
}

func TestAFinalizerThatTheDeployerMayNotRemoveIsReported(t *testing.T) {
	refused := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "one", errors.New("no"))
	b := newFixture(t, deletedApp([]v1alpha1.InventoryEntry{entry("ConfigMap", "one")}, annotated(v1alpha1.ForceRemovalAnnotation, "web")), interceptor.Funcs{
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return refused
		},
	}, labelled(configMap("one"), "web", heldBy("example.com/held")))
	got := b.ended(b.remover.remove(t.Context(), b.s))
	if !strings.HasPrefix(got, "failed PruneFailed: ") || !strings.HasSuffix(got, "; an administrator of the cluster may run: kubectl patch configmap one -n "+shop+` --type merge -p '{"metadata":{"finalizers":null}}'`) {
		t.Errorf("got %q", got)
	}
}

func TestObjectsThatAnotherAppDeclaresAreNotDeleted(t *testing.T) {
	// The other app has not reported its objects yet, so it may declare this one.
	other := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "api", UID: "api", Generation: 1}}
	b := newFixture(t, deletedApp([]v1alpha1.InventoryEntry{entry("ConfigMap", "one")}), interceptor.Funcs{}, labelled(configMap("one"), "web"), other)
	got := b.ended(b.remover.remove(t.Context(), b.s))
	if !strings.HasPrefix(got, "waits Deleting: leaves ConfigMap/one for the app that declares it: app api has not reported its objects yet, and waits until that is taken over, after") {
		t.Errorf("got %q", got)
	}
	if !b.has("ConfigMap", "one") || b.recorded() != entry("ConfigMap", "one").ID {
		t.Errorf("the object was deleted, or removed from the inventory %q", b.recorded())
	}
	b.clock.Step(b.app.Spec.Within())
	b.s = b.newScope(b.app)
	b.s.inventory = b.app.Status.Inventory
	if got := b.ended(b.remover.remove(t.Context(), b.s)); got != "done" || b.has("ConfigMap", "one") {
		t.Errorf("the removal waits longer than the App's timeout: %q", got)
	}
}

func TestAFailedRemovalIsRetriedWithTheWholeInventory(t *testing.T) {
	refused := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "one", errors.New("no"))
	for name, c := range map[string]struct {
		err  error
		want []string
	}{
		"forbidden": {refused, []string{"failed PruneFailed: ConfigMap/one: ", "; an administrator of the cluster may run: kubectl delete configmap one -n " + shop, "; to let go of it, an administrator of the cluster may run: kubectl patch app web -n " + shop + ` --type merge -p '{"spec":{"deletionPolicy":"Orphan"}}'`}},
		"no answer": {errors.New("away"), []string{"failed PruneFailed: ConfigMap/one: away"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t, deletedApp([]v1alpha1.InventoryEntry{entry("ConfigMap", "one")}), interceptor.Funcs{
				Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error { return c.err },
			}, labelled(configMap("one"), "web"))
			got := b.ended(b.remover.remove(t.Context(), b.s))
			for _, want := range c.want {
				if !strings.Contains(got, want) {
					t.Errorf("got %q, want %q in it", got, want)
				}
			}
			if b.recorded() != entry("ConfigMap", "one").ID {
				t.Errorf("the inventory is %q", b.recorded())
			}
		})
	}
}

// TestAFinalizerThatNoMessageNamesIsReported: a message names five of the objects that are being deleted; here the sixth has a foreign
// finalizer.
func TestAFinalizerThatNoMessageNamesIsReported(t *testing.T) {
	app := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-a-b", Name: "web"}, Spec: v1alpha1.AppSpec{Helm: &v1alpha1.HelmSource{}}}
	s, r := scopeOf(app, &releaser{}), &remover{}
	why := step.Wait(v1alpha1.DeletingReason, time.Second, "waits for ConfigMap/a; and 5 more to be gone")
	if got := r.freeHeld(t.Context(), s, why, true); !strings.Contains(got.Error(), v1alpha1.ForceRemovalAnnotation) {
		t.Errorf("the message does not explain how to force the removal: %v", got)
	}
	if got := r.freeHeld(t.Context(), s, why, false); got.Error() != why.Error() {
		t.Errorf("no finalizer blocks the removal, and the message is %v", got)
	}
}

// TestARemovalThatCannotReadFails has the App keep its inventory: of its namespace, and of the Project, which may say that claims stay.
func TestARemovalThatCannotReadFails(t *testing.T) {
	away := func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
		return errors.New("away")
	}
	for want, breaks := range map[string]func(*fixture, client.WithWatch){
		"failed Failed: reading namespace kubeop-acme-shop: away": func(b *fixture, api client.WithWatch) { b.seen.namespaces, b.remover.direct = nil, api },
		"failed Failed: reading project kubeop-acme/shop: away":   func(b *fixture, api client.WithWatch) { b.remover.pruner.Client = api },
	} {
		b := newFixture(t, deletedApp([]v1alpha1.InventoryEntry{entry("ConfigMap", "own")}), interceptor.Funcs{}, labelled(configMap("own"), "web"))
		breaks(b, interceptor.NewClient(b.api, interceptor.Funcs{Get: away}))
		if got := b.ended(b.remover.remove(t.Context(), b.s)); got != want || !b.has("ConfigMap", "own") || b.recorded() != entry("ConfigMap", "own").ID {
			t.Errorf("got %q, want %q; the inventory is %q", got, want, b.recorded())
		}
	}
	b := newFixture(t, deletedApp(nil, helmApp), interceptor.Funcs{})
	b.remover.pruner.Client = interceptor.NewClient(b.api, interceptor.Funcs{Get: away})
	engine := &uninstalls{done: true}
	b.releaser.engine = engine
	if got := b.ended(b.remover.remove(t.Context(), b.s)); got != "failed Failed: reading project kubeop-acme/shop: away" || engine.asked != 0 {
		t.Errorf("got %q, uninstalled %d times", got, engine.asked)
	}
}

// TestInANamespaceThatGoesNothingIsRead with the deployer, whose rights may be gone; only cluster-scoped objects are deleted.
func TestInANamespaceThatGoesNothingIsRead(t *testing.T) {
	disk := labelled(&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "disk"}}, "web")
	b := newFixture(t, deletedApp([]v1alpha1.InventoryEntry{clusterEntry("disk"), entry("ConfigMap", "own")}), interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return errors.New("no rights")
		},
	}, disk, labelled(configMap("own"), "web"))
	b.seen.namespaces[shop] = endingNamespace()
	if got := b.ended(b.remover.remove(t.Context(), b.s)); got != "done" || b.has("PersistentVolume", "disk") || !b.has("ConfigMap", "own") {
		t.Errorf("got %q; the cluster-scoped object exists: %t", got, b.has("PersistentVolume", "disk"))
	}
}

// TestARemovalWithoutADeployerFails has the App keep its inventory, so that the next pass deletes its objects.
func TestARemovalWithoutADeployerFails(t *testing.T) {
	b := newFixture(t, deletedApp([]v1alpha1.InventoryEntry{entry("ConfigMap", "own")}), interceptor.Funcs{}, labelled(configMap("own"), "web"))
	b.remover.deployer = func(string) (client.Client, error) { return nil, errors.New("no client") }
	if got := b.ended(b.remover.remove(t.Context(), b.s)); got != "failed Failed: no client" {
		t.Errorf("got %q", got)
	}
	if !b.has("ConfigMap", "own") || b.recorded() != entry("ConfigMap", "own").ID {
		t.Errorf("the object was deleted, or removed from the inventory %q", b.recorded())
	}
}
