package apply

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/garbage"
	"github.com/kubeop/kubeop/delivery/inventory"
	"github.com/kubeop/kubeop/delivery/metadata"
	"github.com/kubeop/kubeop/internal/testenv"
)

var env *testenv.Env

func TestMain(m *testing.M) { testenv.Main(m, &env) }

// fixture applies sets in a namespace of its own and counts the writes.
type fixture struct {
	*Applier
	client.Client
	t         *testing.T
	namespace string
	writes    atomic.Int64
	recorded  []v1alpha1.InventoryEntry
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	t.Parallel()
	plain, err := client.NewWithWatch(env.Config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b := &fixture{t: t}
	b.Client = interceptor.NewClient(plain, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if p.Type() == types.ApplyPatchType {
				b.writes.Add(1)
			}
			return c.Patch(ctx, o, p, opts...)
		},
	})
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "apply-"}}
	if err := plain.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	b.namespace = ns.Name
	b.Applier = &Applier{Live: b.live}
	return b
}

// live looks at the API server itself, where the operator looks at its watch.
func (b *fixture) live(ctx context.Context, kind schema.GroupVersionKind, key types.NamespacedName) (metav1.Object, bool, error) {
	o := &metav1.PartialObjectMetadata{}
	o.SetGroupVersionKind(kind)
	err := b.Get(ctx, key, o)
	if apierrors.IsNotFound(err) || (err == nil && o.Labels[v1alpha1.TenantLabel] == "") {
		return nil, true, nil
	}
	if meta.IsNoMatchError(err) {
		return nil, false, nil
	}
	return o, true, err
}

// apply applies objects and remembers the inventory; it returns how many were written.
func (b *fixture) apply(objects ...*unstructured.Unstructured) (int64, error) {
	b.t.Helper()
	before := b.writes.Load()
	result, err := b.Apply(b.t.Context(), Set{Client: b.Client, Objects: objects, Recorded: b.recorded})
	b.recorded = inventory.Join(result.Entries, inventory.Without(b.recorded, result.Entries)).Entries
	return b.writes.Load() - before, err
}

// Apply is the Applier's; the client's own would hide it.
func (b *fixture) Apply(ctx context.Context, set Set) (Result, error) {
	return b.Applier.Apply(ctx, set)
}

func (b *fixture) config(name, value string) *unstructured.Unstructured {
	return b.object("v1", "ConfigMap", name, map[string]any{"data": map[string]any{"key": value}})
}

// object is one of the app web.
func (b *fixture) object(apiVersion, kind, name string, content map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: content}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	o.SetNamespace(b.namespace)
	o.SetName(name)
	o.SetLabels(map[string]string{v1alpha1.TenantLabel: "acme", v1alpha1.AppLabel: "web"})
	return o
}

func (b *fixture) read(name string) *corev1.ConfigMap {
	b.t.Helper()
	config := &corev1.ConfigMap{}
	if err := b.Get(b.t.Context(), client.ObjectKey{Namespace: b.namespace, Name: name}, config); err != nil {
		b.t.Fatal(err)
	}
	return config
}

func (b *fixture) must(writes int64, objects ...*unstructured.Unstructured) {
	b.t.Helper()
	got, err := b.apply(objects...)
	if err != nil || got != writes {
		b.t.Fatalf("%d writes and %v, want %d and none", got, err, writes)
	}
}

func TestOnlyChangedObjectsAreWritten(t *testing.T) {
	b := newFixture(t)
	b.must(2, b.config("one", "a"), b.config("two", "a"))
	b.must(0, b.config("one", "a"), b.config("two", "a"))
	b.must(1, b.config("one", "b"), b.config("two", "a"))
	if got := b.read("one").Data["key"]; got != "b" {
		t.Errorf("the value is %q, want %q", got, "b")
	}
}

func TestAHandOnOurFieldsIsUndone(t *testing.T) {
	b := newFixture(t)
	b.must(1, b.config("one", "a"))
	edited := b.read("one")
	edited.Data["key"], edited.Data["theirs"] = "edited", "stays"
	if err := b.Update(t.Context(), edited); err != nil {
		t.Fatal(err)
	}
	b.must(1, b.config("one", "a"))
	if diff := cmp.Diff(map[string]string{"key": "a", "theirs": "stays"}, b.read("one").Data); diff != "" {
		t.Errorf("data (-want +got):\n%s", diff)
	}
	b.must(0, b.config("one", "a"))

	if err := b.Delete(t.Context(), b.read("one")); err != nil {
		t.Fatal(err)
	}
	b.must(1, b.config("one", "a"))
}

func TestFieldsThatPeopleAddAreRemoved(t *testing.T) {
	cases := map[string]struct {
		manager string
		patch   string
		writes  int64
		want    map[string]string
	}{
		"a value by kubectl edit":       {"kubectl-edit", `{"data":{"added":"x"}}`, 1, map[string]string{"key": "a"}},
		"a value of a controller":       {"injector", `{"data":{"added":"x"}}`, 0, map[string]string{"key": "a", "added": "x"}},
		"a request by kubectl annotate": {"kubectl-annotate", `{"metadata":{"annotations":{"ask":"now"}}}`, 0, map[string]string{"key": "a"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t)
			b.must(1, b.config("one", "a"))
			err := b.Patch(t.Context(), b.read("one"), client.RawPatch(types.MergePatchType, []byte(c.patch)), client.FieldOwner(c.manager))
			if err != nil {
				t.Fatal(err)
			}
			b.must(c.writes, b.config("one", "a"))
			if diff := cmp.Diff(c.want, b.read("one").Data); diff != "" {
				t.Errorf("data (-want +got):\n%s", diff)
			}
			if got := b.read("one").Annotations["ask"]; (got == "now") != (c.manager == "kubectl-annotate") {
				t.Errorf("the annotation is %q", got)
			}
			b.must(0, b.config("one", "a"))
		})
	}
}

func TestForeignObjectsAreNotAdopted(t *testing.T) {
	b := newFixture(t)
	theirs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "one"}, Data: map[string]string{"key": "theirs"}}
	if err := b.Create(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	_, err := b.apply(b.config("one", "a"), b.config("two", "a"))
	if err == nil || !strings.Contains(err.Error(), "ConfigMap/one: exists already, made by ") {
		t.Errorf("got %v", err)
	}
	if got := b.read("one").Data["key"]; got != "theirs" {
		t.Errorf("the value is %q, want %q", got, "theirs")
	}
	if got := b.read("two").Data["key"]; got != "a" {
		t.Errorf("the other object was held up: %q, want %q", got, "a")
	}
	if got := inventory.Names(b.recorded); got != "ConfigMap/two" {
		t.Errorf("recorded is %s, want %q", got, "ConfigMap/two")
	}
}

func TestAnotherAppsObjectIsNotTaken(t *testing.T) {
	b := newFixture(t)
	b.must(1, b.config("one", "a"))
	b.recorded = nil
	other := b.config("one", "b")
	other.SetLabels(map[string]string{v1alpha1.TenantLabel: "acme", v1alpha1.AppLabel: "api"})
	if _, err := b.apply(other); err == nil || !strings.Contains(err.Error(), "belongs to app web already") {
		t.Errorf("got %v", err)
	}
	if got := b.read("one").Data["key"]; got != "a" {
		t.Errorf("the value is %q, want %q", got, "a")
	}
}

func TestAnInvalidObjectHoldsUpNothing(t *testing.T) {
	b := newFixture(t)
	bad := b.config("bad", "a")
	bad.Object["data"] = map[string]any{"not/a/key": "a"}
	late := b.object("networking.k8s.io/v1", "Ingress", "web", map[string]any{"spec": map[string]any{
		"defaultBackend": map[string]any{"service": map[string]any{"name": "web", "port": map[string]any{"number": int64(80)}}},
	}})
	writes, err := b.apply(late, bad, b.config("one", "a"))
	if writes != 3 || !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "ConfigMap/bad: ") {
		t.Errorf("%d writes and %v", writes, err)
	}
	if got := inventory.Names(b.recorded); got != "ConfigMap/one, Ingress/web" {
		t.Errorf("recorded is %s, want %q", got, "ConfigMap/one, Ingress/web")
	}
}

func TestALostAnswerIsRecorded(t *testing.T) {
	b := newFixture(t)
	lost := fmt.Errorf("connection reset")
	b.Client = interceptor.NewClient(b.Client.(client.WithWatch), interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if err := c.Patch(ctx, o, p, opts...); err != nil {
				return err
			}
			return lost
		},
	})
	if _, err := b.apply(b.config("one", "a")); err == nil {
		t.Fatal("the error is swallowed")
	}
	if got := inventory.Names(b.recorded); got != "ConfigMap/one" {
		t.Errorf("what may be there is not recorded: %q", got)
	}
}

func TestPruneDeletesOnlyObjectsOfTheApp(t *testing.T) {
	b := newFixture(t)
	b.must(3, b.config("one", "a"), b.config("two", "a"), b.config("held", "a"))
	held := b.read("held")
	held.Finalizers = []string{"example.com/held"}
	if err := b.Update(t.Context(), held); err != nil {
		t.Fatal(err)
	}
	stranger := b.read("two")
	stranger.Labels = map[string]string{v1alpha1.AppLabel: "api"}
	if err := b.Update(t.Context(), stranger); err != nil {
		t.Fatal(err)
	}

	owner := map[string]string{v1alpha1.AppLabel: "web"}
	recorded := append(b.recorded, v1alpha1.InventoryEntry{ID: b.namespace + "_x_gone.example.com_Thing", Version: "v1"})
	left, err := garbage.Delete(t.Context(), b.Client, b.Live, recorded, owner)
	if err != nil {
		t.Fatal(err)
	}
	if got := inventory.Names(left); got != "ConfigMap/held" {
		t.Errorf("left is %s, want %q", got, "ConfigMap/held")
	}
	b.read("two")
	held = b.read("held")
	held.Finalizers = nil
	if err := b.Update(t.Context(), held); err != nil {
		t.Fatal(err)
	}
	if left, err = garbage.Delete(t.Context(), b.Client, b.Live, left, owner); err != nil || len(left) != 0 {
		t.Errorf("left is %v, %v", left, err)
	}
}

func TestLedgerForgetsNothing(t *testing.T) {
	b := newFixture(t)
	b.must(2, b.config("one", "a"), b.config("two", "a"))
	l := NewLedger(b.Applier, b.Client, v1alpha1.Inventory{Entries: b.recorded})
	if err := l.Apply(t.Context(), b.config("one", "b")); err != nil {
		t.Fatal(err)
	}
	if got := inventory.Names(l.Inventory().Entries); got != "ConfigMap/one, ConfigMap/two" {
		t.Errorf("before pruning, recorded is %s, want %q", got, "ConfigMap/one, ConfigMap/two")
	}
	if err := l.Prune(t.Context(), map[string]string{v1alpha1.AppLabel: "web"}); err != nil {
		t.Fatal(err)
	}
	if got := inventory.Names(l.Inventory().Entries); got != "ConfigMap/one" {
		t.Errorf("after pruning, recorded is %s, want %q", got, "ConfigMap/one")
	}
}

// TestLedgerWithdrawsUnrecordedObjects: only what the watch shows costs a request, and only what is the owner's goes.
func TestLedgerWithdrawsUnrecordedObjects(t *testing.T) {
	b := newFixture(t)
	b.must(2, b.config("one", "a"), b.config("strangers", "a"))
	strangers := b.read("strangers")
	strangers.Labels = map[string]string{v1alpha1.AppLabel: "api"}
	if err := b.Update(t.Context(), strangers); err != nil {
		t.Fatal(err)
	}
	l := NewLedger(b.Applier, b.Client, v1alpha1.Inventory{})
	owner := map[string]string{v1alpha1.AppLabel: "web"}
	if err := l.Withdraw(t.Context(), owner, b.config("one", "b"), b.config("strangers", "b"), b.config("nowhere", "b")); err != nil {
		t.Fatal(err)
	}
	b.read("strangers")
	err := b.Get(t.Context(), types.NamespacedName{Namespace: b.namespace, Name: "one"}, &corev1.ConfigMap{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("one is still there: %v", err)
	}
	if got := l.Inventory().Entries; len(got) != 0 {
		t.Errorf("recorded is %v", got)
	}
}

// A watch that lags shows an object as it was before the last write, or not at all. Nothing is written again for that, unless
// the manifest is another one, or the watch shows something newer.
func TestAnObjectThatTheWatchHasNotSeenIsNotWrittenAgain(t *testing.T) {
	b := newFixture(t)
	behind := true
	live := b.Live
	b.Live = func(ctx context.Context, kind schema.GroupVersionKind, key types.NamespacedName) (metav1.Object, bool, error) {
		if behind {
			return nil, true, nil
		}
		return live(ctx, kind, key)
	}
	one := b.config("one", "a")
	first, err := b.Apply(t.Context(), Set{Client: b.Client, Objects: []*unstructured.Unstructured{one}})
	if err != nil || len(first.Written) != 1 {
		t.Fatalf("%v, %v", first, err)
	}
	fresh := true
	again := func(o *unstructured.Unstructured, floors map[string]string) int {
		t.Helper()
		result, err := b.Apply(t.Context(), Set{Client: b.Client, Objects: []*unstructured.Unstructured{o}, Recorded: first.Entries, Floors: floors, Fresh: fresh})
		if err != nil {
			t.Fatal(err)
		}
		return len(result.Written)
	}
	if n := again(one, first.Written); n != 0 {
		t.Error("what the watch has not seen was written again")
	}
	if n := again(b.config("one", "b"), first.Written); n != 1 {
		t.Error("another manifest was not written")
	}
	fresh = false
	if n := again(b.config("one", "b"), first.Written); n != 1 {
		t.Error("what may have been deleted was not looked for")
	}
	behind = false
	edited := b.read("one")
	edited.Data["key"] = "mine"
	if err := b.Update(t.Context(), edited); err != nil {
		t.Fatal(err)
	}
	if n := again(one, first.Written); n != 1 {
		t.Error("what the watch shows in a newer version was not mended")
	}
}

// What left a source may be what fills the quota, so its refusal is distinguished from others.
func TestAFullQuotaIsDistinguishedFromOtherRefusals(t *testing.T) {
	b := newFixture(t)
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "small"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"count/configmaps": resource.MustParse("0")}},
	}
	if err := b.Create(t.Context(), quota); err != nil {
		t.Fatal(err)
	}
	var err error
	for i := range 200 { // The controller manager fills in the status first; until then each is made.
		if _, err = b.apply(b.config(fmt.Sprint("config", i), "a")); err != nil && strings.Contains(err.Error(), "exceeded quota") {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if !Only(err, ErrContested, ErrQuota) || Only(err, ErrContested) || !strings.Contains(err.Error(), "project.yaml") || !apierrors.IsForbidden(inventory.Split(err)[0]) {
		t.Errorf("got %v", err)
	}
}

// counting returns the fixture's client, which counts every request. What stands for the watch asks by another.
func (b *fixture) counting(count func(verb string)) client.Client {
	return interceptor.NewClient(b.Client.(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			count("get")
			return c.Get(ctx, key, o, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			count("list")
			return c.List(ctx, list, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			count("patch")
			return c.Patch(ctx, o, p, opts...)
		},
	})
}

// seenBy returns the removal with a watch.
func seenBy(watch metadata.Watch, r garbage.Removal) garbage.Removal {
	r.Live = watch
	return r
}
