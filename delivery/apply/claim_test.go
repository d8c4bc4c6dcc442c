package apply

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/own"
)

func TestAnObjectOfAnotherOwnerIsNotTaken(t *testing.T) {
	yes := true
	ours := map[string]string{v1alpha1.TenantLabel: "acme", v1alpha1.AppLabel: "web"}
	cases := map[string]struct {
		live metav1.ObjectMeta
		take bool
		err  error
		want []string
	}{
		"nobody's":                     {metav1.ObjectMeta{}, false, ErrForeign, []string{"exists already, made by kubectl-create;", "takeOwnership: true"}},
		"nobody's, taken":              {metav1.ObjectMeta{}, true, nil, nil},
		"ours already":                 {metav1.ObjectMeta{Labels: ours}, false, nil, nil},
		"of a Helm release":            {metav1.ObjectMeta{Annotations: map[string]string{own.HelmReleaseAnnotation: "shop"}}, true, ErrForeign, []string{"belongs to Helm release shop"}},
		"of a controller":              {metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Widget", Name: "big", UID: "1", Controller: &yes}}}, true, ErrForeign, []string{"belongs to Widget/big"}},
		"of another app":               {metav1.ObjectMeta{Labels: map[string]string{v1alpha1.TenantLabel: "acme", v1alpha1.AppLabel: "api"}}, true, ErrContested, []string{"belongs to app api already"}},
		"of an app of another project": {metav1.ObjectMeta{Labels: map[string]string{v1alpha1.TenantLabel: "acme", v1alpha1.ProjectLabel: "shop", v1alpha1.AppLabel: "web"}}, true, ErrContested, []string{"belongs to app web of project shop already"}},
		"of another tenant":            {metav1.ObjectMeta{Labels: map[string]string{v1alpha1.TenantLabel: "evil", v1alpha1.AppLabel: "web"}}, true, ErrContested, []string{"belongs to app web of tenant evil already"}},
		"the project's own":            {metav1.ObjectMeta{Labels: map[string]string{v1alpha1.TenantLabel: "acme"}}, true, ErrContested, []string{"belongs to tenant acme itself"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t)
			c.live.Namespace, c.live.Name = b.namespace, "one"
			theirs := &corev1.ConfigMap{ObjectMeta: c.live, Data: map[string]string{"theirs": "stays"}}
			if err := b.Create(t.Context(), theirs, client.FieldOwner("kubectl-create")); err != nil {
				t.Fatal(err)
			}
			result, err := b.Apply(t.Context(), Set{Client: b.Client, Objects: objectsOf(b.config("one", "a")), TakeOwnership: c.take})
			if !errors.Is(err, c.err) || (err == nil) != (c.err == nil) {
				t.Fatalf("got %v, want %v", err, c.err)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the message does not say %q: %v", want, err)
				}
			}
			if got := b.read("one"); c.err != nil && (got.ResourceVersion != theirs.ResourceVersion || len(result.Entries) != 0) {
				t.Errorf("it was touched: %v, recorded %v", got, result.Entries)
			}
			if got := b.read("one"); c.err == nil && (got.Data["key"] != "a" || got.Labels[v1alpha1.AppLabel] != "web" || len(result.Entries) != 1) {
				t.Errorf("it is not ours: %v, recorded %v", got, result.Entries)
			}
		})
	}
}

// TestClusterScopedObjectsAreNotAdopted has an app meet what administrators made, and have it once they say so.
func TestClusterScopedObjectsAreNotAdopted(t *testing.T) {
	b := newFixture(t)
	theirs := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: b.namespace}, Description: "theirs"}
	if err := b.Create(t.Context(), theirs, client.FieldOwner("kubectl-create")); err != nil {
		t.Fatal(err)
	}
	ours := b.priority("ours")
	take := func() error {
		_, err := b.Apply(t.Context(), Set{Client: b.Client, Objects: objectsOf(ours), TakeOwnership: true, Force: true})
		return err
	}
	if err := take(); !errors.Is(err, ErrForeign) || !strings.Contains(err.Error(), "made by kubectl-create; it is cluster-scoped and so the administrators'") {
		t.Errorf("got %v", err)
	}
	if err := b.Get(t.Context(), client.ObjectKeyFromObject(theirs), theirs); err != nil || theirs.Description != "theirs" {
		t.Errorf("it was taken over: %+v, %v", theirs, err)
	}
	theirs.Labels = ours.GetLabels()
	if err := b.Update(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	if err := take(); err != nil {
		t.Error(err)
	}
	if err := b.Get(t.Context(), client.ObjectKeyFromObject(theirs), theirs); err != nil || theirs.Description != "ours" {
		t.Errorf("it was not handed over: %+v, %v", theirs, err)
	}
}

func TestThePlatformAdoptsClusterScopedObjectsOnRequest(t *testing.T) {
	b := newFixture(t)
	theirs := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: b.namespace}, Description: "theirs"}
	if err := b.Create(t.Context(), theirs, client.FieldOwner("kubectl-create")); err != nil {
		t.Fatal(err)
	}
	ours := b.priority("ours")
	labels := ours.GetLabels()
	labels[v1alpha1.TenantLabel] = v1alpha1.PlatformTenant
	ours.SetLabels(labels)
	for _, take := range []bool{false, true} {
		_, err := b.Apply(t.Context(), Set{Client: b.Client, Objects: objectsOf(ours), TakeOwnership: take, Force: true})
		if take != (err == nil) || err != nil && !strings.Contains(err.Error(), "made by kubectl-create; set spec.takeOwnership: true in app.yaml to take it over") {
			t.Errorf("takeOwnership %t: got %v", take, err)
		}
	}
	if err := b.Get(t.Context(), client.ObjectKeyFromObject(theirs), theirs); err != nil || theirs.Description != "ours" {
		t.Errorf("it was not taken over: %+v, %v", theirs, err)
	}
}

// priority is a cluster-scoped object of the app web.
func (b *fixture) priority(description string) *unstructured.Unstructured {
	o := b.object("scheduling.k8s.io/v1", "PriorityClass", b.namespace, map[string]any{"value": int64(0), "description": description})
	o.SetNamespace("")
	b.t.Cleanup(func() { _ = b.Delete(context.Background(), o) })
	return o
}

// TestAForeignClusterScopedObjectIsNotOverwritten has administrators delete what an app made in the whole cluster and
// make their own of the same name, under drift Off; the app then changes its manifest.
func TestAForeignClusterScopedObjectIsNotOverwritten(t *testing.T) {
	for name, watched := range map[string]bool{"of a kind that is watched": true, "of one that is not": false} {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t)
			if !watched {
				b.Applier = &Applier{Live: func(context.Context, schema.GroupVersionKind, types.NamespacedName) (metav1.Object, bool, error) {
					return nil, false, nil
				}}
			}
			b.must(1, b.priority("ours"))
			if err := b.Delete(t.Context(), b.priority("ours")); err != nil {
				t.Fatal(err)
			}
			theirs := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: b.namespace}, Description: "theirs"}
			if err := b.Create(t.Context(), theirs, client.FieldOwner("kubectl-create")); err != nil {
				t.Fatal(err)
			}
			for _, description := range []string{"ours", "changed", "changed"} {
				set := Set{Client: b.Client, Objects: objectsOf(b.priority(description)), Recorded: b.recorded, Leave: true, TakeOwnership: true, Force: true}
				result, err := b.Apply(t.Context(), set)
				if left := description == "ours" && err == nil && len(result.Moved) == 1; !left && !Only(err, ErrForeign) {
					t.Errorf("%s: got %v", description, err)
				}
				b.recorded = result.Entries
			}
			if live := (&schedulingv1.PriorityClass{}); b.Get(t.Context(), client.ObjectKeyFromObject(theirs), live) != nil || live.ResourceVersion != theirs.ResourceVersion {
				t.Errorf("it was touched: %+v", live)
			}
			if len(b.recorded) != 0 {
				t.Errorf("recorded is %v", b.recorded)
			}
		})
	}
}

// TestAWatchThatLagsBehindTakesNothingFromOthers has another object take the place of the app's, which the watch still shows.
func TestAWatchThatLagsBehindTakesNothingFromOthers(t *testing.T) {
	ofAnother := func(b *fixture) client.Object {
		return &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "one", Labels: map[string]string{v1alpha1.TenantLabel: "acme", v1alpha1.AppLabel: "api"}},
			Data:       map[string]string{"key": "theirs"},
		}
	}
	ofAdministrators := func(b *fixture) client.Object {
		return &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: b.namespace}, Description: "theirs"}
	}
	config := func(b *fixture, value string) *unstructured.Unstructured { return b.config("one", value) }
	for name, c := range map[string]struct {
		ours   func(b *fixture, value string) *unstructured.Unstructured
		theirs func(b *fixture) client.Object
		want   error
	}{
		"another app's":      {config, ofAnother, ErrContested},
		"administrators'":    {(*fixture).priority, ofAdministrators, ErrForeign},
		"nothing":            {config, nil, nil},
		"nothing in cluster": {(*fixture).priority, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t)
			b.must(1, c.ours(b, "a"))
			ours := c.ours(b, "b")
			byHand := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"by":"hand"}}}`))
			if err := b.Patch(t.Context(), ours.DeepCopy(), byHand, client.FieldOwner("kubectl-edit")); err != nil {
				t.Fatal(err)
			}
			stale, _, err := b.live(t.Context(), ours.GroupVersionKind(), client.ObjectKeyFromObject(ours))
			if stale == nil || err != nil {
				t.Fatal(stale, err)
			}
			b.Applier = &Applier{Live: func(context.Context, schema.GroupVersionKind, types.NamespacedName) (metav1.Object, bool, error) {
				return stale, true, nil
			}}
			if err := b.Delete(t.Context(), ours.DeepCopy()); err != nil {
				t.Fatal(err)
			}
			var theirs client.Object
			if c.theirs != nil {
				theirs = c.theirs(b)
				if err := b.Create(t.Context(), theirs, client.FieldOwner("kubectl-edit")); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := b.apply(ours); !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
				t.Errorf("got %v, want %v", err, c.want)
			}
			there, _, err := b.live(t.Context(), ours.GroupVersionKind(), client.ObjectKeyFromObject(ours))
			if theirs == nil && (there == nil || there.GetUID() == stale.GetUID()) {
				t.Errorf("it was not made anew: %v, %v", there, err)
			}
			if theirs == nil {
				return
			}
			version := theirs.GetResourceVersion()
			if err := b.Get(t.Context(), client.ObjectKeyFromObject(theirs), theirs); err != nil || theirs.GetResourceVersion() != version {
				t.Errorf("it was touched: %v, %v", theirs, err)
			}
		})
	}
}

// TestAClusterScopedObjectCostsNoMoreRequestsThanOthers counts the requests besides the look, which the watch answers.
func TestAClusterScopedObjectCostsNoMoreRequestsThanOthers(t *testing.T) {
	b := newFixture(t)
	var requests atomic.Int64
	counted := b.counting(func(string) { requests.Add(1) })
	pass := func(what string, want int64, o *unstructured.Unstructured) {
		t.Helper()
		requests.Store(0)
		result, err := b.Apply(t.Context(), Set{Client: counted, Objects: objectsOf(o), Recorded: b.recorded})
		if err != nil || requests.Load() != want {
			t.Errorf("%s: %d requests and %v, want %d", what, requests.Load(), err, want)
		}
		b.recorded = result.Entries
	}
	pass("made", 1, b.priority("a"))
	pass("unchanged", 0, b.priority("a"))
	pass("changed", 1, b.priority("b"))
	if err := b.Delete(t.Context(), b.priority("b")); err != nil {
		t.Fatal(err)
	}
	pass("made anew", 1, b.priority("b"))
}

// TestKubeopsOwnInTheClusterComesBack takes the labels off what kubeop makes for itself.
func TestKubeopsOwnInTheClusterComesBack(t *testing.T) {
	b := newFixture(t)
	own := func() *unstructured.Unstructured {
		o := b.priority("a")
		o.SetLabels(map[string]string{v1alpha1.TenantLabel: "acme"})
		return o
	}
	b.must(1, own())
	if err := b.Patch(t.Context(), own(), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":null}}`))); err != nil {
		t.Fatal(err)
	}
	b.must(1, own())
}

// TestANewObjectCostsOneRequest counts those besides the look, which the watch answers.
func TestANewObjectCostsOneRequest(t *testing.T) {
	b := newFixture(t)
	var requests atomic.Int64
	counted := b.counting(func(string) { requests.Add(1) })
	objects := objectsOf(b.config("one", "a"), b.deployment(1, "web:1"), b.object("v1", "Secret", "s", map[string]any{"stringData": map[string]any{"a": "b"}}))
	result, err := b.Apply(t.Context(), Set{Client: counted, Objects: objects})
	if err != nil || requests.Load() != 3 || len(result.Entries) != 3 {
		t.Errorf("%d requests, %v, %v", requests.Load(), result.Entries, err)
	}
}

func TestAnObjectWithoutARecordedDigestIsApplied(t *testing.T) {
	b := newFixture(t)
	b.must(1, b.config("one", "a"))
	b.recorded[0].Digest = "" // The process ended before it could record what it wrote.
	b.must(1, b.config("one", "b"))
	if got := b.read("one").Data["key"]; got != "b" {
		t.Errorf("the value is %q, want %q", got, "b")
	}
}

func TestLabelsThatAreTakenAwayComeBack(t *testing.T) {
	b := newFixture(t)
	b.must(1, b.config("one", "a"))
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":null}}`))
	if err := b.Patch(t.Context(), b.read("one"), patch, client.FieldOwner("somebody")); err != nil {
		t.Fatal(err)
	}
	b.must(1, b.config("one", "a"))
	if got := b.read("one").Labels[v1alpha1.AppLabel]; got != "web" {
		t.Errorf("the label is %q, want %q", got, "web")
	}
}

// TestALedgerRecordsAnObjectOnce applies one twice, as a step does that falls back to less.
func TestALedgerRecordsAnObjectOnce(t *testing.T) {
	b := newFixture(t)
	l := NewLedger(b.Applier, b.Client, v1alpha1.Inventory{})
	for _, value := range []string{"a", "b"} {
		if err := l.Apply(t.Context(), b.config("one", value)); err != nil {
			t.Fatal(err)
		}
	}
	if got := l.Inventory().Entries; len(got) != 1 {
		t.Errorf("recorded are %v", got)
	}
}

// TestPodsAreNotRestartedByATakeoverThatCannotReadTheWorkload: without the live generation it is unknown whether the labels alone restart them.
func TestPodsAreNotRestartedByATakeoverThatCannotReadTheWorkload(t *testing.T) {
	b := newFixture(t)
	theirs := b.workload("web:1")
	theirs.SetLabels(nil)
	if err := b.Create(t.Context(), theirs, client.FieldOwner("kubectl-create")); err != nil {
		t.Fatal(err)
	}
	b.rest(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "web"}})
	ours := b.workload("web:1")
	if err := unstructured.SetNestedStringMap(ours.Object, map[string]string{"a": "b", v1alpha1.AppLabel: "web"}, "spec", "template", "metadata", "labels"); err != nil {
		t.Fatal(err)
	}
	away, taken := false, false
	faulty := b.around(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			taken = taken || p.Type() == types.JSONPatchType
			return c.Patch(ctx, o, p, opts...)
		},
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if taken && away {
				return errors.New("away")
			}
			return c.Get(ctx, key, o, opts...)
		},
	})
	for _, away = range []bool{true, false} {
		_, err := b.Apply(t.Context(), Set{Client: faulty, Objects: objectsOf(ours.DeepCopy()), TakeOwnership: true})
		if away != (err != nil) || away && !strings.Contains(err.Error(), "reading the generation: away") {
			t.Fatalf("away %t: got %v", away, err)
		}
		if err := b.Get(t.Context(), client.ObjectKeyFromObject(theirs), theirs); err != nil {
			t.Fatal(err)
		}
		labels, _, _ := unstructured.NestedStringMap(theirs.Object, "spec", "template", "metadata", "labels")
		if labels[v1alpha1.AppLabel] != "" || theirs.GetGeneration() != 1 {
			t.Errorf("away %t: generation %d with labels %v", away, theirs.GetGeneration(), labels)
		}
	}
}
