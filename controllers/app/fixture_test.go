package app

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/app/source"
	"github.com/kubeop/kubeop/controllers/hostclaims"
	"github.com/kubeop/kubeop/controllers/refusal"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/controllers/usage"
	"github.com/kubeop/kubeop/delivery/apply"
	"github.com/kubeop/kubeop/delivery/journal"
	"github.com/kubeop/kubeop/delivery/kube"
	"github.com/kubeop/kubeop/internal/testenv/steptest"
)

const shop = "kubeop-acme-shop"

// objectsSeen is a watch over fixed objects.
type objectsSeen struct {
	namespaces map[string]*corev1.Namespace
	// bindings are the RoleBindings that exist, as "namespace/name".
	bindings []string
	// closed is the quota of a namespace that is stopped.
	closed *corev1.ResourceQuota
	// unready are the kinds that are not listed yet.
	unready  map[string]error
	followed []string
	err      error
}

// Follow implements watch.
func (o *objectsSeen) Follow(kind schema.GroupVersionKind) error {
	o.followed = append(o.followed, kind.Kind)
	return o.unready[kind.Kind]
}

// Live implements watch.
func (o *objectsSeen) Live(_ context.Context, kind schema.GroupVersionKind, key types.NamespacedName) (metav1.Object, bool, error) {
	if kind.Kind == "ResourceQuota" && o.closed != nil {
		return o.closed, true, o.err
	}
	if kind.Kind != "RoleBinding" || !slices.Contains(o.bindings, key.String()) {
		return nil, true, o.err
	}
	return &metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}, true, o.err
}

// Namespace implements watch.
func (o *objectsSeen) Namespace(_ context.Context, name string) (metav1.Object, error) {
	if ns := o.namespaces[name]; ns != nil {
		return ns, o.err
	}
	return nil, o.err
}

// fixture is a Reconciler of the app "web" of project "shop" of tenant "acme" with a fake API server.
type fixture struct {
	*Reconciler
	t      *testing.T
	api    client.WithWatch
	app    *v1alpha1.App
	seen   *objectsSeen
	events *events.FakeRecorder
	clock  *clocktesting.FakeClock
	s      *scope
}

// webApp returns the app of the tests; change it with set.
func webApp(set ...func(*v1alpha1.App)) *v1alpha1.App {
	app := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "web", UID: "web", Generation: 1, Finalizers: []string{v1alpha1.Finalizer}}}
	for _, f := range set {
		f(app)
	}
	return app
}

func shopNamespace() *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: shop, Labels: map[string]string{v1alpha1.TenantLabel: "acme", v1alpha1.ProjectLabel: "shop"}}}
}

// endingNamespace is the namespace of the app while it is being deleted.
func endingNamespace() *corev1.Namespace {
	ns := shopNamespace()
	ns.DeletionTimestamp = &metav1.Time{Time: time.Unix(999_999, 0)}
	return ns
}

// newFixture starts with the app and objects in the API server; requests of the deployer go through faults.
func newFixture(t *testing.T, app *v1alpha1.App, faults interceptor.Funcs, objects ...client.Object) *fixture {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(v1alpha1.AddToScheme(scheme), clientgoscheme.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	b := &fixture{t: t, events: events.NewFakeRecorder(20), clock: clocktesting.NewFakeClock(time.Unix(1_000_000, 0))}
	guardrails := &v1alpha1.Guardrails{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: v1alpha1.GuardrailsName}}
	b.api = fake.NewClientBuilder().WithScheme(scheme).WithObjects(append(objects, app, guardrails)...).WithStatusSubresource(app).Build()
	b.app = &v1alpha1.App{}
	if err := b.api.Get(t.Context(), client.ObjectKeyFromObject(app), b.app); err != nil {
		t.Fatal(err)
	}
	unwatched := func(context.Context, schema.GroupVersionKind, types.NamespacedName) (metav1.Object, bool, error) {
		return nil, false, nil
	}
	b.Reconciler = New(Options{
		Cluster: Cluster{Client: b.api, Direct: b.api, Clients: kube.NewClients(&rest.Config{}, scheme, b.api.RESTMapper(), kube.Deployers{})},
		Engines: Engines{Applier: &apply.Applier{Live: unwatched}, Journal: journal.New(fake.NewClientBuilder().Build(), "kubeop-system", b.clock.Now)},
		Tenants: Tenants{
			Store: &usage.Store{}, Rendered: &usage.Rendered{}, Refusals: &refusal.Index{},
			Hosts: &hostclaims.Claims{Client: b.api, Direct: b.api, Clock: b.clock, WakeProject: func(types.NamespacedName) {}},
		},
		Sources: &source.Fetcher{},
		Steps:   &step.Runner{Client: b.api, Events: b.events, Clock: b.clock},
		Clock:   b.clock,
	})
	b.seen = &objectsSeen{namespaces: map[string]*corev1.Namespace{shop: shopNamespace()}, bindings: []string{shop + "/" + v1alpha1.Deployer}}
	deployer := interceptor.NewClient(b.api, faults)
	as := func(namespace string) (client.Client, error) {
		if namespace != shop {
			return nil, errors.New("a deployer of another namespace: " + namespace)
		}
		return deployer, nil
	}
	b.projects.Watch, b.projects.Deployer = b.seen, as
	b.remover.watch, b.remover.deployer = b.seen, as
	b.s = b.newScope(b.app)
	b.s.inventory = b.app.Status.Inventory
	return b
}

// ended describes how a step ended.
func (b *fixture) ended(err error) string {
	b.t.Helper()
	return steptest.Outcome(b.t, err)
}

// endsAs reports whether a step ended as wanted. A text that ends with ": " is only the beginning.
func endsAs(got, want string) bool {
	return got == want || strings.HasSuffix(want, ": ") && strings.HasPrefix(got, want)
}

// has reports whether the API server still has a ConfigMap or claim.
func (b *fixture) has(kind, name string) bool {
	b.t.Helper()
	o := map[string]client.Object{
		"ConfigMap": &corev1.ConfigMap{}, "PersistentVolumeClaim": &corev1.PersistentVolumeClaim{}, "PersistentVolume": &corev1.PersistentVolume{},
	}[kind]
	key := client.ObjectKey{Namespace: shop, Name: name}
	if kind == "PersistentVolume" {
		key.Namespace = ""
	}
	err := b.api.Get(b.t.Context(), key, o)
	if client.IgnoreNotFound(err) != nil {
		b.t.Fatal(err)
	}
	return err == nil
}

// recorded are the IDs in the inventory.
func (b *fixture) recorded() string {
	var ids []string
	for _, e := range b.s.inventory.Entries {
		ids = append(ids, e.ID)
	}
	return strings.Join(ids, " ")
}

// sent returns the events so far.
func (b *fixture) sent() string {
	var all []string
	for {
		select {
		case e := <-b.events.Events:
			all = append(all, e)
		default:
			return strings.Join(all, "\n")
		}
	}
}

// labelled gives an object the labels of an app of project "shop".
func labelled[T client.Object](o T, app string, change ...func(T)) T {
	o.SetUID(types.UID(o.GetName()))
	o.SetLabels(map[string]string{v1alpha1.TenantLabel: "acme", v1alpha1.ProjectLabel: "shop", v1alpha1.AppLabel: app})
	for _, f := range change {
		f(o)
	}
	return o
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: name}}
}

// boundClaim is a claim that holds data.
func boundClaim(name string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: name}, Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound}}
}

func entry(kind, name string) v1alpha1.InventoryEntry {
	return v1alpha1.InventoryEntry{ID: shop + "_" + name + "__" + kind, Version: "v1"}
}

// clusterEntry records a cluster-scoped object.
func clusterEntry(name string) v1alpha1.InventoryEntry {
	return v1alpha1.InventoryEntry{ID: "_" + name + "__PersistentVolume", Version: "v1"}
}

// ownerOf refers to a StatefulSet of that name and UID.
func ownerOf(name string) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: name, UID: types.UID(name)}
}
