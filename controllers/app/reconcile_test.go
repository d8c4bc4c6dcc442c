package app

import (
	"context"
	"errors"
	"testing"

	"github.com/fluxcd/pkg/apis/kustomize"
	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/pod-security-admission/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/app/source"
	"github.com/kubeop/kubeop/delivery/apply"
	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/delivery/build"
	"github.com/kubeop/kubeop/delivery/fetch/pool"
	"github.com/kubeop/kubeop/delivery/inventory"
	"github.com/kubeop/kubeop/delivery/kube"
	"github.com/kubeop/kubeop/delivery/trials"
)

// rawApp is a Raw App whose manifests are ConfigMaps of these names.
func rawApp(names ...string) *v1alpha1.App {
	return webApp(func(app *v1alpha1.App) {
		app.Spec.Type, app.Spec.Raw = v1alpha1.AppRaw, &v1alpha1.RawSource{}
		app.Annotations = map[string]string{v1alpha1.RevisionAnnotation: "main@sha1:1", v1alpha1.TreeAnnotation: "tree"}
		manifests(app, names...)
	})
}

func manifests(app *v1alpha1.App, names ...string) {
	app.Spec.Raw.Manifests = nil
	for _, name := range names {
		app.Spec.Raw.Manifests = append(app.Spec.Raw.Manifests, runtime.RawExtension{Raw: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"` + name + `"}}`)})
	}
}

// newReconcileFixture runs whole Reconciles of an App. The status can be written only while away is nil.
func newReconcileFixture(t *testing.T, app *v1alpha1.App, away *error, objects ...client.Object) *fixture {
	t.Helper()
	kinds := meta.NewDefaultRESTMapper(nil)
	for _, kind := range []string{"Pod", "ConfigMap"} {
		kinds.Add(corev1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	b := newFixture(t, app, interceptor.Funcs{}, append(objects, shopProject())...)
	b.admitter.clients, b.admitter.podSecurity = kube.NewClients(nil, nil, kinds, kube.Deployers{}), api.LatestVersion()
	b.projects.Limits = budget.Default()
	b.steps.Client = interceptor.NewClient(b.api, interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, api client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			if away != nil && *away != nil {
				return *away
			}
			return api.SubResource(sub).Patch(ctx, o, p, opts...)
		},
	})
	b.sources.Answers = source.NewAnswers(pool.New(pool.Options{Reach: pool.ReachOf}, b.clock), b.clock)
	b.renderer.builder = &build.Builder{Trials: trials.New(t.TempDir(), "build")}
	b.objectsLive()
	return b
}

// reconcile runs a Reconcile of the App as the API server has it.
func (b *fixture) reconcile() error {
	b.t.Helper()
	b.app = &v1alpha1.App{}
	if err := b.api.Get(b.t.Context(), client.ObjectKey{Namespace: shop, Name: "web"}, b.app); err != nil {
		b.t.Fatal(err)
	}
	_, err := b.Reconcile(b.t.Context(), b.app)
	return err
}

// change changes the App at the API server.
func (b *fixture) change(f func(*v1alpha1.App)) {
	b.t.Helper()
	app := &v1alpha1.App{}
	if err := b.api.Get(b.t.Context(), client.ObjectKey{Namespace: shop, Name: "web"}, app); err != nil {
		b.t.Fatal(err)
	}
	f(app)
	app.Generation++
	if err := b.api.Update(b.t.Context(), app); err != nil {
		b.t.Fatal(err)
	}
}

// TestAnAppIsDeliveredAndDeleted with one Reconcile each.
func TestAnAppIsDeliveredAndDeleted(t *testing.T) {
	b := newReconcileFixture(t, rawApp("one", "two"), nil)
	if err := b.reconcile(); err != nil {
		t.Fatal(err)
	}
	is := b.app.Status
	if !conditions.IsReady(b.app) || !b.has("ConfigMap", "one") || !b.has("ConfigMap", "two") {
		t.Errorf("the conditions are %v", is.Conditions)
	}
	if ready := conditions.GetMessage(b.app, v1alpha1.ReadyCondition); ready != "Applied 2 objects, healthy" {
		t.Errorf("Ready says %q", ready)
	}
	if len(is.Inventory.Entries) != 2 || is.LastAppliedRevision != "main@sha1:1" || is.RenderedBytes == 0 || is.ObservedTree != "tree" {
		t.Errorf("the status is %+v", is)
	}
	if len(is.Deliveries) != 1 || is.Deliveries[0].Result != v1alpha1.DeliverySucceeded {
		t.Errorf("the deliveries are %+v", is.Deliveries)
	}

	b.change(func(app *v1alpha1.App) { manifests(app, "one") })
	if err := b.reconcile(); err != nil || b.has("ConfigMap", "two") || !b.has("ConfigMap", "one") || len(b.app.Status.Inventory.Entries) != 1 {
		t.Errorf("an object that left the source stays, or another goes: %v, %v", err, b.app.Status.Inventory)
	}

	if err := b.api.Delete(t.Context(), b.app); err != nil {
		t.Fatal(err)
	}
	if err := b.reconcile(); err != nil || b.has("ConfigMap", "one") {
		t.Errorf("the object of the deleted App stays: %v", err)
	}
	if err := b.api.Get(t.Context(), client.ObjectKeyFromObject(b.app), &v1alpha1.App{}); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("the App stays: %v", err)
	}
}

// TestNothingIsRememberedOfADeletedApp, and everything while its deletion waits.
func TestNothingIsRememberedOfADeletedApp(t *testing.T) {
	gone := labelled(configMap("one"), "web", heldBy("example.com/held"))
	b := newReconcileFixture(t, rawApp("two"), nil, gone)
	if err := b.reconcile(); err != nil {
		t.Fatal(err)
	}
	remembered := func() map[string]any {
		return map[string]any{
			"writes": b.recorder.Writes(b.app), "drift": b.applier.drift.Get(b.app), "the release": b.releaser.memory.Get(b.app), "checks": b.assessor.checks.Get(b.app),
			"builds": b.renderer.retried.Get(b.app), "retained claims": b.admitter.retained.Get(b.app),
		}
	}
	before := remembered()
	b.applier.transfers.AwaitOwners(b.newScope(&v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "api"}}).Subject, apply.ErrContested)
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer queue.ShutDown()
	b.wakes.queue.Start(queue)
	app := &v1alpha1.App{}
	if err := b.api.Get(t.Context(), client.ObjectKeyFromObject(b.app), app); err != nil {
		t.Fatal(err)
	}
	app.Status.Inventory.Entries = append(app.Status.Inventory.Entries, entry("ConfigMap", "one"))
	if err := b.api.Status().Update(t.Context(), app); err != nil {
		t.Fatal(err)
	}
	if err := b.api.Delete(t.Context(), b.app); err != nil {
		t.Fatal(err)
	}
	if err := b.reconcile(); err != nil || !b.has("ConfigMap", "one") {
		t.Fatalf("a finalizer holds the object, and it is gone: %v", err)
	}
	for what, was := range before {
		if remembered()[what] != was {
			t.Errorf("%s: forgotten while the deletion waits", what)
		}
	}
	free := configMap("one")
	if err := b.api.Get(t.Context(), client.ObjectKeyFromObject(free), free); err != nil {
		t.Fatal(err)
	}
	free.Finalizers = nil
	if err := b.api.Update(t.Context(), free); err != nil {
		t.Fatal(err)
	}
	if err := b.reconcile(); err != nil {
		t.Fatal(err)
	}
	for what, was := range before {
		if remembered()[what] == was {
			t.Errorf("%s: still known", what)
		}
	}
	b.app.Status.Held = []string{"of the status"}
	if held := b.applier.pruner.Held(b.app); len(held.Objects) == 0 {
		t.Errorf("that nothing is held is still known: %+v", held)
	}
	if queue.Len() != 1 {
		t.Errorf("the sibling that waits for the objects of the App is not woken")
	}
}

// TestObjectsAreKnownUntilTheStatusHasThem: an object whose creation the status could not report is pruned all the same.
func TestObjectsAreKnownUntilTheStatusHasThem(t *testing.T) {
	away := errors.New("the API server is away")
	b := newReconcileFixture(t, rawApp("one", "two"), &away)
	if err := b.reconcile(); !errors.Is(err, away) || !b.has("ConfigMap", "two") {
		t.Fatalf("got %v", err)
	}
	if left, err := b.recorder.Journal.Of(t.Context(), b.app.UID); err != nil || len(left) != 2 {
		t.Errorf("before the status, the journal has %v, %v", left, err)
	}
	away = nil
	b.change(func(app *v1alpha1.App) { manifests(app, "one") })
	if err := b.reconcile(); err != nil || b.has("ConfigMap", "two") {
		t.Errorf("the object that left the source stays: %v; the inventory is %v", err, b.app.Status.Inventory)
	}
	if left, err := b.recorder.Journal.Of(t.Context(), b.app.UID); err != nil || len(left) > 0 {
		t.Errorf("the journal still has what the status reports: %v, %v", left, err)
	}
}

// TestSiblingsKnowWhatAnAppDeclares: an object that moves from one App to another is left to that one.
func TestSiblingsKnowWhatAnAppDeclares(t *testing.T) {
	b := newReconcileFixture(t, rawApp("one"), nil)
	if err := b.reconcile(); err != nil {
		t.Fatal(err)
	}
	expectWanted(b, map[string]string{"one": "app web", "two": ""})
	b.change(func(app *v1alpha1.App) { manifests(app) })
	if err := b.reconcile(); err != nil {
		t.Fatal(err)
	}
	expectWanted(b, map[string]string{"one": "", "two": ""}) // An App without objects declares none.
}

// expectWanted compares which App wants each ConfigMap, as another App of the project sees it.
func expectWanted(b *fixture, want map[string]string) {
	b.t.Helper()
	sibling := b.newScope(&v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "api", UID: "api", Generation: 1}})
	search := b.applier.transfers.Search(sibling.Subject, "")
	for name, want := range want {
		got, err := search.Wanted(b.t.Context(), inventory.ObjectID{Namespace: shop, Kind: "ConfigMap", Name: name})
		if err != nil || got != want {
			b.t.Errorf("ConfigMap %s is wanted by %q, want %q: %v", name, got, want, err)
		}
	}
}

// TestWithoutItsProjectAnAppDeliversNothing, and invalid expressions of health are reported.
func TestWithoutItsProjectAnAppDeliversNothing(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*fixture)
		reason string
	}{
		"no rights":             {func(b *fixture) { b.seen.bindings = nil }, v1alpha1.DependencyNotReadyReason},
		"an invalid expression": {func(b *fixture) { b.change(invalidChecks) }, v1alpha1.InvalidExpressionReason},
		"a dependency": {func(b *fixture) {
			b.change(func(app *v1alpha1.App) { app.Spec.DependsOn = []v1alpha1.Dependency{{Name: "db"}} })
		}, v1alpha1.DependencyNotReadyReason},
	} {
		t.Run(name, func(t *testing.T) {
			b := newReconcileFixture(t, rawApp("one"), nil)
			c.change(b)
			_ = b.reconcile()
			if got := conditions.Get(b.app, v1alpha1.DependenciesReadyCondition); got == nil || got.Reason != c.reason || b.has("ConfigMap", "one") {
				t.Errorf("the object is delivered: %t; the condition is %v", b.has("ConfigMap", "one"), got)
			}
		})
	}
}

func invalidChecks(app *v1alpha1.App) {
	app.Spec.HealthCheckExprs = []kustomize.CustomHealthCheck{{APIVersion: "v1", Kind: "ConfigMap", HealthCheckExpressions: kustomize.HealthCheckExpressions{Current: "1 +"}}}
}

// TestPodsAreFilledForTheLevelOfTheirNamespace by a Reconcile.
func TestPodsAreFilledForTheLevelOfTheirNamespace(t *testing.T) {
	app := rawApp()
	app.Spec.Raw.Manifests = []runtime.RawExtension{{Raw: []byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"containers":[{"name":"a","image":"a"}]}}`)}}
	b := newReconcileFixture(t, app, nil)
	if err := b.reconcile(); err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{}
	if err := b.api.Get(t.Context(), client.ObjectKey{Namespace: shop, Name: "a"}, pod); err != nil {
		t.Fatal(err)
	}
	if c := pod.Spec.SecurityContext; c == nil || c.RunAsNonRoot == nil || !*c.RunAsNonRoot {
		t.Errorf("the pod has the security context %v", c)
	}
}
