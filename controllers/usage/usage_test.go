package usage

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/gitops/identity"
	"github.com/kubeop/kubeop/internal/testenv/steptest"
)

func TestAdmitHoldsToEachLimit(t *testing.T) {
	web := identity.Ref{Tenant: "acme", Project: "shop", App: "web"}
	shop := identity.Ref{Tenant: "acme", Project: "shop"}
	cases := map[string]struct {
		limits budget.Limits
		there  map[identity.Ref]int64
		ref    identity.Ref
		size   int64
		want   string
	}{
		"room": {limits: budget.Default(), ref: web, size: 2000},
		"a project too many": {
			limits: budget.Limits{Projects: 1, TreeBytes: 1 << 20}, there: map[identity.Ref]int64{shop: 1024}, ref: identity.Ref{Tenant: "acme", Project: "blog"}, size: 1024,
			want: "projects of tenant acme, with this one: 2, and the limit is 1; remove some, or ask an administrator of the cluster for more with spec.limits.projects of the Tenant, in tenant.yaml of the platform repository",
		},
		"a project that is there": {limits: budget.Limits{Projects: 1, TreeBytes: 1 << 20}, there: map[identity.Ref]int64{shop: 1024}, ref: shop, size: 2048},
		"an app too many": {
			limits: budget.Limits{Projects: 9, Apps: 1, TreeBytes: 1 << 20}, there: map[identity.Ref]int64{web: 1024},
			ref: identity.Ref{Tenant: "acme", Project: "blog", App: "web"}, size: 1024, want: "apps of all projects of tenant acme, with this one: 2, and the limit is 1; remove some, or ask an administrator of the cluster for more with spec.limits.apps of the Tenant, in tenant.yaml of the platform repository",
		},
		"no app at all": {limits: budget.Limits{Projects: 9, TreeBytes: 1 << 20}, ref: web, size: 1024, want: "apps of all projects of tenant acme, with this one: 1, and the limit is 0; remove some, or ask an administrator of the cluster for more with spec.limits.apps of the Tenant, in tenant.yaml of the platform repository"},
		"too large": {
			limits: budget.Limits{Projects: 9, Apps: 9, TreeBytes: 4096}, there: map[identity.Ref]int64{shop: 3000}, ref: web, size: 2120,
			want: "Projects and Apps in the cluster, by size of tenant acme, with this one: 5Ki, and the limit is 4Ki; remove some, or ask an administrator of the cluster for more with spec.limits.treeBytes of the Tenant, in tenant.yaml of the platform repository",
		},
		"one that grows too large":        {limits: budget.Limits{Projects: 9, Apps: 9, TreeBytes: 4096}, there: map[identity.Ref]int64{web: 3000}, ref: web, size: 5120, want: "Projects and Apps in the cluster, by size of tenant acme, with this one: 5Ki, and the limit is 4Ki; remove some, or ask an administrator of the cluster for more with spec.limits.treeBytes of the Tenant, in tenant.yaml of the platform repository"},
		"less than before, yet too large": {limits: budget.Limits{TreeBytes: 1}, there: map[identity.Ref]int64{web: 3000}, ref: web, size: 2999},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			u := &Usage{Tenant: "acme", Limits: c.limits, objects: map[identity.Ref]int64{}}
			for ref, size := range c.there {
				u.Add(ref, size)
			}
			before := u.Sums
			err := u.Admit(c.ref, c.size)
			if c.want == "" && err != nil || c.want != "" && (err == nil || err.Error() != c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if err != nil && u.Sums != before {
				t.Errorf("what was refused counts: %+v, before %+v", u.Sums, before)
			}
			if err == nil && !u.Has(c.ref) {
				t.Error("what was admitted does not count")
			}
		})
	}
}

func objectMeta(namespace, name string, generation int64) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(namespace + "/" + name), Generation: generation}
}

func TestOfCountsOneTenantByItsNamespaces(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	large := v1alpha1.AppSpec{Raw: &v1alpha1.RawSource{Path: strings.Repeat("x", 5000)}}
	objects := []client.Object{
		&v1alpha1.Tenant{ObjectMeta: objectMeta("", "acme", 1), Spec: v1alpha1.TenantSpec{Limits: v1alpha1.TenantLimits{Apps: ptr.To[int32](3)}}},
		&v1alpha1.Project{ObjectMeta: objectMeta("kubeop-acme", "shop", 1)},
		&v1alpha1.Project{ObjectMeta: objectMeta("kubeop-acme2", "shop", 1)},
		&v1alpha1.App{ObjectMeta: objectMeta("kubeop-acme-shop", "web", 1), Spec: large},
		&v1alpha1.App{ObjectMeta: objectMeta("kubeop-acme-shop", "api", 1)},
		&v1alpha1.App{ObjectMeta: objectMeta("kubeop-acme2-shop", "web", 1), Spec: large},
	}
	c := &Counter{Reader: fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build(), Limits: budget.Default()}
	count := func() budget.Sums {
		t.Helper()
		u, err := c.Of(t.Context(), "acme")
		if err != nil {
			t.Fatal(err)
		}
		if u.Limits.Apps != 3 || u.Limits.Projects != 50 {
			t.Errorf("the limits are %+v", u.Limits)
		}
		return u.Sums
	}
	first := count()
	if first.Projects != 1 || first.Apps != 2 || first.TreeBytes < 7000 || first.TreeBytes > 8000 {
		t.Errorf("counted %+v", first)
	}
	if diff := cmp.Diff(first, count()); diff != "" {
		t.Errorf("counted again (-first +second):\n%s", diff)
	}
	if known := len(c.sizes["acme"]); known != 3 {
		t.Errorf("the sizes of %d objects are known, want 3", known)
	}
	shrunk := objects[3].DeepCopyObject().(*v1alpha1.App)
	shrunk.Spec, shrunk.Generation = v1alpha1.AppSpec{}, 2
	c.Reader = fake.NewClientBuilder().WithScheme(scheme).WithObjects(append(objects[:3:3], shrunk)...).Build()
	if got := count(); got != (budget.Sums{Projects: 1, Apps: 1, TreeBytes: 2048}) {
		t.Errorf("one app shrank and one went, counted %+v", got)
	}
	c.Reader = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects[0]).Build()
	if got := count(); got != (budget.Sums{}) || len(c.sizes) != 0 {
		t.Errorf("all went, counted %+v, with sizes of %v", got, c.sizes)
	}
}

// failing refuses to list.
type failing struct{ client.Reader }

func (failing) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return nil
}

func (failing) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errors.New("no cache")
}

func TestAFailedRequestIsAnErrorAndNotZero(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(&v1alpha1.Project{ObjectMeta: objectMeta("kubeop-acme", "shop", 1)}).Build()
	requests := steptest.EachRequest(t, func(f *steptest.Failing) error {
		_, err := (&Counter{Reader: f.Client(api)}).Of(t.Context(), "acme")
		return err
	})
	if requests != 3 {
		t.Errorf("%d requests, want those for the tenant, its projects and the apps of one", requests)
	}
}

func TestTheSpecOfAProjectOrAnAppIsItsSize(t *testing.T) {
	long := strings.Repeat("x", 5000)
	project := &v1alpha1.Project{Spec: v1alpha1.ProjectSpec{Quota: corev1.ResourceList{corev1.ResourceName(long): {}}}}
	app := &v1alpha1.App{Spec: v1alpha1.AppSpec{Raw: &v1alpha1.RawSource{Path: long}}}
	for _, o := range []client.Object{project, app} {
		if size, err := SizeOf(o); err != nil || size < 5000 {
			t.Errorf("%T: %d, %v", o, size, err)
		}
	}
}
