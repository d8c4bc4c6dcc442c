package repository

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/declared"
	"github.com/kubeop/kubeop/controllers/declaredby"
	"github.com/kubeop/kubeop/controllers/repository/queue"
	"github.com/kubeop/kubeop/controllers/repository/upstream"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/controllers/usage"
	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/delivery/fetch/pool"
	"github.com/kubeop/kubeop/delivery/quota"
	"github.com/kubeop/kubeop/gitops/identity"
	"github.com/kubeop/kubeop/gitops/plan"
	"github.com/kubeop/kubeop/gitops/tree"
	"github.com/kubeop/kubeop/internal/testenv/steptest"
	"github.com/kubeop/kubeop/internal/testenv/watchtest"
)

var errAway = errors.New("the API server is away")

// memory is a commit's tree in memory.
type memory struct {
	fstest.MapFS
}

func (m memory) Digest(path string) (string, error) {
	sum := sha256.New()
	err := fs.WalkDir(m.MapFS, path, func(name string, e fs.DirEntry, err error) error {
		fmt.Fprint(sum, strings.TrimPrefix(name, path), e)
		if f := m.MapFS[name]; f != nil {
			sum.Write(f.Data)
		}
		return err
	})
	return hex.EncodeToString(sum.Sum(nil)), err
}

func (m memory) Sub(path string) (tree.Files, error) {
	below := fstest.MapFS{}
	for name, file := range m.MapFS {
		if rest, ok := strings.CutPrefix(name, path+"/"); ok {
			below[rest] = file
		}
	}
	return memory{MapFS: below}, nil
}

var reader = sync.OnceValues(tree.NewReader)

// declaring returns the tree of acme's own repository with apps as "project/app".
func declaring(t *testing.T, apps ...string) *tree.Tree {
	t.Helper()
	r, err := reader()
	if err != nil {
		t.Fatal(err)
	}
	files := fstest.MapFS{"kubeop.yaml": &fstest.MapFile{Data: []byte("layout: v1\n")}}
	file := func(path, kind, name, spec string) {
		files[path] = &fstest.MapFile{Data: fmt.Appendf(nil, "apiVersion: %s\nkind: %s\nmetadata: {name: %s}\nspec: %s\n", v1alpha1.GroupVersion, kind, name, spec)}
	}
	for _, path := range apps {
		project, app, _ := strings.Cut(path, "/")
		file("projects/"+project+"/project.yaml", "Project", project, "{}")
		if app != "" {
			file("projects/"+project+"/apps/"+app+"/app.yaml", "App", app, "{type: Image, image: {reference: nginx}}")
		}
	}
	read := r.Read(memory{MapFS: files}, tree.Scope{Repository: "acme", Tenant: "acme"}, nil)
	read.All(func(p tree.Problem) bool { t.Error(p); return true })
	return read
}

func ref(path string) identity.Ref {
	parts := append(strings.Split(path, "/"), "", "")
	return identity.Ref{Tenant: parts[0], Project: parts[1], App: parts[2]}
}

// cluster is a Reconciler over a fake API server that has the indexes of the cache.
type cluster struct {
	*Reconciler
	t       *testing.T
	api     client.WithWatch
	clock   *clocktesting.FakeClock
	fails   string
	lists   int
	mu      sync.Mutex
	patches []string
	refuses map[string]error
	// slow is how long the next write takes.
	slow time.Duration
}

func newCluster(t *testing.T, objects ...client.Object) *cluster {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	c := &cluster{t: t, clock: clocktesting.NewFakeClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))}
	build := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithReturnManagedFields().
		WithRESTMapper(watchtest.Mapper(scheme, "Namespace Tenant Repository Policy")).WithTypeConverters(managedfields.NewDeducedTypeConverter())
	for _, o := range []client.Object{&v1alpha1.Policy{}, &v1alpha1.Registry{}, &v1alpha1.PriceList{}, &v1alpha1.Cluster{}, &v1alpha1.Tenant{}, &v1alpha1.Project{}, &v1alpha1.App{}} {
		build.WithIndex(o, declaredby.Index, declaredby.Repository)
	}
	build.WithIndex(&v1alpha1.Repository{}, bySecret, func(o client.Object) []string { return upstream.Secrets(o.(*v1alpha1.Repository)) })
	c.api = build.WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, api client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if _, few := list.(*v1alpha1.ClusterList); !few { // Each pass lists the clusters, from the cache.
				c.lists++
			}
			if c.fails != "" && strings.HasSuffix(fmt.Sprintf("%T", list), c.fails) {
				return errAway
			}
			return api.List(ctx, list, opts...)
		},
		Get: func(ctx context.Context, api client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if c.fails != "" && strings.HasSuffix(fmt.Sprintf("%T", o), c.fails) {
				return errAway
			}
			return api.Get(ctx, key, o, opts...)
		},
		Patch: func(ctx context.Context, api client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			c.mu.Lock() // Several objects are applied at once.
			c.patches = append(c.patches, o.GetName())
			c.clock.Step(c.slow)
			c.slow = 0
			c.mu.Unlock()
			if err := c.refuses[o.GetName()]; err != nil {
				return err
			}
			return api.Patch(ctx, o, p, opts...)
		},
	}).Build()
	c.Reconciler = &Reconciler{
		Client: c.api, Direct: c.api, Usage: &usage.Counter{Reader: c.api, Limits: budget.Default(), Budgets: &usage.Budgets{
			Reader: c.api, Kinds: func(context.Context) ([]schema.GroupResource, error) { return quota.Usual(), nil },
		}}, Namespace: "kubeop-system", Secrets: c.api,
		Steps:   &step.Runner{Client: c.api, Events: events.NewFakeRecorder(10), Clock: c.clock},
		Remotes: NewRemotes(pool.New(pool.Options{Reach: pool.ReachOf}, c.clock), c.clock),
	}
	return c
}

func (c *cluster) create(o client.Object) {
	c.t.Helper()
	if err := c.api.Create(c.t.Context(), o); err != nil {
		c.t.Fatal(err)
	}
}

// scope is that of acme's repository, whose last commit declared what is there and whose newest one declares the tree.
func (c *cluster) scope(now *tree.Tree, gone ...string) *scope {
	s := newScope(&v1alpha1.Repository{ObjectMeta: metav1.ObjectMeta{Name: "acme"}, Spec: v1alpha1.RepositorySpec{URL: "https://git.example.com/acme", Tenant: "acme"}})
	s.repository.Status.AppliedSource = upstream.Place(s.repository)
	s.commit.Revision = "main@sha1:2"
	s.progress, s.found = newProgress(), now
	s.progress.tree = now
	for _, path := range gone {
		s.progress.Gone.Insert(ref(path))
	}
	return s
}

// fromAcme has an object come from acme's repository, as kubeop applied it.
func fromAcme[T client.Object](o T, change ...func(T)) T {
	o.SetLabels(map[string]string{v1alpha1.RepositoryLabel: "acme"})
	o.SetManagedFields([]metav1.ManagedFieldsEntry{{
		Manager: v1alpha1.FieldManager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: v1alpha1.GroupVersion.String(),
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{}}`),
	}})
	o.SetUID(types.UID("uid-" + o.GetName()))
	for _, c := range change {
		c(o)
	}
	return o
}

func project(namespace, name string) *v1alpha1.Project {
	return &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

func app(namespace, name string) *v1alpha1.App {
	return &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

func TestOnlyObjectsOfTheRepositoryAreLostWhenTheyLeaveTheTree(t *testing.T) {
	web := func(change ...func(*v1alpha1.App)) *v1alpha1.App {
		return fromAcme(app("kubeop-acme-shop", "web"), change...)
	}
	leaving := func(a *v1alpha1.App) {
		a.DeletionTimestamp, a.Finalizers = &metav1.Time{Time: time.Unix(1, 0)}, []string{v1alpha1.Finalizer}
	}
	for name, c := range map[string]struct {
		there   client.Object
		gone    string
		tree    []string
		lost    bool
		leaving []string
		stays   bool // in what may be gone
	}{
		"it left":                   {there: web(), gone: "acme/shop/web", tree: []string{"shop"}, lost: true, stays: true},
		"it is not there":           {gone: "acme/shop/web", tree: []string{"shop"}},
		"it came back":              {there: web(), gone: "acme/shop/web", tree: []string{"shop/web"}},
		"it is being deleted":       {there: web(leaving), gone: "acme/shop/web", tree: []string{"shop"}, leaving: []string{"App kubeop-acme-shop/web"}, stays: true},
		"another repository has it": {there: web(func(a *v1alpha1.App) { a.Labels[v1alpha1.RepositoryLabel] = "platform" }), gone: "acme/shop/web", tree: []string{"shop"}},
		"a person made it":          {there: web(func(a *v1alpha1.App) { a.ManagedFields = nil }), gone: "acme/shop/web", tree: []string{"shop"}},
		"restored from a backup": {there: web(func(a *v1alpha1.App) {
			a.ManagedFields, a.Annotations = nil, map[string]string{v1alpha1.FolderAnnotation: "projects/shop/apps/web"}
		}), gone: "acme/shop/web", tree: []string{"shop"}, lost: true, stays: true},
		"a copy under another name": {there: web(func(a *v1alpha1.App) {
			a.ManagedFields, a.Annotations = nil, map[string]string{v1alpha1.FolderAnnotation: "projects/shop/apps/api"}
		}), gone: "acme/shop/web", tree: []string{"shop"}},
		"of another tenant":                {there: fromAcme(app("kubeop-rival-shop", "web")), gone: "rival/shop/web", tree: []string{"shop"}},
		"the tenant itself":                {there: fromAcme(&v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "acme"}}), gone: "acme", tree: []string{"shop"}},
		"a project with all that is in it": {there: fromAcme(project("kubeop-acme", "shop")), gone: "acme/shop", tree: []string{"blog"}, lost: true, stays: true},
	} {
		t.Run(name, func(t *testing.T) {
			var objects []client.Object
			if c.there != nil {
				objects = append(objects, c.there)
			}
			k := newCluster(t, objects...)
			s := k.scope(declaring(t, c.tree...), c.gone)
			lost, leaving, err := k.lost(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			if _, got := lost[ref(c.gone)]; got != c.lost || len(lost) > 1 {
				t.Errorf("lost are %v", lost)
			}
			if diff := cmp.Diff(c.leaving, leaving); diff != "" {
				t.Errorf("leaving (-want +got):\n%s", diff)
			}
			if stays := s.progress.Gone.Has(ref(c.gone)); stays != c.stays {
				t.Errorf("it is looked at again: %t, want %t", stays, c.stays)
			}
		})
	}
	k := newCluster(t)
	k.fails = ".App"
	if _, _, err := k.lost(t.Context(), k.scope(declaring(t, "shop"), "acme/shop/web")); !errors.Is(err, errAway) {
		t.Errorf("an object that cannot be read: %v", err)
	}
}

func TestATreeWithoutAnyExistingObjectIsForeign(t *testing.T) {
	for name, c := range map[string]struct {
		there   []string
		moved   bool
		foreign bool
	}{
		"nothing is there":                     {},
		"one is declared":                      {there: []string{"acme/shop/web", "acme/x/a", "acme/x"}},
		"one project of five apps is replaced": {there: []string{"acme/x", "acme/x/1", "acme/x/2", "acme/x/3", "acme/x/4", "acme/x/5"}},
		"one project of six apps is replaced":  {there: []string{"acme/x", "acme/x/1", "acme/x/2", "acme/x/3", "acme/x/4", "acme/x/5", "acme/x/6"}, foreign: true},
		"two projects are replaced":            {there: []string{"acme/x", "acme/y"}, foreign: true},
		"a small one, from another place":      {there: []string{"acme/x"}, moved: true, foreign: true},
		"nothing is there, from another place": {moved: true},
		"one is declared, from another place":  {there: []string{"acme/shop", "acme/x"}, moved: true},
	} {
		t.Run(name, func(t *testing.T) {
			k := newCluster(t)
			s := k.scope(declaring(t, "shop/web"))
			if c.moved {
				s.repository.Spec.Path = "elsewhere"
			}
			there := map[identity.Ref]string{}
			for _, path := range c.there {
				there[ref(path)] = ""
			}
			if got := s.foreign(there); got != c.foreign {
				t.Errorf("foreign: %t, want %t", got, c.foreign)
			}
		})
	}
}

func TestDeclaredByListsTheObjectsOfTheRepository(t *testing.T) {
	digest := func(o client.Object) {
		o.SetAnnotations(map[string]string{v1alpha1.TreeAnnotation: "d-" + o.GetName()})
	}
	leaving := fromAcme(project("kubeop-acme", "old"))
	leaving.DeletionTimestamp, leaving.Finalizers = &metav1.Time{Time: time.Unix(1, 0)}, []string{v1alpha1.Finalizer}
	others := fromAcme(app("kubeop-acme-shop", "theirs"))
	others.Labels[v1alpha1.RepositoryLabel] = "platform"
	byHand := fromAcme(app("kubeop-acme-shop", "by-hand"))
	byHand.ManagedFields = nil
	web, shop, tenant := fromAcme(app("kubeop-acme-shop", "web")), fromAcme(project("kubeop-acme", "shop")), fromAcme(&v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "acme"}})
	for _, o := range []client.Object{web, shop, tenant} {
		digest(o)
	}
	k := newCluster(t, leaving, others, byHand, web, shop, tenant, fromAcme(app("kubeop-acme", "nowhere")))
	got, err := k.declaredBy(t.Context(), "acme")
	want := map[identity.Ref]string{ref("acme"): "d-acme", ref("acme/shop"): "d-shop", ref("acme/shop/web"): "d-web"}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for _, kind := range []string{".PolicyList", ".TenantList", ".ProjectList", ".AppList"} {
		k.fails = kind
		if got, err := k.declaredBy(t.Context(), "acme"); !errors.Is(err, errAway) || got != nil {
			t.Errorf("%s cannot be listed: %v, %v", kind, got, err)
		}
	}
}

func TestObjectsBelowALossAreCounted(t *testing.T) {
	claim := func(namespace, name string, bound bool) *corev1.PersistentVolumeClaim {
		c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("uid-" + name)}}
		if bound {
			c.Spec.VolumeName = "pv-" + name
		}
		return c
	}
	pod := func(namespace, name string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	}
	const shop, blog = "kubeop-acme-shop", "kubeop-acme-blog"
	for _, policy := range []v1alpha1.ClaimDeletionPolicy{v1alpha1.ClaimRetain, v1alpha1.ClaimDelete} {
		shopProject := fromAcme(project("kubeop-acme", "shop"))
		shopProject.Spec.ClaimDeletionPolicy = policy
		k := newCluster(t, shopProject, project("kubeop-acme", "blog"), app(shop, "web"), app(shop, "api"), app(blog, "web"),
			claim(shop, "data", true), claim(shop, "empty", false), claim(blog, "posts", true), pod(shop, "web-1"), pod(shop, "web-2"), pod(blog, "web-1"))
		goes := policy == v1alpha1.ClaimDelete
		data := plan.Claim{Namespace: shop, Name: "data", UID: "uid-data", Size: "0", Goes: goes}
		posts := plan.Claim{Namespace: blog, Name: "posts", UID: "uid-posts", Size: "0"}
		tenant := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "acme", UID: "uid-acme"}}
		for name, c := range map[string]struct {
			lost map[identity.Ref]client.Object
			want []plan.Loss
		}{
			"an app": {map[identity.Ref]client.Object{ref("acme/shop/web"): fromAcme(app(shop, "web"))}, []plan.Loss{{Ref: ref("acme/shop/web"), UID: "uid-web"}}},
			"a project": {map[identity.Ref]client.Object{ref("acme/shop"): shopProject}, []plan.Loss{
				{Ref: ref("acme/shop"), UID: "uid-shop", Namespaces: []string{shop}, Claims: []plan.Claim{data}, Apps: 2, Pods: 2},
			}},
			"a project with its app": {map[identity.Ref]client.Object{ref("acme/shop"): shopProject, ref("acme/shop/web"): fromAcme(app(shop, "web"))}, []plan.Loss{
				{Ref: ref("acme/shop"), UID: "uid-shop", Namespaces: []string{shop}, Claims: []plan.Claim{data}, Apps: 2, Pods: 2}, {Ref: ref("acme/shop/web"), UID: "uid-web"},
			}},
			"a tenant with its project": {map[identity.Ref]client.Object{ref("acme"): tenant, ref("acme/shop"): shopProject}, []plan.Loss{
				{Ref: ref("acme"), UID: "uid-acme", Namespaces: []string{blog, shop}, Claims: []plan.Claim{posts, data}, Apps: 3, Pods: 3}, {Ref: ref("acme/shop"), UID: "uid-shop"},
			}},
		} {
			t.Run(name+", claims "+string(policy), func(t *testing.T) {
				losses, apps, err := declared.Losses(t.Context(), k.Client, k.Direct, c.lost)
				if err != nil {
					t.Fatal(err)
				}
				slices.SortFunc(losses, func(a, b plan.Loss) int { return queue.InOrder(a.Ref, b.Ref) })
				if diff := cmp.Diff(c.want, losses); diff != "" {
					t.Errorf("losses (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(map[string]int{"acme": 3}, apps); diff != "" {
					t.Errorf("apps (-want +got):\n%s", diff)
				}
			})
		}
	}
}

func TestALossThatCannotBeCountedIsNoSmallOne(t *testing.T) {
	lost := map[identity.Ref]client.Object{ref("acme/shop"): fromAcme(project("kubeop-acme", "shop"))}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-acme-shop", Name: "data"}, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "pv"}}
	for _, kind := range []string{".PersistentVolumeClaimList", ".PartialObjectMetadataList", ".AppList", ".ProjectList", ".Project", ".Tenant"} {
		k := newCluster(t, project("kubeop-acme", "shop"), claim.DeepCopy())
		k.fails = kind
		if losses, _, err := declared.Losses(t.Context(), k.Client, k.Direct, lost); !errors.Is(err, errAway) || losses != nil {
			t.Errorf("%s cannot be listed: %v, %v", kind, losses, err)
		}
	}
}

func TestTheSameQuestionIsCountedOnceInAWhile(t *testing.T) {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-acme-shop", Name: "data"}, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "pv"}}
	shop := fromAcme(project("kubeop-acme", "shop"))
	k := newCluster(t, shop, claim)
	s := k.scope(declaring(t, "blog"))
	lost := map[identity.Ref]client.Object{ref("acme/shop"): shop}
	look := func(name string, counted bool) {
		t.Helper()
		k.lists, s.weighed, s.verdict = 0, false, plan.Verdict{}
		if names, err := k.weigh(t.Context(), s, lost, false); err != nil || len(names) != 0 {
			t.Fatalf("%s: deleted %v, %v", name, names, err)
		}
		if got := k.lists > 0; got != counted || !s.weighed || len(s.verdict.Held) != 1 {
			t.Errorf("%s: counted %t, want %t; held %v", name, got, counted, s.verdict.Held)
		}
	}
	look("the first time", true)
	look("again", false)
	k.clock.Step(recount)
	look("after a while", true)
	s.commit.Revision = "main@sha1:3"
	look("another commit", true)
	shop.UID = "uid-of-another"
	look("another object of the name", true)
	s.repository.Annotations = map[string]string{v1alpha1.ConfirmAnnotation: "wrong"}
	if err := k.api.Create(t.Context(), s.repository); err != nil {
		t.Fatal(err)
	}
	look("with a confirmation", true)
	live := &v1alpha1.Repository{}
	if err := k.api.Get(t.Context(), client.ObjectKey{Name: "acme"}, live); err != nil || len(live.Annotations) != 0 {
		t.Errorf("a confirmation is used once: %v, %v", live.Annotations, err)
	}
}

func TestTheConfirmedClaimsAreWrittenOnDeletedObjects(t *testing.T) {
	for name, c := range map[string]struct {
		claims []plan.Claim
		want   string
	}{
		"none":            {},
		"one that stays":  {claims: []plan.Claim{{UID: "1"}}},
		"two of three go": {claims: []plan.Claim{{UID: "1", Goes: true}, {UID: "2"}, {UID: "3", Goes: true}}, want: "2026-03-01T12:00:00Z 1,3"},
	} {
		t.Run(name, func(t *testing.T) {
			shop := fromAcme(project("kubeop-acme", "shop"))
			k := newCluster(t, shop)
			if err := k.markClaims(t.Context(), shop, plan.Loss{Ref: ref("acme/shop"), Claims: c.claims}); err != nil {
				t.Fatal(err)
			}
			live := project("kubeop-acme", "shop")
			if err := k.api.Get(t.Context(), client.ObjectKeyFromObject(live), live); err != nil {
				t.Fatal(err)
			}
			if got := live.Annotations[v1alpha1.ConfirmedClaimsAnnotation]; got != c.want || (len(k.patches) > 0) != (c.want != "") {
				t.Errorf("it says %q after %d patches", got, len(k.patches))
			}
		})
	}
	if err := newCluster(t).markClaims(t.Context(), fromAcme(project("kubeop-acme", "shop")), plan.Loss{Claims: []plan.Claim{{UID: "1", Goes: true}}}); err != nil {
		t.Errorf("one that is gone meanwhile: %v", err)
	}
}

func TestAppsAreWaitedForInTheNamespacesTheyAreIn(t *testing.T) {
	k := newCluster(t)
	s := k.scope(declaring(t, "shop/web"))
	s.progress.waiting = map[identity.Ref]time.Time{ref("acme/shop/web"): k.clock.Now(), ref("acme/shop/api"): k.clock.Now(), ref("acme/shop"): k.clock.Now()}
	s.progress.reported = k.clock.Now()
	if err := k.await(s); !step.Waits(err) || err.Error() != "under way" || !s.unfinished {
		t.Errorf("just after a report: %v", err)
	}
	k.clock.Step(reportEvery)
	err := k.await(s)
	if want := "syncing main@sha1:2: 1 of 1 app declared; waits for namespace kubeop-acme, kubeop-acme-shop"; !step.Waits(err) || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if !s.progress.reported.Equal(k.clock.Now()) {
		t.Errorf("reported at %s", s.progress.reported)
	}
	s.progress.reported = k.clock.Now().Add(time.Hour)
	if again := k.await(s); again.Error() != err.Error() {
		t.Errorf("after the clock was set back: %v", again)
	}
}

// TestACommitWaitsForDeletedObjectsBeforeNamespaces: as long as objects are being deleted, the status names them.
func TestACommitWaitsForDeletedObjectsBeforeNamespaces(t *testing.T) {
	const deleting, progress = "waits Deleting: waits for App kubeop-acme-shop/api to be gone, after 5s", "syncing main@sha1:2: 1 of 1 app declared; waits for namespace kubeop-acme-shop"
	for name, c := range map[string]struct {
		change       func(*cluster, *scope)
		want         string
		stillForeign bool
	}{
		"nothing to wait for": {func(*cluster, *scope) {}, "done", false},
		"a namespace":         {func(_ *cluster, s *scope) { s.progress.waiting[ref("acme/shop/web")] = time.Time{} }, "waits DependencyNotReady: " + progress + ", after 5s", false},
		"a deletion and a namespace": {func(c *cluster, s *scope) {
			api := fromAcme(app("kubeop-acme-shop", "api"), func(a *v1alpha1.App) { a.Finalizers = []string{"example.com/held"} })
			c.create(api)
			if err := c.api.Delete(c.t.Context(), api); err != nil {
				c.t.Fatal(err)
			}
			s.progress.Gone.Insert(ref("acme/shop/api"))
			s.progress.waiting[ref("acme/shop/web")] = time.Time{}
		}, deleting, false},
		"another repository's objects are gone": {func(_ *cluster, s *scope) {
			s.progress.foreign, s.repository.Status.AppliedSource = true, "elsewhere"
		}, "soon, after 1ms", false},
		"the same repository":               {func(_ *cluster, s *scope) { s.progress.foreign = true }, "done", true},
		"another place of the same objects": {func(_ *cluster, s *scope) { s.repository.Status.AppliedSource = "elsewhere" }, "done", false},
		"another repository's objects are held": {func(c *cluster, s *scope) {
			c.create(fromAcme(project("kubeop-acme", "blog")))
			s.progress.Gone.Insert(ref("acme/blog"))
			s.progress.foreign, s.repository.Status.AppliedSource = true, "elsewhere"
		}, "done", true},
	} {
		t.Run(name, func(t *testing.T) {
			k := newCluster(t)
			s := k.scope(declaring(t, "shop/web"))
			s.progress.waiting = map[identity.Ref]time.Time{}
			c.change(k, s)
			if got := steptest.Outcome(t, k.collect(t.Context(), s)); got != c.want || s.progress.foreign != c.stillForeign {
				t.Errorf("got %q, want %q; foreign: %t, want %t", got, c.want, s.progress.foreign, c.stillForeign)
			}
		})
	}
}
