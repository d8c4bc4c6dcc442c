package home

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/apply"
	"github.com/kubeop/kubeop/delivery/namespace"
	"github.com/kubeop/kubeop/internal/testenv/steptest"
)

const shopNamespace = "kubeop-acme-shop"

var (
	errAway    = errors.New("the API server is away")
	shopLabels = map[string]string{v1alpha1.TenantLabel: "acme", v1alpha1.ProjectLabel: "shop"}
	deletedAt  = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
)

// fixture is the home of project shop over a fake API server.
type fixture struct {
	Home
	t      *testing.T
	api    client.WithWatch
	events *events.FakeRecorder
	clock  *clocktesting.FakePassiveClock
	// reads counts requests for the namespace.
	reads int
}

func newFixture(t *testing.T, objects ...client.Object) *fixture {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	for kind := range scheme.AllKnownTypes() {
		mapper.Add(kind, meta.RESTScopeNamespace)
	}
	b := &fixture{t: t, events: events.NewFakeRecorder(20), clock: clocktesting.NewFakePassiveClock(deletedAt)}
	b.api = fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if _, is := o.(*corev1.Namespace); is {
				b.reads++
			}
			return c.Get(ctx, key, o, opts...)
		},
	}).Build()
	project := &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-acme", Name: "shop", DeletionTimestamp: &metav1.Time{Time: deletedAt}}}
	b.Home = Home{
		Direct: b.api, Steps: &step.Runner{Events: b.events, Clock: b.clock}, Of: project, Name: shopNamespace,
		Owner: namespace.Owner{Labels: shopLabels, Tenant: "uid-1", Identity: "sha256:acme"},
	}
	return b
}

// ledger records what is made, and knows as much of the cluster as there is.
func (b *fixture) ledger(recorded v1alpha1.Inventory) *apply.Ledger {
	applier := &apply.Applier{Live: func(ctx context.Context, kind schema.GroupVersionKind, key types.NamespacedName) (metav1.Object, bool, error) {
		o := &metav1.PartialObjectMetadata{}
		o.SetGroupVersionKind(kind)
		err := b.api.Get(ctx, key, o)
		if apierrors.IsNotFound(err) {
			return nil, true, nil
		}
		return o, true, err
	}}
	return apply.NewLedger(applier, b.Direct, recorded)
}

func (b *fixture) namespace() *corev1.Namespace {
	b.t.Helper()
	ns := &corev1.Namespace{}
	err := b.api.Get(b.t.Context(), client.ObjectKey{Name: shopNamespace}, ns)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		b.t.Fatal(err)
	}
	return ns
}

// reported returns the events so far, one a line.
func (b *fixture) reported() string {
	var all []string
	for len(b.events.Events) > 0 {
		all = append(all, <-b.events.Events)
	}
	return strings.Join(all, "\n")
}

// shop is the namespace as kubeop made it, changed.
func shop(change ...func(*corev1.Namespace)) *corev1.Namespace {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: shopNamespace, UID: "ns-1", Labels: map[string]string{v1alpha1.TenantLabel: "acme", v1alpha1.ProjectLabel: "shop"},
		Annotations: map[string]string{v1alpha1.TenantUIDAnnotation: "uid-1", v1alpha1.TenantIdentityAnnotation: "sha256:acme"},
	}}
	for _, c := range change {
		c(ns)
	}
	return ns
}

func ofTenant(name string) func(*corev1.Namespace) {
	return func(ns *corev1.Namespace) { ns.Labels[v1alpha1.TenantLabel] = name }
}

func madeForUID(uid, identity string) func(*corev1.Namespace) {
	return func(ns *corev1.Namespace) {
		ns.Annotations[v1alpha1.TenantUIDAnnotation], ns.Annotations[v1alpha1.TenantIdentityAnnotation] = uid, identity
	}
}

func leaving(ns *corev1.Namespace) {
	ns.DeletionTimestamp, ns.Finalizers = &metav1.Time{Time: deletedAt}, []string{"example.com/held"}
}

func retained(ns *corev1.Namespace) {
	ns.Labels[v1alpha1.RetainedLabel] = "true"
	ns.Annotations[v1alpha1.RetainedBecauseAnnotation] = "it holds data"
}

func TestAHomeIsMadeOnlyInAnUnownedNamespace(t *testing.T) {
	for name, c := range map[string]struct {
		there  *corev1.Namespace
		want   string
		made   bool
		events int
	}{
		"none there":                      {want: "done", made: true},
		"its own":                         {there: shop(), want: "done", made: true},
		"of another tenant":               {there: shop(ofTenant("rival")), want: "stopped NamespaceTaken: namespace kubeop-acme-shop: the namespace exists and does not belong to this object; kubeop adopts none: rename the object in Git, or ask an administrator of the cluster to remove the namespace"},
		"of an earlier tenant":            {there: shop(madeForUID("uid-0", "sha256:other")), want: "stopped NamespaceTaken: namespace kubeop-acme-shop: the namespace was left by an earlier tenant of this name, with what that tenant's people put there, and neither the UID nor the identity (repository, or owners and folder) of this Tenant is that one's. If it is another tenant, give it another name in Git, or have an administrator of the cluster delete the namespace with all that is in it; if it is the same one, an administrator hands it over with: kubectl annotate namespace NAME paas.kubeop.io/tenant-uid-"},
		"of the same tenant, restored":    {there: shop(madeForUID("uid-0", "sha256:acme")), want: "done", made: true, events: 2},
		"left for the sake of its data":   {there: shop(retained), want: "done", made: true, events: 2},
		"an earlier one is being deleted": {there: shop(leaving), want: "waits Progressing: namespace kubeop-acme-shop: the namespace is still being deleted, after 2s"},
	} {
		t.Run(name, func(t *testing.T) {
			var objects []client.Object
			if c.there != nil {
				objects = append(objects, c.there)
			}
			b := newFixture(t, objects...)
			ledger := b.ledger(v1alpha1.Inventory{})
			got := steptest.Outcome(t, b.Make(t.Context(), ledger, namespace.Terms{PodSecurity: "baseline"}))
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if n := len(b.events.Events); n != c.events {
				t.Errorf("%d events, want %d: %s", n, c.events, b.reported())
			}
			if recorded := len(ledger.Inventory().Entries) == 1; recorded != c.made {
				t.Errorf("recorded: %v", ledger.Inventory().Entries)
			}
			ns := b.namespace()
			if made := ns != nil && ns.Labels["pod-security.kubernetes.io/enforce"] == "baseline"; made != c.made {
				t.Errorf("the namespace is %v", ns)
			}
			if c.made && (ns.Labels[v1alpha1.RetainedLabel] != "" || ns.Annotations[v1alpha1.RetainedBecauseAnnotation] != "" || ns.Annotations[v1alpha1.TenantUIDAnnotation] != "uid-1") {
				t.Errorf("it still has marks of before: %v, %v", ns.Labels, ns.Annotations)
			}
		})
	}
}

func TestAHomeThatIsAsItWasMadeIsNotReadAgain(t *testing.T) {
	b := newFixture(t)
	terms := namespace.Terms{PodSecurity: "restricted"}
	first := b.ledger(v1alpha1.Inventory{})
	if err := b.Make(t.Context(), first, terms); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		terms namespace.Terms
		reads int
	}{
		"the same terms":  {terms, 0},
		"other terms now": {namespace.Terms{PodSecurity: "baseline"}, 1},
	} {
		b.reads = 0
		if err := b.Make(t.Context(), b.ledger(first.Inventory()), c.terms); err != nil || b.reads != c.reads {
			t.Errorf("%s: the namespace was read %d times, want %d (%v)", name, b.reads, c.reads, err)
		}
	}
}

func TestAHomeThatCannotBeReadIsAFailureToTryAgain(t *testing.T) {
	b := newFixture(t)
	b.Direct = interceptor.NewClient(b.api, interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
		return errAway
	}})
	got := steptest.Outcome(t, b.Make(t.Context(), b.ledger(v1alpha1.Inventory{}), namespace.Terms{}))
	if want := "failed Failed: reading namespace kubeop-acme-shop: the API server is away"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if b.namespace() != nil {
		t.Error("it was made without being looked at")
	}
}

func roleBinding(name string) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: shopNamespace, Name: name}}
}

func (b *fixture) has(o client.Object) bool {
	b.t.Helper()
	err := b.api.Get(b.t.Context(), client.ObjectKeyFromObject(o), o.DeepCopyObject().(client.Object))
	if client.IgnoreNotFound(err) != nil {
		b.t.Fatal(err)
	}
	return err == nil
}
