package declared

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/gitops/identity"
	"github.com/kubeop/kubeop/gitops/plan"
)

func project(tenant, name string) *v1alpha1.Project {
	return &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.HomeNamespace(tenant), Name: name, UID: types.UID(tenant + "/" + name)}}
}

func app(tenant, project, name string) *v1alpha1.App {
	return &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.ProjectNamespace(tenant, project), Name: name, UID: types.UID(name)}}
}

func pod(namespace, name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

// claim is one of ten gigabytes. phase is "" for one that holds no data.
func claim(namespace, name string, phase corev1.PersistentVolumeClaimPhase, policy string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(name), Annotations: map[string]string{v1alpha1.ClaimPolicyAnnotation: policy}},
		Status:     corev1.PersistentVolumeClaimStatus{Phase: phase, Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Gi")}},
	}
}

// cluster has the tenants acme, with the projects blog and shop, and zeta, with a project shop. asked are the namespaces in which pods were
// counted.
func cluster(t *testing.T, asked *[]string, more ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(v1alpha1.AddToScheme(scheme), clientgoscheme.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	deletes := project("acme", "blog")
	deletes.Spec.ClaimDeletionPolicy = v1alpha1.ClaimDelete
	objects := append([]client.Object{
		&v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "acme", UID: "acme"}}, deletes, project("acme", "shop"), project("zeta", "shop"),
		app("acme", "blog", "blog"), app("acme", "shop", "web"), app("acme", "shop", "db"), app("zeta", "shop", "web"),
		pod("kubeop-acme-blog", "a"), pod("kubeop-acme-shop", "a"), pod("kubeop-acme-shop", "b"), pod("kubeop-zeta-shop", "a"),
		claim("kubeop-acme-blog", "posts", corev1.ClaimBound, ""), claim("kubeop-acme-blog", "cache", corev1.ClaimPending, ""), claim("kubeop-acme-blog", "kept", corev1.ClaimLost, "Retain"),
		claim("kubeop-acme-shop", "orders", corev1.ClaimBound, ""), claim("kubeop-acme-shop", "scratch", corev1.ClaimBound, "Delete"), claim("kubeop-zeta-shop", "other", corev1.ClaimBound, ""),
	}, more...)
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if list.GetObjectKind().GroupVersionKind().Kind == "PodList" && asked != nil {
				of := &client.ListOptions{}
				*asked = append(*asked, of.ApplyOptions(options).Namespace)
			}
			return c.List(ctx, list, options...)
		},
	}).Build()
}

// losses are those of the lost objects, by the path of the object.
func losses(t *testing.T, c client.Client, lost map[identity.Ref]client.Object) (map[string]plan.Loss, map[string]int) {
	t.Helper()
	all, apps, err := Losses(t.Context(), c, c, lost)
	if err != nil {
		t.Fatal(err)
	}
	by := map[string]plan.Loss{}
	for _, l := range all {
		slices.SortFunc(l.Claims, func(a, b plan.Claim) int { return strings.Compare(a.Name, b.Name) })
		by[l.Ref.Path()] = l
	}
	return by, apps
}

func held(namespace, name string, goes bool) plan.Claim {
	return plan.Claim{Namespace: namespace, Name: name, UID: name, Size: "10Gi", Goes: goes}
}

// TestADeletionNamesTheDataThatItLoses: a confirmation names the data, so a claim that is not counted here would be deleted without one.
func TestADeletionNamesTheDataThatItLoses(t *testing.T) {
	acme, blog, shop := identity.Ref{Tenant: "acme"}, identity.Ref{Tenant: "acme", Project: "blog"}, identity.Ref{Tenant: "acme", Project: "shop"}
	web := identity.Ref{Tenant: "acme", Project: "shop", App: "web"}
	ofBlog := []plan.Claim{held("kubeop-acme-blog", "kept", false), held("kubeop-acme-blog", "posts", true)}
	ofShop := []plan.Claim{held("kubeop-acme-shop", "orders", false), held("kubeop-acme-shop", "scratch", true)}
	preview := project("acme", "shop")
	preview.Annotations = map[string]string{v1alpha1.PreviewOfAnnotation: "blog"}
	for name, tc := range map[string]struct {
		lost map[identity.Ref]client.Object
		want map[string]plan.Loss
	}{
		"an app": {map[identity.Ref]client.Object{web: app("acme", "shop", "web")}, map[string]plan.Loss{"acme/shop/web": {Ref: web, UID: "web"}}},
		"a project": {map[identity.Ref]client.Object{blog: project("acme", "blog")}, map[string]plan.Loss{
			"acme/blog": {Ref: blog, UID: "acme/blog", Namespaces: []string{"kubeop-acme-blog"}, Apps: 1, Pods: 1, Claims: ofBlog},
		}},
		"a preview": {map[identity.Ref]client.Object{shop: preview}, map[string]plan.Loss{
			"acme/shop": {Ref: shop, UID: "acme/shop", Namespaces: []string{"kubeop-acme-shop"}, Apps: 2, Pods: 2, Claims: ofShop, Preview: true},
		}},
		"a project and its app": {map[identity.Ref]client.Object{shop: project("acme", "shop"), web: app("acme", "shop", "web")}, map[string]plan.Loss{
			"acme/shop":     {Ref: shop, UID: "acme/shop", Namespaces: []string{"kubeop-acme-shop"}, Apps: 2, Pods: 2, Claims: ofShop},
			"acme/shop/web": {Ref: web, UID: "web"},
		}},
		"a tenant with what it has": {
			map[identity.Ref]client.Object{acme: &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "acme", UID: "acme"}}, blog: project("acme", "blog"), web: app("acme", "shop", "web")},
			map[string]plan.Loss{
				"acme": {
					Ref: acme, UID: "acme", Namespaces: []string{"kubeop-acme-blog", "kubeop-acme-shop"}, Apps: 3, Pods: 3,
					Claims: []plan.Claim{ofBlog[0], ofShop[0], ofBlog[1], ofShop[1]},
				},
				"acme/blog": {Ref: blog, UID: "acme/blog"}, "acme/shop/web": {Ref: web, UID: "web"},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, apps := losses(t, cluster(t, nil), tc.lost)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("losses (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(map[string]int{"acme": 3}, apps); diff != "" {
				t.Errorf("apps of the tenants (-want +got):\n%s", diff)
			}
		})
	}
}

// TestManyNamespacesAreReadAtOnce, and few one by one.
func TestManyNamespacesAreReadAtOnce(t *testing.T) {
	for _, n := range []int{fewNamespaces, fewNamespaces + 1} {
		var more []client.Object
		lost := map[identity.Ref]client.Object{}
		for i := range n {
			name := fmt.Sprintf("p%02d", i)
			more = append(more, project("many", name), claim(v1alpha1.ProjectNamespace("many", name), "data", corev1.ClaimBound, ""))
			lost[identity.Ref{Tenant: "many", Project: name}] = project("many", name)
		}
		var asked []string
		got, _ := losses(t, cluster(t, &asked, more...), lost)
		if want := map[bool]int{true: 1, false: n}[n > fewNamespaces]; len(asked) != want || n > fewNamespaces && asked[0] != "" {
			t.Errorf("%d namespaces are read by %d requests: %q", n, len(asked), asked)
		}
		for path, loss := range got {
			if len(loss.Claims) != 1 || loss.Claims[0].Namespace != loss.Namespaces[0] {
				t.Errorf("%d namespaces, %s: the claims are %+v", n, path, loss.Claims)
			}
		}
	}
}

// TestAnIncompleteCountIsAnError: nothing is deleted before all of it is known.
func TestAnIncompleteCountIsAnError(t *testing.T) {
	down := errors.New("down")
	lost := map[identity.Ref]client.Object{{Tenant: "acme"}: &v1alpha1.Tenant{}}
	for _, kind := range []string{"*v1alpha1.ProjectList", "*v1alpha1.AppList", "*v1.PersistentVolumeClaimList", "*v1.PartialObjectMetadataList", "*v1alpha1.Project", "*v1alpha1.Tenant"} {
		c := interceptor.NewClient(cluster(t, nil).(client.WithWatch), interceptor.Funcs{
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
				if fmt.Sprintf("%T", list) == kind {
					return down
				}
				return c.List(ctx, list, options...)
			},
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
				if fmt.Sprintf("%T", o) == kind {
					return down
				}
				return c.Get(ctx, key, o, options...)
			},
		})
		if all, apps, err := Losses(t.Context(), c, c, lost); !errors.Is(err, down) || all != nil || apps != nil {
			t.Errorf("%s: got %+v, %v, %v", kind, all, apps, err)
		}
	}
}
