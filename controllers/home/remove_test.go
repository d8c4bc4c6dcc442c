package home

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/namespace"
	"github.com/kubeop/kubeop/delivery/pvc"
	"github.com/kubeop/kubeop/internal/testenv/steptest"
)

func dataClaim(name string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: shopNamespace, Name: name, UID: types.UID("uid-" + name)},
		Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: "pv-" + name},
		Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound, Capacity: corev1.ResourceList{
			corev1.ResourceStorage: resource.MustParse("1Gi"),
		}},
	}
}

func emptyClaim(name string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: shopNamespace, Name: name, UID: types.UID("uid-" + name)}}
}

// removal deletes as the deployer, with what kinds are given.
func (b *fixture) removal(kinds ...string) Removal {
	d := Removal{Deployer: b.api, Grace: time.Hour}
	for _, kind := range kinds {
		d.Kinds = append(d.Kinds, schema.GroupResource{Resource: kind})
	}
	return d
}

func (b *fixture) remove(d Removal) string {
	b.t.Helper()
	return steptest.Outcome(b.t, b.Remove(b.t.Context(), d))
}

func closed() *corev1.ResourceQuota {
	return &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: shopNamespace, Name: namespace.ClosedQuota}}
}

func TestOnlyItsOwnNamespaceIsRemoved(t *testing.T) {
	const deleted = "waits Deleting: namespace kubeop-acme-shop is being deleted, after 1s"
	for name, c := range map[string]struct {
		there  *corev1.Namespace
		policy v1alpha1.DeletionPolicy
		want   string
		stays  bool
	}{
		"its own":                 {there: shop(), want: deleted},
		"gone":                    {want: "done"},
		"of another tenant":       {there: shop(ofTenant("rival")), want: "done", stays: true},
		"of an earlier tenant":    {there: shop(madeForUID("uid-0", "sha256:other")), want: "done", stays: true},
		"under the policy Orphan": {there: shop(), policy: v1alpha1.DeletionOrphan, want: "done", stays: true},
	} {
		t.Run(name, func(t *testing.T) {
			objects := []client.Object{closed()}
			if c.there != nil {
				objects = append(objects, c.there)
			}
			b := newFixture(t, objects...)
			d := b.removal()
			d.Policy = c.policy
			if got := b.remove(d); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if got := b.namespace() != nil; got != c.stays {
				t.Errorf("stays: %t, want %t", got, c.stays)
			}
		})
	}
}

func TestNothingIsDeletedBeforeTheNamespaceIsClosed(t *testing.T) {
	b := newFixture(t, shop(), emptyClaim("scratch"))
	if got := b.remove(b.removal()); got != "soon, after 500ms" {
		t.Errorf("got %q, want %q", got, "soon, after 500ms")
	}
	if !b.has(closed()) || !b.has(emptyClaim("scratch")) || b.namespace() == nil {
		t.Error("it has to be closed first, and nothing else done")
	}
	if got := b.remove(b.removal()); got != "waits Deleting: waits for claims scratch (0) to be gone, after 1s" {
		t.Errorf("got %q, want %q", got, "waits Deleting: waits for claims scratch (0) to be gone, after 1s")
	}
	if b.has(emptyClaim("scratch")) || b.namespace() == nil {
		t.Error("the claim without data has to go before the namespace")
	}
	if got := b.remove(b.removal()); got != "waits Deleting: namespace kubeop-acme-shop is being deleted, after 1s" {
		t.Errorf("got %q, want %q", got, "waits Deleting: namespace kubeop-acme-shop is being deleted, after 1s")
	}
}

func TestClaimsThatHoldDataKeepTheNamespace(t *testing.T) {
	policies := []v1alpha1.ClaimDeletionPolicy{v1alpha1.ClaimDelete}
	confirmed := map[types.UID]bool{"uid-data": true}
	for name, c := range map[string]struct {
		terms    pvc.Terms
		want     string
		goes     bool
		retained bool
	}{
		"nobody confirmed":            {pvc.Terms{Policies: policies}, "done", false, true},
		"confirmed, but to be kept":   {pvc.Terms{Confirmed: confirmed}, "done", false, true},
		"confirmed and to be deleted": {pvc.Terms{Policies: policies, Confirmed: confirmed}, "waits Deleting: waits for claims data (1Gi) to be gone, after 1s", true, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t, shop(), closed(), dataClaim("data"), roleBinding("kubeop-view"), roleBinding(v1alpha1.Deployer))
			d := b.removal()
			d.Claims = c.terms
			if got := b.remove(d); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if b.has(dataClaim("data")) == c.goes {
				t.Errorf("the claim went: %t, want %t", !c.goes, c.goes)
			}
			ns := b.namespace()
			if got := ns != nil && ns.Labels[v1alpha1.RetainedLabel] != ""; got != c.retained {
				t.Fatalf("retained: %t, want %t", got, c.retained)
			}
			if locked := !b.has(roleBinding("kubeop-view")) && !b.has(roleBinding(v1alpha1.Deployer)); locked != c.retained {
				t.Errorf("all access is taken: %t, want %t", locked, c.retained)
			}
			if !c.retained {
				return
			}
			if because := ns.Annotations[v1alpha1.RetainedBecauseAnnotation]; !strings.HasPrefix(because, "Project kubeop-acme/shop was deleted, ") {
				t.Errorf("it says %q", because)
			}
			events := b.reported()
			if strings.Count(events, "Warning NamespaceRetained namespace kubeop-acme-shop is kept, because claims in it hold data: data (1Gi). ") != 2 {
				t.Errorf("the project and the namespace do not both say so: %s", events)
			}
			if got := b.remove(d); got != "done" || b.reported() != "" {
				t.Errorf("the second look ends %q, with events", got)
			}
		})
	}
}

func TestClaimsWithoutDataGoBeforeTheNamespaceIsRetained(t *testing.T) {
	b := newFixture(t, shop(), closed(), dataClaim("data"), emptyClaim("scratch"))
	if got := b.remove(b.removal()); got != "waits Deleting: waits for claims scratch (0) to be gone, after 1s" {
		t.Errorf("got %q, want %q", got, "waits Deleting: waits for claims scratch (0) to be gone, after 1s")
	}
	if b.namespace().Labels[v1alpha1.RetainedLabel] != "" {
		t.Error("it is retained while claims are still to go")
	}
}

func TestADeletionOfClaimsThatIsRefused(t *testing.T) {
	claims := corev1.Resource("persistentvolumeclaims")
	const deleted = "waits Deleting: namespace kubeop-acme-shop is being deleted, after 1s"
	for name, c := range map[string]struct {
		refused error
		others  []client.Object
		want    string
	}{
		"it changed meanwhile": {apierrors.NewConflict(claims, "scratch", errAway), nil, "waits Deleting: waits for claims scratch (0) to be gone, after 1s"},
		"there is no deployer": {apierrors.NewForbidden(claims, "scratch", errAway), nil, deleted},
		"there is no deployer, and data": {apierrors.NewForbidden(claims, "scratch", errAway), []client.Object{dataClaim("data")},
			`failed AccessDenied: deleting claim scratch: persistentvolumeclaims "scratch" is forbidden: the API server is away`},
		"the API server is away": {errAway, nil, "failed Failed: deleting claim scratch: the API server is away"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t, append(c.others, shop(), closed(), emptyClaim("scratch"))...)
			d := b.removal()
			d.Deployer = interceptor.NewClient(b.api, interceptor.Funcs{Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error { return c.refused }})
			if got := b.remove(d); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestWithoutADeployerNothingIsDeletedOneByOne(t *testing.T) {
	b := newFixture(t, shop(), emptyClaim("scratch"), roleBinding("kubeop-admin"))
	if got := b.remove(Removal{}); got != "waits Deleting: namespace kubeop-acme-shop is being deleted, after 1s" {
		t.Errorf("got %q, want %q", got, "waits Deleting: namespace kubeop-acme-shop is being deleted, after 1s")
	}
	if b.has(closed()) || !b.has(emptyClaim("scratch")) || !b.has(roleBinding("kubeop-admin")) {
		t.Error("the namespace alone is to be deleted")
	}
	b = newFixture(t, shop(), dataClaim("data"))
	if got := b.remove(Removal{}); got != "done" || b.namespace().Labels[v1alpha1.RetainedLabel] == "" {
		t.Errorf("with data it ends %q, and the namespace is %v", got, b.namespace().Labels)
	}
}

func TestObjectsThatHoldTheNamespaceAreWaitedFor(t *testing.T) {
	held := func() *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: shopNamespace, Name: "held", Finalizers: []string{"example.com/x"}}}
	}
	const waits = "waits Deleting: waits for what would hold the deletion of namespace kubeop-acme-shop: ConfigMap/held, which the finalizer example.com/x holds"
	const how = "; a finalizer that nobody serves any more is taken off, and what it waits for left undone, if that is meant: " +
		"an administrator of the cluster may run: kubectl annotate project shop -n kubeop-acme --overwrite paas.kubeop.io/force-removal=shop"
	for name, c := range map[string]struct {
		forced bool
		waited time.Duration
		want   string
		freed  bool
	}{
		"just deleted":         {waited: 0, want: waits + how + ", after 1s"},
		"a minute ago":         {waited: time.Minute, want: waits + how + ", after 6s"},
		"long ago":             {waited: time.Hour, want: waits + how + ", after 30s"},
		"forced":               {forced: true, waited: 0, want: waits + ", after 1s", freed: true},
		"forced, a minute ago": {forced: true, waited: time.Minute, want: waits + ", after 6s", freed: true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t, shop(), closed(), held(), roleBinding("kubeop-admin"), roleBinding("kubeop-view"), roleBinding(v1alpha1.Deployer))
			b.clock.SetTime(deletedAt.Add(c.waited))
			if c.forced {
				b.Of.SetAnnotations(map[string]string{v1alpha1.ForceRemovalAnnotation: "shop"})
			}
			d := b.removal("configmaps")
			b.remove(d) // It deletes the object, which its finalizer holds.
			if got := b.remove(d); got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
			if b.has(roleBinding("kubeop-admin")) || !b.has(roleBinding("kubeop-view")) || !b.has(roleBinding(v1alpha1.Deployer)) {
				t.Error("none but the deployer may add anything, and readers stay")
			}
			if b.has(held()) == c.freed {
				t.Errorf("the finalizer was taken off: %t, want %t", !c.freed, c.freed)
			}
			if freed := strings.Count(b.reported(), "Warning RemovalForced removed finalizers by force: example.com/x from ConfigMap/held") == 2; freed != c.freed {
				t.Errorf("events say that it was: %t, want %t", freed, c.freed)
			}
			if b.namespace() == nil {
				t.Error("the namespace went before what is in it")
			}
		})
	}
}

func TestPodsAreEndedOnlyAfterTheGrace(t *testing.T) {
	for waited, want := range map[time.Duration]bool{time.Hour - time.Second: false, time.Hour: false, time.Hour + time.Second: true} {
		t.Run(waited.String(), func(t *testing.T) {
			b := newFixture(t, shop(), closed())
			b.clock.SetTime(deletedAt.Add(waited))
			d := b.removal("pods")
			d.Deployer = interceptor.NewClient(b.api, interceptor.Funcs{List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
				pod := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "web-1", DeletionTimestamp: &metav1.Time{Time: deletedAt}}}
				list.(*metav1.PartialObjectMetadataList).Items = []metav1.PartialObjectMetadata{pod}
				return nil
			}})
			if got := b.remove(d); !strings.Contains(got, "deletion of namespace kubeop-acme-shop: Pod/web-1") || strings.Contains(got, "force-removal") {
				t.Errorf("got %q", got)
			}
			event := fmt.Sprintf("pods were deleted without waiting for them, as shop was deleted more than %s ago: web-1", time.Hour)
			if got := strings.Count(b.reported(), event) == 2; got != want {
				t.Errorf("ended: %t, want %t", got, want)
			}
		})
	}
}

func TestTheReasonOfARetainedNamespaceNamesTheTenant(t *testing.T) {
	b := newFixture(t, shop(), closed(), dataClaim("data"))
	b.Of = &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "acme", DeletionTimestamp: &metav1.Time{Time: deletedAt}}}
	if got := b.remove(b.removal()); got != "done" {
		t.Errorf("got %q, want %q", got, "done")
	}
	if because := b.namespace().Annotations[v1alpha1.RetainedBecauseAnnotation]; !strings.HasPrefix(because, "Tenant acme was deleted, ") {
		t.Errorf("it says %q", because)
	}
	if b.resource() != "tenant" {
		t.Errorf("its command names a %s, want %q", b.resource(), "tenant")
	}
}

// TestNothingIsDeletedOneByOneInANamespaceThatIsBeingDeleted: it takes all along, and nothing in it can be kept any more.
func TestNothingIsDeletedOneByOneInANamespaceThatIsBeingDeleted(t *testing.T) {
	leaving := shop()
	leaving.DeletionTimestamp, leaving.Finalizers = &metav1.Time{Time: deletedAt}, []string{"kubernetes"}
	b := newFixture(t, leaving, dataClaim("data"), emptyClaim("scratch"), roleBinding("kubeop-admin"))
	if got := b.remove(b.removal()); got != "waits Deleting: namespace kubeop-acme-shop is being deleted, after 1s" {
		t.Errorf("got %q", got)
	}
	if b.has(closed()) || !b.has(emptyClaim("scratch")) || !b.has(roleBinding("kubeop-admin")) || b.namespace().Labels[v1alpha1.RetainedLabel] != "" {
		t.Errorf("the namespace is closed, emptied or retained: %v", b.namespace().Labels)
	}
	if got := b.reported(); got != "" {
		t.Errorf("events: %s, want none", got)
	}
}

// TestEachRequestOfAHomeThatFailsIsAnError: a namespace that could not be looked at, cleared or kept is neither Ready nor gone.
func TestEachRequestOfAHomeThatFailsIsAnError(t *testing.T) {
	for name, c := range map[string]struct {
		there []client.Object
		do    func(*fixture, client.WithWatch) error
		least int
	}{
		"made": {nil, func(b *fixture, _ client.WithWatch) error {
			return b.Make(t.Context(), b.ledger(v1alpha1.Inventory{}), namespace.Terms{})
		}, 2},
		"adopted with its claims": {[]client.Object{shop(retained)}, func(b *fixture, _ client.WithWatch) error {
			return b.Make(t.Context(), b.ledger(v1alpha1.Inventory{}), namespace.Terms{})
		}, 2},
		"removed": {[]client.Object{shop(), closed(), emptyClaim("scratch")}, func(b *fixture, api client.WithWatch) error {
			d := b.removal("pods")
			d.Deployer = api
			return b.Remove(t.Context(), d)
		}, 4},
		"removed without claims": {[]client.Object{shop(), closed()}, func(b *fixture, _ client.WithWatch) error { return b.Remove(t.Context(), b.removal()) }, 4},
		"closed":                 {[]client.Object{shop()}, func(b *fixture, _ client.WithWatch) error { return b.Remove(t.Context(), b.removal()) }, 2},
		"kept": {[]client.Object{shop(), closed(), dataClaim("data"), roleBinding("kubeop-view")}, func(b *fixture, _ client.WithWatch) error {
			return b.Remove(t.Context(), b.removal())
		}, 5},
	} {
		t.Run(name, func(t *testing.T) {
			requests := steptest.EachRequest(t, func(f *steptest.Failing) error {
				var there []client.Object
				for _, o := range c.there {
					there = append(there, o.DeepCopyObject().(client.Object))
				}
				b := newFixture(t, there...)
				away := f.Client(b.api)
				b.Direct = away
				return c.do(b, away)
			})
			if requests < c.least {
				t.Errorf("%d requests, want %d at least", requests, c.least)
			}
		})
	}
}
