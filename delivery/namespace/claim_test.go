package namespace

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

const shopNamespace = "kubeop-acme-shop"

var (
	shopLabels = map[string]string{v1alpha1.TenantLabel: "acme", v1alpha1.ProjectLabel: "shop"}
	acme       = Owner{Labels: shopLabels, Tenant: "uid-1", Identity: "sha256:acme"}
	errAway    = errors.New("the API server is away")
)

// shop returns the namespace of project shop as kubeop made it, changed.
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

func label(name, value string) func(*corev1.Namespace) {
	return func(ns *corev1.Namespace) { ns.Labels[name] = value }
}

func without(names ...string) func(*corev1.Namespace) {
	return func(ns *corev1.Namespace) {
		for _, name := range names {
			delete(ns.Labels, name)
			delete(ns.Annotations, name)
		}
	}
}

func leaving(ns *corev1.Namespace) {
	ns.DeletionTimestamp, ns.Finalizers = &metav1.Time{Time: time.Unix(1, 0)}, []string{"example.com/held"}
}

func managedBy(manager string, operation metav1.ManagedFieldsOperationType) func(*corev1.Namespace) {
	return func(ns *corev1.Namespace) {
		ns.ManagedFields = append(ns.ManagedFields, metav1.ManagedFieldsEntry{Manager: manager, Operation: operation})
	}
}

// reader answers every Get with one namespace, or with none.
type reader struct {
	client.Reader
	ns  *corev1.Namespace
	err error
}

func (r reader) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if r.err != nil {
		return r.err
	}
	if r.ns == nil || key.Name != r.ns.Name {
		return apierrors.NewNotFound(corev1.Resource("namespaces"), key.Name)
	}
	r.ns.DeepCopyInto(into.(*corev1.Namespace))
	return nil
}

func TestANamespaceIsClaimedByItsOwnerAlone(t *testing.T) {
	for name, c := range map[string]struct {
		ns      *corev1.Namespace
		owner   Owner
		want    error
		found   bool
		adopted bool
	}{
		"none there":                        {owner: acme},
		"made for the same tenant":          {ns: shop(), owner: acme, found: true},
		"a namespace without labels":        {ns: shop(without(v1alpha1.TenantLabel, v1alpha1.ProjectLabel)), owner: acme, want: ErrTaken},
		"of another tenant":                 {ns: shop(label(v1alpha1.TenantLabel, "rival")), owner: acme, want: ErrTaken},
		"of another project":                {ns: shop(label(v1alpha1.ProjectLabel, "blog")), owner: acme, want: ErrTaken},
		"an earlier tenant of the name":     {ns: shop(), owner: Owner{Labels: shopLabels, Tenant: "uid-2", Identity: "sha256:other"}, want: ErrInherited},
		"neither has an identity":           {ns: shop(without(v1alpha1.TenantIdentityAnnotation)), owner: Owner{Labels: shopLabels, Tenant: "uid-2"}, want: ErrInherited},
		"restored with another UID":         {ns: shop(), owner: Owner{Labels: shopLabels, Tenant: "uid-2", Identity: "sha256:acme"}, found: true, adopted: true},
		"handed over by an administrator":   {ns: shop(without(v1alpha1.TenantUIDAnnotation)), owner: Owner{Labels: shopLabels, Tenant: "uid-2", Identity: "sha256:other"}, found: true},
		"its own, and being deleted":        {ns: shop(leaving), owner: acme, want: ErrLeaving},
		"a foreign one being deleted":       {ns: shop(leaving, label(v1alpha1.TenantLabel, "rival")), owner: acme, want: ErrTaken},
		"a label was removed":               {ns: shop(without(v1alpha1.ProjectLabel), managedBy(v1alpha1.FieldManager, metav1.ManagedFieldsOperationApply)), owner: acme, found: true},
		"a label was changed":               {ns: shop(label(v1alpha1.ProjectLabel, "blog"), managedBy(v1alpha1.FieldManager, metav1.ManagedFieldsOperationApply)), owner: acme, want: ErrTaken},
		"a label was set to nothing":        {ns: shop(label(v1alpha1.ProjectLabel, ""), managedBy(v1alpha1.FieldManager, metav1.ManagedFieldsOperationApply)), owner: acme, want: ErrTaken},
		"no label, applied by someone else": {ns: shop(without(v1alpha1.ProjectLabel), managedBy("helm", metav1.ManagedFieldsOperationApply)), owner: acme, want: ErrTaken},
		"no label, updated but not applied": {ns: shop(without(v1alpha1.ProjectLabel), managedBy(v1alpha1.FieldManager, metav1.ManagedFieldsOperationUpdate)), owner: acme, want: ErrTaken},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := Claim(t.Context(), reader{ns: c.ns}, shopNamespace, c.owner)
			if !errors.Is(err, c.want) || (c.want == nil && err != nil) {
				t.Fatalf("got %v, want %v", err, c.want)
			}
			if err != nil && !strings.HasPrefix(err.Error(), "namespace "+shopNamespace+": ") {
				t.Errorf("the error does not name the namespace: %v", err)
			}
			if (found.Namespace != nil) != c.found || found.Adopted != c.adopted {
				t.Errorf("found %v, adopted %t", found.Namespace, found.Adopted)
			}
			own, err := Own(t.Context(), reader{ns: c.ns}, shopNamespace, c.owner)
			if wantOwn := c.found || errors.Is(c.want, ErrLeaving); (own != nil) != wantOwn || err != nil {
				t.Errorf("may be removed as one's own: %t, want %t (%v)", own != nil, wantOwn, err)
			}
		})
	}
}

func TestAFailedReadIsNoFreeNamespace(t *testing.T) {
	if found, err := Claim(t.Context(), reader{err: errAway}, shopNamespace, acme); !errors.Is(err, errAway) || found.Namespace != nil {
		t.Errorf("claimed %v, %v", found.Namespace, err)
	}
	if own, err := Own(t.Context(), reader{err: errAway}, shopNamespace, acme); !errors.Is(err, errAway) || own != nil {
		t.Errorf("owned %v, %v", own, err)
	}
}

func TestATerminatingNamespaceNamesTheObjectsThatHoldIt(t *testing.T) {
	held := shop(leaving, func(ns *corev1.Namespace) {
		ns.Status.Conditions = []corev1.NamespaceCondition{{Type: corev1.NamespaceFinalizersRemaining, Status: corev1.ConditionTrue, Message: "example.com/x in 1 resource instances"}}
	})
	_, err := Claim(t.Context(), reader{ns: held}, shopNamespace, acme)
	if want := "namespace kubeop-acme-shop: the namespace is still being deleted: example.com/x in 1 resource instances"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestRetainedNamespacesHaveTheLabel(t *testing.T) {
	for name, c := range map[string]struct {
		found Found
		want  bool
	}{
		"none there": {Found{}, false},
		"in use":     {Found{Namespace: shop()}, false},
		"retained":   {Found{Namespace: shop(label(v1alpha1.RetainedLabel, "true"))}, true},
	} {
		if got := c.found.Retained(); got != c.want {
			t.Errorf("%s: got %t, want %t", name, got, c.want)
		}
	}
}

func TestTheNamespaceToApplyIsMarkedAndHeldToItsTerms(t *testing.T) {
	terms := Terms{PodSecurity: "baseline", PodSecurityVersion: "v1.34", Limits: map[string]string{v1alpha1.MaxObjectSizeAnnotation: "1024"}}
	for name, c := range map[string]struct {
		owner       Owner
		annotations map[string]string
	}{
		"with an identity": {acme, map[string]string{
			v1alpha1.TenantUIDAnnotation: "uid-1", v1alpha1.TenantIdentityAnnotation: "sha256:acme", v1alpha1.MaxObjectSizeAnnotation: "1024",
		}},
		"without": {Owner{Labels: shopLabels, Tenant: "uid-1"}, map[string]string{v1alpha1.TenantUIDAnnotation: "uid-1", v1alpha1.MaxObjectSizeAnnotation: "1024"}},
	} {
		t.Run(name, func(t *testing.T) {
			object := Object(shopNamespace, c.owner, terms)
			if diff := cmp.Diff(c.annotations, object.Annotations); diff != "" {
				t.Errorf("annotations (-want +got):\n%s", diff)
			}
			want := map[string]string{
				v1alpha1.TenantLabel: "acme", v1alpha1.ProjectLabel: "shop",
				"pod-security.kubernetes.io/enforce": "baseline", "pod-security.kubernetes.io/enforce-version": "v1.34",
				"pod-security.kubernetes.io/warn": "baseline", "pod-security.kubernetes.io/warn-version": "v1.34",
				"pod-security.kubernetes.io/audit": "baseline", "pod-security.kubernetes.io/audit-version": "v1.34",
			}
			if diff := cmp.Diff(want, object.Labels); diff != "" {
				t.Errorf("labels (-want +got):\n%s", diff)
			}
		})
	}
}

func TestANamespaceOfAFrozenOrStoppedTenantIsLabelled(t *testing.T) {
	for frozen, want := range map[bool]string{true: "true", false: ""} {
		if got := Object(shopNamespace, acme, Terms{Stopped: frozen}).Labels[v1alpha1.StoppedLabel]; got != want {
			t.Errorf("stopped %t: the label is %q", frozen, got)
		}
		if got := Object(shopNamespace, acme, Terms{Frozen: frozen}).Labels[v1alpha1.FrozenLabel]; got != want {
			t.Errorf("frozen %t: the label is %q", frozen, got)
		}
	}
}

func TestLimitsOfATenantAreAnnotationsWhereTheyAreSet(t *testing.T) {
	size, grace := resource.MustParse("64Ki"), metav1.Duration{Duration: 90 * time.Second}
	for name, c := range map[string]struct {
		spec  v1alpha1.TenantSpec
		names string // of externalNames and externalIPs
		want  map[string]string
		grace time.Duration
		size  int64
	}{
		"nothing is set": {v1alpha1.TenantSpec{}, "", map[string]string{"paas.kubeop.io/external-names": "", "paas.kubeop.io/external-ips": ""}, time.Hour, 32768},
		"everything is set": {
			v1alpha1.TenantSpec{MaxObjectSize: &size, MaxTerminationGracePeriod: &grace, PriorityClasses: []string{"low", "high"}, Taints: []string{"gpu", "arm"}, IngressAnnotations: []string{"b/x", "a/x"},
				CSIDrivers: []string{"secrets.example.com", "cache.example.com"}, EndpointsWriters: []string{"shop/db", "blog/db"}},
			"b a",
			map[string]string{v1alpha1.MaxObjectSizeAnnotation: "65536", v1alpha1.MaxGracePeriodAnnotation: "90", v1alpha1.PriorityClassesAnnotation: "high,low",
				v1alpha1.TaintsAnnotation: "arm,gpu", v1alpha1.IngressAnnotationsAnnotation: "a/x,b/x",
				v1alpha1.CSIDriversAnnotation: "cache.example.com,secrets.example.com", v1alpha1.EndpointsWritersAnnotation: "blog/db,shop/db",
				"paas.kubeop.io/external-names": "a,b", "paas.kubeop.io/external-ips": "a,b"},
			90 * time.Second, 65536,
		},
	} {
		t.Run(name, func(t *testing.T) {
			tenant := &v1alpha1.Tenant{Spec: c.spec}
			if diff := cmp.Diff(c.want, LimitsOf(tenant, strings.Fields(c.names), strings.Fields(c.names))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if MaxGracePeriod(tenant) != c.grace || MaxObjectSize(tenant) != c.size {
				t.Errorf("grace period %s, object size %d", MaxGracePeriod(tenant), MaxObjectSize(tenant))
			}
		})
	}
	if len(LimitsOf(&v1alpha1.Tenant{Spec: v1alpha1.TenantSpec{PriorityClasses: []string{"b", "a"}}}, nil, nil)) != 3 {
		t.Error("priority classes alone are not one annotation beside the two that are always there")
	}
}

// server returns a fake API server with what namespaces hold.
func server(t *testing.T, funcs interceptor.Funcs, objects ...client.Object) client.WithWatch {
	t.Helper()
	c := fake.NewClientBuilder().WithObjects(objects...).WithInterceptorFuncs(funcs).Build()
	if err := rbacv1.AddToScheme(c.Scheme()); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestRemoveDeletesExactlyTheNamespaceThatWasRead(t *testing.T) {
	var uid string
	c := server(t, interceptor.Funcs{Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
		options := (&client.DeleteOptions{}).ApplyOptions(opts)
		if options.Preconditions != nil && options.Preconditions.UID != nil {
			uid = string(*options.Preconditions.UID)
		}
		return c.Delete(ctx, o)
	}}, shop())
	left, err := Remove(t.Context(), c, shop())
	if err != nil || left != "namespace kubeop-acme-shop is being deleted" || uid != "ns-1" {
		t.Errorf("got %q, %v; UID %q was a precondition", left, err, uid)
	}
	if err := c.Get(t.Context(), client.ObjectKey{Name: shopNamespace}, &corev1.Namespace{}); !apierrors.IsNotFound(err) {
		t.Errorf("it is still there: %v", err)
	}
	if _, err := Remove(t.Context(), c, shop()); err != nil {
		t.Errorf("one that is gone already is an error: %v", err)
	}
	refuses := server(t, interceptor.Funcs{Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error { return errAway }}, shop())
	if _, err := Remove(t.Context(), refuses, shop()); !errors.Is(err, errAway) {
		t.Errorf("got %v", err)
	}
}
