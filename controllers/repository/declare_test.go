package repository

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/repository/upstream"
	"github.com/kubeop/kubeop/delivery/apply"
	"github.com/kubeop/kubeop/gitops/identity"
	"github.com/kubeop/kubeop/gitops/tree"
	"github.com/kubeop/kubeop/internal/testenv/steptest"
	"github.com/kubeop/kubeop/internal/testenv/watchtest"
)

// watching is a cluster with a watch of its namespaces, in which objects can be applied.
func watching(t *testing.T, objects ...client.Object) *cluster {
	t.Helper()
	k := newCluster(t, objects...)
	k.Watch = watchtest.New(t, k.api, corev1.SchemeGroupVersion.WithKind("Namespace"))
	k.Applier = &apply.Applier{Live: k.Watch.Live}
	return k
}

func namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1alpha1.TenantLabel: "acme"}}}
}

func acme() *v1alpha1.Tenant { return &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "acme"}} }

// pass declares a tree like the next pass of the same process does. It returns the scope and how the step ends.
func (k *cluster) pass(before *scope, now *tree.Tree, revision string) (*scope, string) {
	k.t.Helper()
	s := k.scope(now)
	if before == nil {
		tree.Changes(nil, now, func(r identity.Ref) { s.progress.look(r) })
	} else {
		s.progress = before.progress
		tree.Changes(s.progress.tree, now, func(r identity.Ref) { s.progress.look(r) })
		s.progress.tree = now
	}
	s.commit.Revision, s.commit.Author = revision, "Ann"
	k.patches = nil
	return s, steptest.Outcome(k.t, k.declare(k.t.Context(), s))
}

func (k *cluster) wantApplied(names ...string) {
	k.t.Helper()
	slices.Sort(k.patches)
	if diff := cmp.Diff(names, k.patches); diff != "" {
		k.t.Errorf("applied are (-want +got):\n%s", diff)
	}
}

func TestObjectsAreAppliedOnceTheirNamespacesExist(t *testing.T) {
	k := watching(t, acme(), namespace("kubeop-acme"))
	first := declaring(t, "shop/web", "shop/api")
	s, end := k.pass(nil, first, "main@sha1:1")
	if end != "done" || len(s.progress.waiting) != 2 {
		t.Errorf("%s; waiting are %v", end, s.progress.waiting)
	}
	k.wantApplied("shop")
	shop := project("kubeop-acme", "shop")
	if err := k.api.Get(t.Context(), client.ObjectKeyFromObject(shop), shop); err != nil || !slices.Equal(shop.Finalizers, []string{v1alpha1.Finalizer}) {
		t.Errorf("the project has the finalizers %v, %v", shop.Finalizers, err)
	}

	k = watching(t, acme(), shop, namespace("kubeop-acme"), namespace("kubeop-acme-shop"))
	s, end = k.pass(s, first, "main@sha1:1")
	if end != "done" || len(s.progress.waiting) != 0 || len(s.progress.pending.All()) != 0 {
		t.Errorf("%s; waiting are %v, pending %v", end, s.progress.waiting, paths(s.progress.pending.All()))
	}
	k.wantApplied("api", "web")

	// A commit writes only the apps that it changes.
	s.progress.look(ref("acme/shop"), ref("acme/shop/web"), ref("acme/shop/api"))
	s, end = k.pass(s, first, "main@sha1:2")
	if end != "done" || len(s.progress.pending.All()) != 0 {
		t.Errorf("%s; pending are %v", end, paths(s.progress.pending.All()))
	}
	k.wantApplied()
	web := app("kubeop-acme-shop", "web")
	if err := k.api.Get(t.Context(), client.ObjectKeyFromObject(web), web); err != nil || web.Annotations[v1alpha1.RevisionAnnotation] != "main@sha1:1" || web.Annotations[v1alpha1.AuthorAnnotation] != "Ann" {
		t.Errorf("the app has the annotations %v, %v", web.Annotations, err)
	}
	if s.progress.applied[ref("acme/shop/web")].size == 0 {
		t.Error("the applied app does not count until the cache has it")
	}
}

// TestWaitingObjectsHoldUpOthersForAShortTime: 48 objects without a namespace hold up the next projects, until they have waited for 15
// seconds.
func TestWaitingObjectsHoldUpOthersForAShortTime(t *testing.T) {
	for name, c := range map[string]struct {
		apps    int
		waited  time.Duration
		applied []string
	}{
		"fewer than 48 wait":      {ahead - 1, 0, []string{"web"}},
		"48 wait":                 {ahead, 0, nil},
		"48 wait almost too long": {ahead, stuck - 1, nil},
		"48 wait too long":        {ahead, stuck, []string{"web"}},
	} {
		t.Run(name, func(t *testing.T) {
			var apps []string
			for i := range c.apps {
				apps = append(apps, fmt.Sprintf("new/app-%02d", i))
			}
			k := watching(t, acme(), namespace("kubeop-acme"), namespace("kubeop-acme-shop"), project("kubeop-acme", "shop"))
			s := k.scope(declaring(t, append(apps, "shop/web")...))
			tree.Changes(nil, s.found, func(r identity.Ref) {
				if r.App != "" {
					s.progress.look(r)
				}
			})
			for _, app := range apps {
				s.progress.wait(ref("acme/"+app), k.clock.Now())
			}
			k.clock.Step(c.waited)
			if got := steptest.Outcome(t, k.declare(t.Context(), s)); got != "done" {
				t.Errorf("got %s", got)
			}
			k.wantApplied(c.applied...)
		})
	}
}

// TestObjectsOverALimitAreNotCheckedInEachPass: only after the limits or the usage of their tenant changed.
func TestObjectsOverALimitAreNotCheckedInEachPass(t *testing.T) {
	tenant, one := acme(), int32(1)
	tenant.Spec.Limits.Apps = &one
	k := watching(t, tenant, namespace("kubeop-acme"), namespace("kubeop-acme-shop"))
	s, end := k.pass(nil, declaring(t, "shop/web", "shop/api"), "main@sha1:1")
	if end != "done" || !s.progress.over.Has(ref("acme/shop/web")) {
		t.Fatalf("%s; over a limit are %v", end, s.progress.over)
	}
	k.wantApplied("api", "shop")
	next := k.scope(s.found)
	next.progress = s.progress
	if err := k.lookAgain(t.Context(), next); err != nil || len(next.progress.pending.All()) != 0 {
		t.Errorf("nothing changed, and checked are %v, %v", paths(next.progress.pending.All()), err)
	}
	k.fails = ".ProjectList"
	if _, end := k.pass(s, s.found, "main@sha1:1"); end != "failed Failed: listing the projects of acme: "+errAway.Error() {
		t.Errorf("the usage cannot be counted: %s", end)
	}
}

// TestABlockedObjectOverALimitStaysOverIt: it does not wait for its namespace besides.
func TestABlockedObjectOverALimitStaysOverIt(t *testing.T) {
	k := watching(t, acme(), namespace("kubeop-acme"))
	s := k.scope(declaring(t, "shop/web"))
	s.progress.look(ref("acme/shop/web"))
	s.progress.over.Add(ref("acme/shop"))
	if _, err := k.next(t.Context(), s, nil); err != nil {
		t.Fatal(err)
	}
	if web := ref("acme/shop/web"); !s.progress.over.Has(web) || s.progress.pending.Has(web) || len(s.progress.waiting) != 0 {
		t.Errorf("over a limit %v, pending %v, waiting %v", s.progress.over, paths(s.progress.pending.All()), s.progress.waiting)
	}
}

func TestAnObjectThatTheAPIServerRefusesHoldsUpNoOther(t *testing.T) {
	kind := v1alpha1.GroupVersion.WithKind(v1alpha1.AppKind).GroupKind()
	for name, c := range map[string]struct {
		err     error
		end     string
		refused bool
	}{
		"invalid":            {apierrors.NewInvalid(kind, "api", nil), "done", true},
		"a bad request":      {apierrors.NewBadRequest("no"), "done", true},
		"the server is away": {errAway, "failed SyncFailed: App/api: " + errAway.Error(), false},
	} {
		t.Run(name, func(t *testing.T) {
			k := watching(t, acme(), namespace("kubeop-acme"), namespace("kubeop-acme-shop"))
			k.refuses = map[string]error{"api": c.err}
			s, end := k.pass(nil, declaring(t, "shop/web", "shop/api"), "main@sha1:1")
			if end != c.end {
				t.Errorf("got %q, want %q", end, c.end)
			}
			k.wantApplied("api", "shop", "web")
			api := ref("acme/shop/api")
			if _, refused := s.progress.refused[api]; refused != c.refused || s.progress.pending.Has(api) == c.refused || s.progress.pending.Has(ref("acme/shop/web")) {
				t.Errorf("refused are %v, pending %v", s.progress.refused, paths(s.progress.pending.All()))
			}
		})
	}
}

// TestAPassReportsItsProgressAfterATurn: the rest follows in the next pass.
func TestAPassReportsItsProgressAfterATurn(t *testing.T) {
	for took, want := range map[time.Duration]string{
		turn:     "done",
		turn + 1: "waits Progressing: syncing main@sha1:1: 1 of 1 app declared, after 1ms",
	} {
		k := watching(t, acme(), namespace("kubeop-acme"), namespace("kubeop-acme-shop"))
		k.slow = took
		s, end := k.pass(nil, declaring(t, "shop/web"), "main@sha1:1")
		if end != want || s.unfinished != (want != "done") {
			t.Errorf("a pass of %s: %q, unfinished %t; want %q", took, end, s.unfinished, want)
		}
	}
}

func TestADependencyIsAppliedBeforeTheAppsThatNeedIt(t *testing.T) {
	k := watching(t)
	s := k.scope(declaring(t, "shop/web", "shop/db"))
	node, _ := s.found.Find(ref("acme/shop/web"))
	web := node.(*tree.App)
	web.DependsOn = []identity.Ref{ref("acme/shop/db"), ref("acme/shop/none")}
	project, _ := s.found.Find(ref("acme/shop"))
	if s.progress.before(web) || s.progress.before(project) {
		t.Error("an app waits for a dependency that is applied")
	}
	s.progress.look(ref("acme/shop/db"), ref("acme/shop/none"))
	if !s.progress.before(web) || s.progress.before(project) {
		t.Error("an app does not wait for a dependency that this commit changes")
	}
	s.progress.done(ref("acme/shop/db"))
	if s.progress.before(web) {
		t.Error("an app waits for a dependency that nothing declares")
	}

	s = k.scope(reading(t).Tree.Read(inMemory(acmeFiles(map[string]string{"web": nginx, "bad": invalid})), tree.Scope{Repository: "acme", Tenant: "acme"}, nil))
	node, _ = s.found.Find(ref("acme/shop/web"))
	web = node.(*tree.App)
	web.DependsOn = []identity.Ref{ref("acme/shop/bad")}
	if s.progress.look(ref("acme/shop/bad")); s.progress.before(web) {
		t.Error("an app waits for a dependency whose file is invalid")
	}
}

func TestComparingFailsIfTheLiveObjectCannotBeRead(t *testing.T) {
	k := watching(t, acme(), namespace("kubeop-acme"), namespace("kubeop-acme-shop"))
	k.fails = ".App"
	if _, end := k.pass(nil, declaring(t, "shop/web"), "main@sha1:1"); end != "failed Failed: reading App kubeop-acme-shop/web: "+errAway.Error() {
		t.Errorf("got %q", end)
	}
}

// TestAnObjectThatLeftOrIsInvalidIsNotApplied: the first may have to be deleted, the second keeps its last good state.
func TestAnObjectThatLeftOrIsInvalidIsNotApplied(t *testing.T) {
	k := reading(t, acme(), namespace("kubeop-acme"), namespace("kubeop-acme-shop"))
	s := k.scope(k.Tree.Read(inMemory(acmeFiles(map[string]string{"bad": invalid})), tree.Scope{Repository: "acme", Tenant: "acme"}, nil))
	s.progress.look(ref("acme/shop/web"), ref("acme/shop/bad"))
	if todo, err := k.next(t.Context(), s, nil); err != nil || len(todo) != 0 {
		t.Errorf("applied are %v, %v", todo, err)
	}
	if !s.progress.Gone.Has(ref("acme/shop/web")) || len(s.progress.pending.All()) != 0 {
		t.Errorf("gone are %v", s.progress.Gone)
	}
}

// TestTheLiveObjectDecidesWhoAppliedIt: labels may have been changed, managed fields not.
func TestTheLiveObjectDecidesWhoAppliedIt(t *testing.T) {
	byHand := fromAcme(project("kubeop-acme", "by-hand"))
	byHand.ManagedFields = nil
	k := watching(t, fromAcme(project("kubeop-acme", "shop")), byHand)
	for name, want := range map[string]int{"shop": 1, "by-hand": 0, "none": 0} {
		o := project("kubeop-acme", name)
		o.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.ProjectKind))
		got, err := k.recorded(t.Context(), o)
		if err != nil || len(got) != want {
			t.Errorf("%s: recorded are %v, %v, want %d", name, got, err, want)
		}
		if want == 1 && (got[0].ID != "kubeop-acme_shop_paas.kubeop.io_Project" || got[0].Digest == "" || got[0].Version != v1alpha1.GroupVersion.Version) {
			t.Errorf("recorded is %+v", got[0])
		}
	}
	shop := project("kubeop-acme", "shop")
	shop.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.ProjectKind))
	k.fails = ".Project"
	if got, err := k.recorded(t.Context(), shop); !errors.Is(err, errAway) {
		t.Errorf("recorded are %v, %v of an object that cannot be read", got, err)
	}
}

func TestThePathOfTheRepositoryItselfIsADot(t *testing.T) {
	for path, want := range map[string]string{"": ".", "deploy": "deploy"} {
		if got := upstream.Folder(path); got != want {
			t.Errorf("%q is %q, want %q", path, got, want)
		}
	}
}
