package namespace

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/pvc"
)

func closedQuota(t *testing.T, c client.Client) *corev1.ResourceQuota {
	t.Helper()
	quota := &corev1.ResourceQuota{}
	err := c.Get(t.Context(), client.ObjectKey{Namespace: shopNamespace, Name: ClosedQuota}, quota)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return quota
}

func TestACloseAllowsNoPodsAndClaimsAndIsReportedOnce(t *testing.T) {
	c := server(t, interceptor.Funcs{})
	for i, want := range []bool{true, false} {
		if closed, err := Close(t.Context(), c, shopNamespace, shopLabels); closed != want || err != nil {
			t.Fatalf("call %d: closed %t, %v", i+1, closed, err)
		}
	}
	quota := closedQuota(t, c)
	if quota == nil {
		t.Fatal("there is no quota")
	}
	if diff := cmp.Diff(shopLabels, quota.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	none := resource.MustParse("0")
	want := corev1.ResourceList{corev1.ResourcePods: none, corev1.ResourcePersistentVolumeClaims: none}
	if diff := cmp.Diff(want, quota.Spec.Hard); diff != "" {
		t.Errorf("quota (-want +got):\n%s", diff)
	}
	for range 2 {
		if err := Open(t.Context(), c, shopNamespace); err != nil {
			t.Fatal(err)
		}
		if closedQuota(t, c) != nil {
			t.Error("it is still closed")
		}
	}
}

func TestACloseThatFailsDoesNotCountAsClosed(t *testing.T) {
	for name, funcs := range map[string]interceptor.Funcs{
		"reading": {Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errAway
		}},
		"writing": {Apply: func(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error {
			return errAway
		}},
	} {
		if closed, err := Close(t.Context(), server(t, funcs), shopNamespace, shopLabels); closed || !errors.Is(err, errAway) {
			t.Errorf("%s: closed %t, %v", name, closed, err)
		}
	}
	refuses := server(t, interceptor.Funcs{Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error { return errAway }})
	if err := Open(t.Context(), refuses, shopNamespace); !errors.Is(err, errAway) {
		t.Errorf("opening: %v", err)
	}
}

func binding(namespace, name string, finalizers ...string) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Finalizers: finalizers}}
}

// bindings returns the names of the RoleBindings that are there, with their namespaces.
func bindings(t *testing.T, c client.Client) []string {
	t.Helper()
	list := &rbacv1.RoleBindingList{}
	if err := c.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, b := range list.Items {
		names = append(names, b.Namespace+"/"+b.Name)
	}
	slices.Sort(names)
	return names
}

func TestBarLeavesTheNamedBindingsAndThoseOfOtherNamespaces(t *testing.T) {
	c := server(t, interceptor.Funcs{}, binding(shopNamespace, "kubeop-view"), binding(shopNamespace, "kubeop-deployer"),
		binding(shopNamespace, "kubeop-admin"), binding(shopNamespace, "made-by-hand", "example.com/keep"), binding("kubeop-acme-blog", "kubeop-admin"))
	if err := Bar(t.Context(), c, shopNamespace, "kubeop-deployer", "kubeop-view"); err != nil {
		t.Fatal(err)
	}
	want := []string{"kubeop-acme-blog/kubeop-admin", "kubeop-acme-shop/kubeop-deployer", "kubeop-acme-shop/kubeop-view"}
	if diff := cmp.Diff(want, bindings(t, c)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestLockTakesTheDeployerAndAllBindings(t *testing.T) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: shopNamespace, Name: v1alpha1.Deployer}}
	other := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: shopNamespace, Name: "default"}}
	c := server(t, interceptor.Funcs{}, account, other, binding(shopNamespace, "kubeop-view"), binding(shopNamespace, "kubeop-deployer"))
	for range 2 { // The second time nothing is left to take.
		if err := Lock(t.Context(), c, shopNamespace); err != nil {
			t.Fatal(err)
		}
	}
	if left := bindings(t, c); len(left) != 0 {
		t.Errorf("left are %v", left)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(account), account); !apierrors.IsNotFound(err) {
		t.Errorf("the deployer is still there: %v", err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(other), other); err != nil {
		t.Errorf("an account that is not kubeop's went: %v", err)
	}
}

func TestAnAccessThatCannotBeTakenIsAnError(t *testing.T) {
	deleting := func(kind string) interceptor.Funcs {
		return interceptor.Funcs{Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			if _, isBinding := o.(*rbacv1.RoleBinding); isBinding == (kind == "RoleBinding") {
				return errAway
			}
			return c.Delete(ctx, o, opts...)
		}}
	}
	for name, c := range map[string]struct {
		funcs interceptor.Funcs
		want  string
	}{
		"the deployer": {deleting("ServiceAccount"), "locking namespace kubeop-acme-shop: deleting kubeop-deployer: "},
		"a binding":    {deleting("RoleBinding"), "locking namespace kubeop-acme-shop: deleting RoleBinding kubeop-view: "},
		"a finalizer": {interceptor.Funcs{Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return errAway
		}},
			"locking namespace kubeop-acme-shop: taking the finalizers off RoleBinding kubeop-view: "},
		"the list": {interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return errAway }},
			"listing who may enter namespace kubeop-acme-shop: "},
	} {
		t.Run(name, func(t *testing.T) {
			err := Lock(t.Context(), server(t, c.funcs, binding(shopNamespace, "kubeop-view", "example.com/keep")), shopNamespace)
			if !errors.Is(err, errAway) || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

func dataClaim(name string) pvc.Claim {
	return pvc.Claim{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.PersistentVolumeClaimStatus{
		Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
	}}
}

func TestARetainedNamespaceHasAReasonUntilItIsUnmarked(t *testing.T) {
	c := server(t, interceptor.Funcs{}, shop())
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.FixedZone("CET", 3600))
	retention := Retention{Of: "Project kubeop-acme/shop", Claims: []pvc.Claim{dataClaim("data")}, At: at}
	read := func() *corev1.Namespace {
		ns := &corev1.Namespace{}
		if err := c.Get(t.Context(), client.ObjectKey{Name: shopNamespace}, ns); err != nil {
			t.Fatal(err)
		}
		return ns
	}
	for i, want := range []bool{true, false} {
		if news, err := Retain(t.Context(), c, read(), retention); news != want || err != nil {
			t.Fatalf("call %d: news %t, %v", i+1, news, err)
		}
	}
	ns := read()
	const because = "because claims in it hold data: data (1Gi). Such claims are deleted only if their policy is Delete and the deletion was confirmed. " +
		"To get the namespace back, declare Project kubeop-acme/shop again. To delete it with the data, an administrator of the cluster may run: kubectl delete pvc -n kubeop-acme-shop data; " +
		"kubectl annotate namespace kubeop-acme-shop paas.kubeop.io/allow-deletion=kubeop-acme-shop; kubectl delete namespace kubeop-acme-shop"
	want := map[string]string{
		v1alpha1.TenantUIDAnnotation: "uid-1", v1alpha1.TenantIdentityAnnotation: "sha256:acme",
		v1alpha1.RetainedAtAnnotation: "2026-03-01T11:00:00Z", v1alpha1.RetainedClaimsAnnotation: "data (1Gi)",
		v1alpha1.RetainedBecauseAnnotation: "Project kubeop-acme/shop was deleted, but this namespace is kept, " + because,
	}
	if diff := cmp.Diff(want, ns.Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	if ns.Labels[v1alpha1.RetainedLabel] != "true" || ns.Labels[v1alpha1.TenantLabel] != "acme" {
		t.Errorf("labels are %v", ns.Labels)
	}
	if err := Unmark(t.Context(), c, ns); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(shop().Annotations, read().Annotations); diff != "" {
		t.Errorf("after the end (-want +got):\n%s", diff)
	}
	if _, still := read().Labels[v1alpha1.RetainedLabel]; still {
		t.Error("the label is still there")
	}
}

func TestAMarkNamesTheUIDOfTheNamespace(t *testing.T) {
	var patches []string
	c := server(t, interceptor.Funcs{Patch: func(_ context.Context, _ client.WithWatch, o client.Object, p client.Patch, _ ...client.PatchOption) error {
		data, err := p.Data(o)
		patches = append(patches, string(data))
		return errors.Join(err, errAway)
	}}, shop())
	_, err := Retain(t.Context(), c, shop(), Retention{})
	if !errors.Is(err, errAway) || !strings.HasPrefix(err.Error(), "marking namespace kubeop-acme-shop: ") {
		t.Errorf("got %v", err)
	}
	if len(patches) != 1 || !strings.Contains(patches[0], `"uid":"ns-1"`) {
		t.Errorf("patches %v name no UID: another namespace of the name could be marked", patches)
	}
}
