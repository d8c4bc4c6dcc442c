package app

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/go-logr/logr/funcr"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/app/project"
	"github.com/kubeop/kubeop/controllers/app/source"
	"github.com/kubeop/kubeop/controllers/app/wake"
	"github.com/kubeop/kubeop/delivery/fetch/folder"
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
		!strings.Contains(logged[0], `"kubeop-acme-shop"`) || !strings.Contains(logged[1], `"acme"`) {
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
		if got := names(wake.Delivering(t.Context(), c.object)); got != c.want {
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
		"frozen":            {func(s *v1alpha1.TenantSpec) { s.Frozen = true }, true},
		"stopped":           {func(s *v1alpha1.TenantSpec) { s.Stopped = true }, true},
		"a freeze":          {func(s *v1alpha1.TenantSpec) { s.Freeze = []v1alpha1.FreezeWindow{{Name: "night"}} }, true},
		"an owner":          {func(s *v1alpha1.TenantSpec) { s.Owners = []v1alpha1.Owner{{Name: "eve"}} }, false},
	} {
		is := &v1alpha1.Tenant{}
		c.change(&is.Spec)
		if got := project.TermsChanged.Update(event.UpdateEvent{ObjectOld: &v1alpha1.Tenant{}, ObjectNew: is}); got != c.want {
			t.Errorf("%s of a Tenant changed: %t, want %t", name, got, c.want)
		}
	}
	if project.TermsChanged.Create(event.CreateEvent{}) || project.TermsChanged.Delete(event.DeleteEvent{}) {
		t.Error("a new or deleted Tenant wakes Apps that do not exist")
	}
	ready := shopProject()
	conditions.MarkTrue(ready, v1alpha1.ReadyCondition, "Ready", "")
	for name, c := range map[string]struct {
		was, is *v1alpha1.Project
		want    bool
	}{"it becomes ready": {shopProject(), ready, true}, "it is no longer ready": {ready, shopProject(), true}, "it stays ready": {ready, ready, false}, "it stays as it was": {shopProject(), shopProject(), false}} {
		if got := project.ReadyChanged.Update(event.UpdateEvent{ObjectOld: c.was, ObjectNew: c.is}); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}

// TestChangesOutsideTheCacheWakeAnApp: changes of the objects that it uses and of its own Secrets and releases, new kinds, and requests.
func TestChangesOutsideTheCacheWakeAnApp(t *testing.T) {
	var changed func(namespace, kind, name string, labels map[string]string)
	served := 0
	b := newReconcileFixture(t, webApp(func(app *v1alpha1.App) {
		app.Spec.Type, app.Spec.Helm = v1alpha1.AppHelm, &v1alpha1.HelmSource{Path: "chart", ValuesFrom: []v1alpha1.ValuesReference{{Kind: "ConfigMap", Name: "colors"}}}
	}), nil)
	b.sources.Folder = func(context.Context, *v1alpha1.App) (*folder.Folder, error) { return nil, errors.New("away") }
	b.wakes.cluster.OnChange = func(f func(namespace, kind, name string, labels map[string]string)) { changed = f }
	b.wakes.cluster.OnServed = func(f func()) { served++; f() }
	queue := &delays{TypedRateLimitingInterface: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())}
	defer queue.ShutDown()
	if err := b.wakes.start(t.Context(), queue); err != nil || changed == nil || served != 1 {
		t.Fatalf("it listens for changes: %t, for new kinds: %d times, %v", changed != nil, served, err)
	}
	_ = b.sources.Fetch(t.Context(), b.s.Subject, &b.s.found) // From now on it is known what the App uses.
	of := func(app string) map[string]string { return map[string]string{v1alpha1.AppLabel: app} }
	for name, c := range map[string]struct {
		do   func()
		want []string
	}{
		"a ConfigMap that it uses":     {func() { changed(shop, "ConfigMap", "colors", nil) }, []string{"web"}},
		"another ConfigMap":            {func() { changed(shop, "ConfigMap", "other", nil) }, nil},
		"one of another namespace":     {func() { changed("kubeop-acme-blog", "ConfigMap", "colors", nil) }, nil},
		"an object with its label":     {func() { changed(shop, "Secret", "release", of("web")) }, []string{"web"}},
		"an object that two Apps need": {func() { changed(shop, "ConfigMap", "colors", of("api")) }, []string{"web", "api"}},
	} {
		queue.late = nil
		if c.do(); !slices.Equal(queue.late, c.want) {
			t.Errorf("%s wakes %v, want %v", name, queue.late, c.want)
		}
	}
	if b.Wake(client.ObjectKeyFromObject(b.app)); queue.Len() != 1 {
		t.Error("a request does not wake the App")
	}
}

// delays is a queue that notes what is added late.
type delays struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	late []string
}

// AddAfter notes the name of an App that is to be reconciled after the debounce.
func (d *delays) AddAfter(request reconcile.Request, after time.Duration) {
	if after == debounce {
		d.late = append(d.late, request.Name)
	}
}

// TestTheBuildsOfTenantsHaveTheirWeights.
func TestTheBuildsOfTenantsHaveTheirWeights(t *testing.T) {
	b := newFixture(t, webApp(), interceptor.Funcs{})
	r := New(Options{
		Engines: Engines{Applier: b.applier.engine}, Sources: &source.Fetcher{}, Steps: b.steps, Tenants: Tenants{Weight: func(string) int { return 3 }},
	})
	if r.renderer.builds.Weight == nil || r.renderer.builds.Weight("acme") != 3 {
		t.Error("the builds of all tenants have the same weight")
	}
}
