package app

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/go-logr/logr/funcr"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/own"
)

// TestAProjectWithoutANamespaceWakesNoApps: each project of a first sync sends such an event, and a list without
// a namespace would list the apps of all tenants.
func TestAProjectWithoutANamespaceWakesNoApps(t *testing.T) {
	lists := 0
	web := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-alpha-shop", Name: "web"}}
	w := &wakes{cluster: Cluster{Client: fake.NewClientBuilder().WithScheme(schemeOf(t)).WithObjects(web).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, of ...client.ListOption) error {
			lists++
			return c.List(ctx, list, of...)
		},
	}).Build()}}
	project := &v1alpha1.Project{}
	if got := w.ofProject(t.Context(), project); len(got) != 0 || lists != 0 {
		t.Errorf("woke %v with %d lists", got, lists)
	}
	project.Status.Namespace = "kubeop-alpha-shop"
	if got := w.ofProject(t.Context(), project); !slices.Equal(got, []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(web)}}) {
		t.Errorf("woke %v", got)
	}
}

// TestAListThatFailsIsLogged: the Apps that it would have woken are reconciled only at their interval.
func TestAListThatFailsIsLogged(t *testing.T) {
	var logged []string
	ctx := ctrl.LoggerInto(t.Context(), funcr.New(func(_, args string) { logged = append(logged, args) }, funcr.Options{}))
	w := &wakes{cluster: Cluster{Client: fake.NewClientBuilder().WithScheme(schemeOf(t)).WithInterceptorFuncs(interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return errors.New("the cache is away")
		},
	}).Build()}}
	project := shopProject()
	project.Status.Namespace = shop
	if got := append(w.ofProject(ctx, project), w.ofTenant(ctx, &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "acme"}})...); got != nil {
		t.Errorf("woke %v", got)
	}
	if len(logged) != 2 || !strings.Contains(logged[0], "the cache is away") || !strings.Contains(logged[1], "the cache is away") ||
		!strings.Contains(logged[0], `"shop"`) || !strings.Contains(logged[1], `"acme"`) {
		t.Errorf("logged %q", logged)
	}
}

// TestAnObjectWakesTheAppThatDeliversIt, and those that depend on it.
func TestAnObjectWakesTheAppThatDeliversIt(t *testing.T) {
	names := func(requests []reconcile.Request) string {
		var all []string
		for _, r := range requests {
			all = append(all, r.String())
		}
		return strings.Join(all, " ")
	}
	inNamespace, ofCluster := labelled(configMap("a"), "web"), labelled(configMap("b"), "web")
	ofCluster.Namespace = ""
	for name, c := range map[string]struct {
		object client.Object
		want   string
	}{
		"in its namespace":  {inNamespace, shop + "/web"},
		"a cluster-scoped":  {ofCluster, shop + "/web"},
		"an object of none": {configMap("a"), ""},
	} {
		if got := names(delivering(t.Context(), c.object)); got != c.want {
			t.Errorf("%s wakes %q, want %q", name, got, c.want)
		}
	}
	api := webApp(func(a *v1alpha1.App) {
		a.Name, a.UID = "api", "api"
		a.Spec.DependsOn = []v1alpha1.Dependency{{Name: "web"}, {APIVersion: "v1", Kind: "ConfigMap", Name: "a"}}
	})
	b := newFixture(t, api, interceptor.Funcs{}, webApp(), shopProject())
	b.s.Owner = own.Owner{Tenant: "acme", Project: "shop", App: "api", Namespace: shop}
	b.s.Client = b.api
	if err := b.dependencies.Await(t.Context(), b.s.Subject); err == nil {
		t.Fatal("the App waits for nothing")
	}
	w := b.wakes
	for name, c := range map[string]struct {
		got  []reconcile.Request
		want string
	}{
		"its own and a dependency": {w.concerned(schema.GroupKind{Kind: "ConfigMap"})(t.Context(), inNamespace), shop + "/web " + shop + "/api"},
		"an object of that name":   {w.concerned(schema.GroupKind{Kind: "Service"})(t.Context(), inNamespace), shop + "/web"},
		"an App":                   {w.dependents(v1alpha1.AppKind)(t.Context(), webApp()), shop + "/api"},
		"a project":                {w.dependents(v1alpha1.ProjectKind)(t.Context(), webApp()), ""},
		"a project's Apps":         {w.ofProject(t.Context(), shopProject()), shop + "/api " + shop + "/web"},
		"a tenant's Apps":          {w.ofTenant(t.Context(), &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "acme"}}), shop + "/api " + shop + "/web"},
		"another tenant's Apps":    {w.ofTenant(t.Context(), &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "beta"}}), ""},
	} {
		if got := names(c.got); got != c.want {
			t.Errorf("%s: woken are %q, want %q", name, got, c.want)
		}
	}
}

// TestOnlyChangesThatConcernAppsWakeThem.
func TestOnlyChangesThatConcernAppsWakeThem(t *testing.T) {
	two, three := int32(2), resource.MustParse("3Mi")
	for name, c := range map[string]struct {
		change func(*v1alpha1.TenantSpec)
		want   bool
	}{
		"nothing":           {func(*v1alpha1.TenantSpec) {}, false},
		"the number":        {func(s *v1alpha1.TenantSpec) { s.Limits.Apps = &two }, false},
		"the rendered size": {func(s *v1alpha1.TenantSpec) { s.Limits.RenderedBytes = &three }, true},
		"Pod Security":      {func(s *v1alpha1.TenantSpec) { s.PodSecurity = "baseline" }, true},
		"a freeze":          {func(s *v1alpha1.TenantSpec) { s.Freeze = []v1alpha1.FreezeWindow{{Name: "night"}} }, true},
		"an owner":          {func(s *v1alpha1.TenantSpec) { s.Taints = []string{"gpu"} }, false},
	} {
		is := &v1alpha1.Tenant{}
		c.change(&is.Spec)
		if got := termsChanged.Update(event.UpdateEvent{ObjectOld: &v1alpha1.Tenant{}, ObjectNew: is}); got != c.want {
			t.Errorf("%s of a Tenant changed: %t, want %t", name, got, c.want)
		}
	}
	if termsChanged.Create(event.CreateEvent{}) || termsChanged.Delete(event.DeleteEvent{}) {
		t.Error("a new or deleted Tenant wakes Apps that do not exist")
	}
	ready := shopProject()
	conditions.MarkTrue(ready, v1alpha1.ReadyCondition, "Ready", "")
	for name, c := range map[string]struct {
		was, is *v1alpha1.Project
		want    bool
	}{"it becomes ready": {shopProject(), ready, true}, "it is no longer ready": {ready, shopProject(), true}, "it stays ready": {ready, ready, false}, "it stays as it was": {shopProject(), shopProject(), false}} {
		if got := readyChanged.Update(event.UpdateEvent{ObjectOld: c.was, ObjectNew: c.is}); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}
