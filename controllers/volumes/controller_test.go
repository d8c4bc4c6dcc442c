package volumes

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

const shopNamespace = "kubeop-acme-shop"

var errAway = errors.New("the API server is away")

// shop is a tenant's namespace with annotations.
func shop(annotations map[string]string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: shopNamespace, UID: "ns-1", Labels: map[string]string{v1alpha1.TenantLabel: "acme"}, Annotations: annotations,
	}}
}

func allowed() *corev1.Namespace {
	return shop(map[string]string{v1alpha1.AllowDeletionAnnotation: shopNamespace})
}

func claim(name, volume string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: shopNamespace, Name: name, UID: types.UID("uid-" + name)},
		Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: volume},
	}
}

func volume(name, claimUID string, policy corev1.PersistentVolumeReclaimPolicy) *corev1.PersistentVolume {
	v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeSpec{PersistentVolumeReclaimPolicy: policy}}
	if claimUID != "" {
		v.Spec.ClaimRef = &corev1.ObjectReference{UID: types.UID(claimUID)}
	}
	return v
}

// fixture is a reconciler over a fake API server that counts patches.
type fixture struct {
	Reconciler
	t       *testing.T
	api     client.WithWatch
	events  *events.FakeRecorder
	patches int
}

func newFixture(t *testing.T, objects ...client.Object) *fixture {
	t.Helper()
	b := &fixture{t: t, events: events.NewFakeRecorder(10)}
	b.api = fake.NewClientBuilder().WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			b.patches++
			return c.Patch(ctx, o, p, opts...)
		},
	}).Build()
	b.Reconciler = Reconciler{Direct: b.api, Events: b.events}
	return b
}

func (b *fixture) look() (reconcile.Result, error) {
	return b.Reconcile(b.t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: shopNamespace}})
}

// named returns the annotation that names the volumes, and whether it is there.
func (b *fixture) named() (string, bool) {
	b.t.Helper()
	ns := &corev1.Namespace{}
	if err := b.api.Get(b.t.Context(), client.ObjectKey{Name: shopNamespace}, ns); err != nil {
		b.t.Fatal(err)
	}
	text, there := ns.Annotations[v1alpha1.VolumesRetainedAnnotation]
	return text, there
}

func (b *fixture) policy(name string) corev1.PersistentVolumeReclaimPolicy {
	b.t.Helper()
	v := &corev1.PersistentVolume{}
	if err := b.api.Get(b.t.Context(), client.ObjectKey{Name: name}, v); err != nil {
		b.t.Fatal(err)
	}
	return v.Spec.PersistentVolumeReclaimPolicy
}

func TestVolumesOfANamespaceThatMayBeDeletedAreRetained(t *testing.T) {
	const del, keep, recycle = corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRetain, corev1.PersistentVolumeReclaimRecycle
	for name, c := range map[string]struct {
		volume *corev1.PersistentVolume
		claim  *corev1.PersistentVolumeClaim
		want   corev1.PersistentVolumeReclaimPolicy
		named  string
	}{
		"its claim's":                        {volume("pv-1", "uid-data", del), claim("data", "pv-1"), keep, "1 volume: pv-1"},
		"recycled otherwise":                 {volume("pv-1", "uid-data", recycle), claim("data", "pv-1"), keep, "1 volume: pv-1"},
		"retained already":                   {volume("pv-1", "uid-data", keep), claim("data", "pv-1"), keep, "1 volume: pv-1"},
		"another claim's, which this names":  {volume("pv-1", "uid-of-a-rival", del), claim("data", "pv-1"), del, "0 volumes"},
		"nobody's, which this names":         {volume("pv-1", "", del), claim("data", "pv-1"), del, "0 volumes"},
		"a claim that has no volume":         {volume("pv-1", "uid-data", del), claim("data", ""), del, "0 volumes"},
		"a claim whose volume is gone":       {volume("pv-1", "uid-data", del), claim("data", "pv-2"), del, "0 volumes"},
		"a claim of the name that was there": {volume("pv-1", "uid-data-before", del), claim("data", "pv-1"), del, "0 volumes"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t, allowed(), c.claim, c.volume)
			result, err := b.look()
			if err != nil || result.RequeueAfter != again {
				t.Errorf("got %v, %v; claims that are made meanwhile have to be looked for", result, err)
			}
			if got := b.policy("pv-1"); got != c.want {
				t.Errorf("policy %s, want %s", got, c.want)
			}
			if got, _ := b.named(); got != c.named {
				t.Errorf("the namespace names %q, want %q", got, c.named)
			}
			event := "Its claims have no volumes to keep."
			if c.want == keep {
				event = "This volume is kept: pv-1"
			}
			if got := <-b.events.Events; got != "Normal VolumesRetained The namespace may be deleted. "+event {
				t.Errorf("the event says %q", got)
			}
			patches := b.patches
			if _, err := b.look(); err != nil || b.patches != patches || len(b.events.Events) != 0 {
				t.Errorf("the second look wrote %d times, with %d events (%v)", b.patches-patches, len(b.events.Events), err)
			}
		})
	}
}

func TestOnlyATenantsNamespaceAnnotatedWithItsNameIsReconciled(t *testing.T) {
	const marked = "1 volume: pv-1"
	foreign := allowed()
	foreign.Labels = nil
	for name, c := range map[string]struct {
		namespace *corev1.Namespace
		patches   int
		stays     bool
	}{
		"of no tenant":                       {namespace: foreign},
		"not annotated":                      {namespace: shop(nil)},
		"another name is annotated":          {namespace: shop(map[string]string{v1alpha1.AllowDeletionAnnotation: "true"})},
		"no longer allowed, with its volume": {namespace: shop(map[string]string{v1alpha1.VolumesRetainedAnnotation: marked}), patches: 1},
		"allowed for another name, marked": {
			namespace: shop(map[string]string{v1alpha1.AllowDeletionAnnotation: "other", v1alpha1.VolumesRetainedAnnotation: marked}), patches: 1,
		},
		"marked with nothing": {namespace: shop(map[string]string{v1alpha1.VolumesRetainedAnnotation: ""}), patches: 1},
	} {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t, c.namespace, claim("data", "pv-1"), volume("pv-1", "uid-data", corev1.PersistentVolumeReclaimDelete))
			result, err := b.look()
			if err != nil || !result.IsZero() || b.patches != c.patches || len(b.events.Events) != 0 {
				t.Errorf("got %v, %v, %d patches, %d events", result, err, b.patches, len(b.events.Events))
			}
			if _, there := b.named(); there {
				t.Error("the namespace still names volumes")
			}
			if got := b.policy("pv-1"); got != corev1.PersistentVolumeReclaimDelete {
				t.Errorf("the volume has policy %s, want %s", got, corev1.PersistentVolumeReclaimDelete)
			}
		})
	}
	if result, err := newFixture(t).look(); err != nil || !result.IsZero() {
		t.Errorf("a namespace that is gone: %v, %v", result, err)
	}
}

func TestVolumesAreNotNamedBeforeAllAreRetained(t *testing.T) {
	failing := func(kind string) interceptor.Funcs {
		fails := func(o any) bool { return strings.HasSuffix(fmt.Sprintf("%T", o), kind) }
		return interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				if fails(o) {
					return errAway
				}
				return c.Get(ctx, key, o, opts...)
			},
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				if fails(list) {
					return errAway
				}
				return c.List(ctx, list, opts...)
			},
			Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
				if kind == "write "+o.GetName() {
					return errAway
				}
				return c.Patch(ctx, o, p, opts...)
			},
		}
	}
	for kind, want := range map[string]string{
		".Namespace":                 "reading namespace kubeop-acme-shop: ",
		".PersistentVolumeClaimList": "listing the claims of namespace kubeop-acme-shop: ",
		".PersistentVolume":          "reading the volume of claim data: ",
		"write pv-1":                 "retaining volume pv-1: ",
		"write " + shopNamespace:     "naming the volumes on namespace kubeop-acme-shop: ",
	} {
		t.Run(kind, func(t *testing.T) {
			b := newFixture(t, allowed(), claim("data", "pv-1"), volume("pv-1", "uid-data", corev1.PersistentVolumeReclaimDelete))
			b.Direct = interceptor.NewClient(b.api, failing(kind))
			if _, err := b.look(); !errors.Is(err, errAway) || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("got %v, want %s", err, want)
			}
			if _, there := b.named(); there || len(b.events.Events) != 0 {
				t.Error("admission would let the namespace go")
			}
		})
	}
}

func TestAVolumeThatChangedSinceItWasReadIsNotOverwritten(t *testing.T) {
	b := newFixture(t, volume("pv-1", "uid-data", corev1.PersistentVolumeReclaimDelete))
	stale := volume("pv-1", "uid-data", corev1.PersistentVolumeReclaimDelete)
	stale.ResourceVersion = "1"
	if err := b.keep(t.Context(), stale); err == nil {
		t.Error("it was")
	}
}

func TestAPatchNamesTheUIDOfTheNamespace(t *testing.T) {
	b := newFixture(t, allowed())
	var patch string
	b.Direct = interceptor.NewClient(b.api, interceptor.Funcs{Patch: func(_ context.Context, _ client.WithWatch, o client.Object, p client.Patch, _ ...client.PatchOption) error {
		data, err := p.Data(o)
		patch = string(data)
		return err
	}})
	if _, err := b.look(); err != nil || !strings.Contains(patch, `"uid":"ns-1"`) {
		t.Errorf("got %v; patch %s could be of another namespace of the name", err, patch)
	}
}

func TestTheAnnotationNamesTwentyVolumes(t *testing.T) {
	names := func(n int) (all []string) {
		for i := range n {
			all = append(all, fmt.Sprintf("v%d", i))
		}
		return all
	}
	twenty := "v0, v1, v2, v3, v4, v5, v6, v7, v8, v9, v10, v11, v12, v13, v14, v15, v16, v17, v18, v19"
	for n, want := range map[int]string{
		0: "0 volumes", 1: "1 volume: v0", 20: "20 volumes: " + twenty, 21: "21 volumes: " + twenty + ", and 1 more", 25: "25 volumes: " + twenty + ", and 5 more",
	} {
		if got := summary(names(n)); got != want {
			t.Errorf("of %d it says %q, want %q", n, got, want)
		}
	}
	if got, want := message(names(21)), "The namespace may be deleted. These volumes are kept: "+twenty+", and 1 more"; got != want {
		t.Errorf("the event says %q, want %q", got, want)
	}
}

func TestOnlyChangedMarksOfNamespacesWakeTheController(t *testing.T) {
	marked := shop(map[string]string{v1alpha1.VolumesRetainedAnnotation: "0 volumes"})
	for name, c := range map[string]struct {
		was, is *corev1.Namespace
		want    bool
	}{
		"neither annotated":       {shop(nil), shop(map[string]string{"example.com/x": "y"}), false},
		"deletion is allowed":     {shop(nil), allowed(), true},
		"it is allowed no longer": {allowed(), shop(nil), true},
		"volumes are named":       {allowed(), marked, true},
		"nothing changed":         {allowed(), allowed(), false},
	} {
		if got := annotated.Update(event.UpdateEvent{ObjectOld: c.was, ObjectNew: c.is}); got != c.want {
			t.Errorf("%s: woken %t, want %t", name, got, c.want)
		}
	}
	for name, c := range map[string]struct {
		namespace *corev1.Namespace
		want      bool
	}{"not annotated": {shop(nil), false}, "allowed": {allowed(), true}, "marked": {marked, true}} {
		if got := annotated.Create(event.CreateEvent{Object: c.namespace}); got != c.want {
			t.Errorf("new and %s: woken %t, want %t", name, got, c.want)
		}
	}
	if annotated.Delete(event.DeleteEvent{Object: allowed()}) {
		t.Error("woken by one that is gone")
	}
}
