package handover

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/app/record"
	"github.com/kubeop/kubeop/controllers/app/subject"
	"github.com/kubeop/kubeop/controllers/app/wake"
	"github.com/kubeop/kubeop/delivery/apply"
	"github.com/kubeop/kubeop/delivery/inventory"
	"github.com/kubeop/kubeop/delivery/journal"
)

const shop = "kubeop-acme-shop"

// project has the Transfers of an app "web", whose source lost objects just now, and of a sibling "api".
type project struct {
	*Transfers
	t        *testing.T
	writer   client.Client
	clock    *testclock.FakePassiveClock
	web      *subject.Subject
	search   *Search
	subjects *subject.Subjects
	api      *v1alpha1.App
	queue    workqueue.TypedRateLimitingInterface[reconcile.Request]
}

func newProject(t *testing.T, change func(api *v1alpha1.App)) *project {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	p := &project{t: t, clock: testclock.NewFakePassiveClock(time.Unix(1_000_000, 0)), api: gitApp(1)}
	p.queue = workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	t.Cleanup(p.queue.ShutDown)
	change(p.api)
	web := gitApp(1)
	web.Name, web.UID, web.Spec = "web", "2", v1alpha1.AppSpec{Type: v1alpha1.AppRaw}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(p.api, web).WithStatusSubresource(&v1alpha1.App{}).Build()
	p.writer = c
	p.Transfers = &Transfers{
		Client: c, Direct: c, Queue: &wake.Queue{},
		Inventory: &record.Recorder{Journal: journal.New(fake.NewClientBuilder().Build(), "kubeop-system", time.Now)},
	}
	p.Queue.Start(p.queue)
	p.subjects = &subject.Subjects{Clock: p.clock}
	p.web = p.subjects.New(web)
	p.Begin(p.web, "one")
	return p
}

// has puts objects into the sibling's inventory.
func has(names ...string) func(*v1alpha1.App) {
	return func(api *v1alpha1.App) {
		for _, name := range names {
			api.Status.Inventory.Entries = append(api.Status.Inventory.Entries, v1alpha1.InventoryEntry{ID: shop + "_" + name + "__ConfigMap", Version: "v1"})
		}
	}
}

// wantedBy returns the app for which the ConfigMap "left" is kept.
func (p *project) wantedBy() string {
	p.t.Helper()
	p.search = p.Search(p.web, "one")
	by, err := p.search.Wanted(p.t.Context(), inventory.ObjectID{Namespace: shop, Name: "left", Kind: "ConfigMap"})
	if err != nil {
		p.t.Fatal(err)
	}
	return by
}

func (p *project) after(d time.Duration) { p.clock.SetTime(p.clock.Now().Add(d)) }

const silentAPI = "the app that declares it: app api has not reported its objects yet"

func TestAnAppWaitsForASiblingWithoutADeclarationUntilALimit(t *testing.T) {
	cases := map[string]struct {
		api func(*v1alpha1.App)
		// said is the sibling's declaration in an earlier generation; nil for none.
		said        []string
		early, late string
	}{
		"nothing is recorded":          {has("own"), nil, silentAPI, ""},
		"the object is recorded":       {has("own", "left"), nil, "app api", "app api"},
		"recorded, and it said others": {has("left"), []string{"own", "other"}, "app api", "app api"},
		"it declared others":           {has(), []string{"own"}, silentAPI, ""},
		"it declared the object":       {has(), []string{"left"}, "app api", "app api"},
		"it is suspended, and has it":  {func(a *v1alpha1.App) { has("left")(a); a.Spec.Suspend = true }, nil, "app api", "app api"},
		"it is suspended, without it":  {func(a *v1alpha1.App) { has("own")(a); a.Spec.Suspend = true }, nil, "", ""},
		"suspended for some time":      {func(a *v1alpha1.App) { has("own")(a); annotate(a, v1alpha1.SuspendAnnotation, "1970-01-12T23:00:00Z") }, nil, "", ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := newProject(t, func(a *v1alpha1.App) { c.api(a); a.Generation = 2 })
			if c.said != nil {
				p.declarations.note(declaring(gitApp(1), "one", c.said...))
			}
			if got := p.wantedBy(); got != c.early {
				t.Errorf("at first the object is kept for %q, want %q", got, c.early)
			}
			p.after(siblingTime - time.Second)
			if got := p.wantedBy(); got != c.early {
				t.Errorf("before the time limit the object is kept for %q, want %q", got, c.early)
			}
			p.after(time.Second)
			if got := p.wantedBy(); got != c.late {
				t.Errorf("after the time limit the object is kept for %q, want %q", got, c.late)
			}
		})
	}
}

// TestTheTimeDoesNotPassWhileASiblingWaitsForItsTurn: the sibling waits for a dependency before and afterwards.
func TestTheTimeDoesNotPassWhileASiblingWaitsForItsTurn(t *testing.T) {
	p := newProject(t, has())
	passes := func(inLine bool) {
		t.Helper()
		p.Declare(Pass{App: p.api, InLine: inLine})
		for range 2 {
			if got := p.wantedBy(); got != silentAPI {
				t.Errorf("sibling waits for its turn %t: the object is kept for %q, want %q", inLine, got, silentAPI)
			}
			p.after(siblingTime - time.Second)
		}
	}
	passes(true)
	passes(false)
	passes(true)
	passes(false)
	if got := p.wantedBy(); got != "" {
		t.Errorf("after the time limit the object is kept for %q, want none", got)
	}
}

// TestASiblingOfTheSameRepositoryMayTakeItsInterval to see a revision that this app has seen. Until then it keeps what it has.
func TestASiblingOfTheSameRepositoryMayTakeItsInterval(t *testing.T) {
	for name, c := range map[string]struct {
		has  string
		want []string
	}{"it does not have the object": {"own", []string{silentAPI, silentAPI, ""}}, "it has the object": {"left", []string{"app api", "app api", ""}}} {
		t.Run(name, func(t *testing.T) {
			p := newProject(t, has(c.has))
			p.web.App.Spec = p.api.Spec
			p.declarations.note(declaring(p.api, "zero", "another"))
			for n, want := range c.want {
				if got := p.wantedBy(); got != want {
					t.Errorf("after %d times 6 minutes the object is kept for %q, want %q", n, got, want)
				}
				p.after(6 * time.Minute)
			}
		})
	}
}

// TestASiblingThatWaitsForItsTurnKeepsWhatItHas.
func TestASiblingThatWaitsForItsTurnKeepsWhatItHas(t *testing.T) {
	p := newProject(t, has("left"))
	p.Declare(Pass{App: p.api, InLine: true})
	if got := p.wantedBy(); got != "app api" {
		t.Errorf("the object is kept for %q, want %q", got, "app api")
	}
}

// TestTheNewestSpecOfASiblingCounts, also while the cache does not have it yet.
func TestTheNewestSpecOfASiblingCounts(t *testing.T) {
	p := newProject(t, has())
	p.declarations.note(declaring(p.api, "one", "own"))
	cached := p.api.DeepCopy()
	p.api.Generation = 2
	if err := p.writer.Update(t.Context(), p.api); err != nil {
		t.Fatal(err)
	}
	p.Client = interceptor.NewClient(p.writer.(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if app, ok := o.(*v1alpha1.App); ok {
				cached.DeepCopyInto(app)
				return nil
			}
			return c.Get(ctx, key, o, opts...)
		},
	})
	if got := p.wantedBy(); got != silentAPI {
		t.Errorf("the object is kept for %q, want %q", got, silentAPI)
	}
}

// TestAnAppLooksAgainWhenTheTimeOfAllItsSiblingsIsUp.
func TestAnAppLooksAgainWhenTheTimeOfAllItsSiblingsIsUp(t *testing.T) {
	p := newProject(t, has())
	last := p.api.DeepCopy()
	last.Name, last.UID, last.ResourceVersion = "zoo", "3", ""
	if err := p.writer.Create(t.Context(), last); err != nil {
		t.Fatal(err)
	}
	p.wantedBy()
	p.after(siblingTime - 2*time.Second)
	looksAgainAfter := func() time.Duration {
		p.web = p.subjects.New(p.web.App)
		p.Cede(p.web, []string{p.wantedBy()}, p.search)
		return p.web.Again()
	}
	if got := looksAgainAfter(); got != 2*time.Second {
		t.Errorf("it looks again after %s, want 2s", got)
	}
	p.Declare(Pass{App: p.api, InLine: true})
	if got, want := looksAgainAfter(), siblingTime/2-time.Second; got != want {
		t.Errorf("while one waits for its turn, it looks again after %s, want %s", got, want)
	}
}

// TestANewSpecGetsTheFullTime changes the sibling's spec when the time of its old spec is over.
func TestANewSpecGetsTheFullTime(t *testing.T) {
	p := newProject(t, has())
	p.wantedBy()
	p.after(siblingTime)
	if got := p.wantedBy(); got != "" {
		t.Errorf("the object is kept for %q, want none", got)
	}
	p.api.Generation = 2
	if err := p.writer.Update(t.Context(), p.api); err != nil {
		t.Fatal(err)
	}
	if got := p.wantedBy(); got != silentAPI {
		t.Errorf("with the new spec the object is kept for %q, want %q", got, silentAPI)
	}
	p.after(siblingTime)
	if got := p.wantedBy(); got != "" {
		t.Errorf("after the time limit the object is kept for %q, want none", got)
	}
}

// TestWaitingAppsReconcileSeldom: an app waits for an hour for a sibling that never takes over what it declares.
func TestWaitingAppsReconcileSeldom(t *testing.T) {
	p := newProject(t, has())
	p.declarations.note(declaring(p.api, "one", "left"))
	looks := 0
	for began := p.clock.Now(); p.clock.Now().Sub(began) < time.Hour; looks++ {
		p.web = p.subjects.New(p.web.App)
		p.Cede(p.web, []string{p.wantedBy()}, p.search)
		p.after(p.web.Again())
	}
	if looks < 15 || looks > 40 {
		t.Errorf("the app reconciles %d times in an hour", looks)
	}
}

// TestADeclarationOfASiblingWakesWaitingApps changes the declarations and the inventory of the sibling.
func TestADeclarationOfASiblingWakesWaitingApps(t *testing.T) {
	p := newProject(t, has())
	web := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: shop, Name: "web"}}
	woken := func(pass Pass) bool {
		t.Helper()
		p.Declare(pass)
		found := false
		for p.queue.Len() > 0 {
			request, _ := p.queue.Get()
			p.queue.Done(request)
			found = found || request == web
		}
		return found
	}
	quiet := declaring(p.api, "one")
	quiet.Rendered, quiet.App.Status.Conditions = false, []metav1.Condition{{Type: v1alpha1.DependenciesReadyCondition, Status: "Unknown"}}
	speaks, wrote := declaring(gitApp(1), "one", "left"), declaring(gitApp(1), "one", "left")
	wrote.Wrote = true
	if woken(speaks) {
		t.Error("the app is woken although it does not wait")
	}
	p.declarations.forget(p.api)
	p.wantedBy()
	if woken(quiet) {
		t.Error("the app is woken although the sibling declared nothing new")
	}
	if !woken(speaks) || woken(wrote) {
		t.Error("the app is not woken exactly once by a declaration")
	}
	p.wantedBy()
	if woken(speaks) || !woken(wrote) {
		t.Error("the app is not woken when the sibling takes the object over")
	}
	p.wantedBy()
	p.Cede(p.web, nil, p.search)
	if woken(wrote) {
		t.Error("the app is woken although it keeps no object for others")
	}
}

// TestADeclarationEndsTheWaitAtOnce: a sibling that has declared its present input, without the object, will not take it.
func TestADeclarationEndsTheWaitAtOnce(t *testing.T) {
	p := newProject(t, has("own", "left"))
	p.declarations.note(declaring(p.api, "one", "own"))
	if got := p.wantedBy(); got != "" {
		t.Errorf("the object is kept for %q", got)
	}
}

// woken returns the names of the apps in the queue.
func (p *project) woken() (names []string) {
	for p.queue.Len() > 0 {
		request, _ := p.queue.Get()
		p.queue.Done(request)
		names = append(names, request.Name)
	}
	return names
}

// TestOnlySiblingsThatMustStillDeclareAreWoken.
func TestOnlySiblingsThatMustStillDeclareAreWoken(t *testing.T) {
	p := newProject(t, has())
	if p.wantedBy(); !slices.Equal(p.woken(), []string{"api"}) {
		t.Error("a sibling without a declaration is not woken")
	}
	if p.wantedBy(); len(p.woken()) != 0 {
		t.Error("a sibling without a declaration is woken again at once")
	}
	p = newProject(t, has())
	p.declarations.note(declaring(p.api, "one", "own"))
	if p.wantedBy(); len(p.woken()) != 0 {
		t.Error("a sibling that has declared is woken")
	}
}

// TestTheEndOfASiblingWakesWaitingApps: it takes nothing any more, and nothing is known of it.
func TestTheEndOfASiblingWakesWaitingApps(t *testing.T) {
	p := newProject(t, has())
	p.declarations.note(declaring(p.api, "one", "left"))
	p.wantedBy()
	p.woken()
	p.Forget(p.api)
	if _, known := p.declarations.of(shop, "api"); known || !slices.Equal(p.woken(), []string{"web"}) {
		t.Errorf("its declaration is known: %t, or the app that waits is not woken", known)
	}
	p.wantedBy()
	p.woken()
	suspended := p.api.DeepCopy()
	suspended.Spec.Suspend = true
	if p.Declare(Pass{App: suspended}); !slices.Equal(p.woken(), []string{"web"}) {
		t.Error("the app that waits is not woken when the sibling is suspended")
	}
	p.wantedBy()
	p.woken()
	p.Forget(p.web.App)
	if at := p.declaredAt(p.web); !at.IsZero() {
		t.Errorf("of an app that is gone is known that its input is from %s", at)
	}
	p.Declare(declaring(gitApp(1), "two", "left"))
	if woken := p.woken(); len(woken) != 0 {
		t.Errorf("%v are woken although the app that waited is gone", woken)
	}
	if len(p.declarations.waiting) != 0 {
		t.Errorf("still waiting are %v", p.declarations.waiting)
	}
}

// TestAnAppWhoseObjectsBelongToASiblingIsWoken when that declares something else; after any other error, nothing is awaited.
func TestAnAppWhoseObjectsBelongToASiblingIsWoken(t *testing.T) {
	for err, want := range map[error]int{fmt.Errorf("ConfigMap/a: %w", apply.ErrContested): 1, errors.New("away"): 0} {
		p := newProject(t, has())
		p.AwaitOwners(p.web, err)
		p.Declare(declaring(p.api, "one", "own"))
		if woken := p.woken(); len(woken) != want {
			t.Errorf("after %v, woken are %v", err, woken)
		}
	}
}

// TestAnAppIsWokenByWhatASiblingDeclaredDuringItsApply: the sibling may have given the objects up after the App asked for them.
func TestAnAppIsWokenByWhatASiblingDeclaredDuringItsApply(t *testing.T) {
	p := newProject(t, has())
	p.Declare(declaring(p.api, "one", "left"))
	p.Begin(p.web, "one")
	p.AwaitOwners(p.web, apply.ErrContested)
	if woken := p.woken(); len(woken) != 0 {
		t.Errorf("nothing changed, and woken are %v", woken)
	}
	p.Begin(p.web, "one")
	p.Declare(declaring(p.api, "one", "own"))
	p.woken()
	p.AwaitOwners(p.web, apply.ErrContested)
	if woken := p.woken(); !slices.Equal(woken, []string{"web"}) {
		t.Errorf("woken are %v", woken)
	}
}

// TestAnAppThatIsRemovedLooksAgainLater: after half of the time waited, from a second to five minutes, and at the end of its timeout.
func TestAnAppThatIsRemovedLooksAgainLater(t *testing.T) {
	p := newProject(t, has())
	p.web.App.DeletionTimestamp = &metav1.Time{Time: p.clock.Now()}
	p.web.App.Spec.Timeout.Duration = 90 * time.Second
	passed := time.Duration(0)
	for _, c := range []struct{ at, want time.Duration }{
		{0, time.Second}, {2 * time.Second, time.Second}, {40 * time.Second, 20 * time.Second}, {80 * time.Second, 10 * time.Second},
		{90 * time.Second, 45 * time.Second}, {time.Hour, 5 * time.Minute},
	} {
		p.after(c.at - passed)
		passed = c.at
		if got := p.NextLook(p.web); got != c.want {
			t.Errorf("after %s it looks again in %s, want %s", c.at, got, c.want)
		}
	}
}
