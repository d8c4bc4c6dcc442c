package app

import (
	"testing"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/inventory"
	"github.com/kubeop/kubeop/delivery/journal"
)

const shop = "kubeop-acme-shop"

// project is a Reconciler of an app "web", which objects left an instant ago, and of a sibling "api".
type project struct {
	*Reconciler
	t     *testing.T
	clock *testclock.FakePassiveClock
	web   *scope
	api   *v1alpha1.App
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
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
	p.web = declaring(web, "one")
	p.web.memory.delivers(aboutOf(web), "one", p.clock.Now())
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(p.api, web).WithStatusSubresource(&v1alpha1.App{}).Build()
	p.Reconciler = &Reconciler{Client: c, Direct: c, Clock: p.clock, Journal: journal.New(fake.NewClientBuilder().Build(), "kubeop-system", time.Now)}
	p.Reconciler.queue.Store(&p.queue)
	return p
}

// has records objects of the sibling.
func has(names ...string) func(*v1alpha1.App) {
	return func(api *v1alpha1.App) {
		for _, name := range names {
			api.Status.Inventory.Entries = append(api.Status.Inventory.Entries, v1alpha1.InventoryEntry{ID: shop + "_" + name + "__ConfigMap", Version: "v1"})
		}
	}
}

// wantedBy says for whom the ConfigMap "left" is left.
func (p *project) wantedBy() string {
	p.t.Helper()
	by, err := p.wanted(p.web)(p.t.Context(), inventory.ObjectID{Namespace: shop, Name: "left", Kind: "ConfigMap"})
	if err != nil {
		p.t.Fatal(err)
	}
	return by
}

func (p *project) after(d time.Duration) { p.clock.SetTime(p.clock.Now().Add(d)) }

const silentAPI = "whoever declares it: app api has yet to say what it does"

func TestASiblingThatSaysNothingIsWaitedForAWhile(t *testing.T) {
	cases := map[string]struct {
		api func(*v1alpha1.App)
		// said is what it declared in an earlier generation; nil for nothing.
		said        []string
		early, late string
	}{
		"nothing is known of it":      {has("own"), nil, silentAPI, ""},
		"the object is recorded":      {has("own", "left"), nil, "app api", "app api"},
		"it declared others":          {has(), []string{"own"}, silentAPI, ""},
		"it declared the object":      {has(), []string{"left"}, "app api", "app api"},
		"it is suspended, and has it": {func(a *v1alpha1.App) { has("left")(a); a.Spec.Suspend = true }, nil, "app api", "app api"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := newProject(t, func(a *v1alpha1.App) { c.api(a); a.Generation = 2 })
			if c.said != nil {
				p.claims.note(declaring(gitApp(1), "one", c.said...))
			}
			if got := p.wantedBy(); got != c.early {
				t.Errorf("at first it is left for %q", got)
			}
			p.after(siblingPatience - time.Second)
			if got := p.wantedBy(); got != c.early {
				t.Errorf("before the time is up it is left for %q", got)
			}
			p.after(time.Second)
			if got := p.wantedBy(); got != c.late {
				t.Errorf("after the time is up it is left for %q", got)
			}
		})
	}
}

// TestTheTimeDoesNotPassWhileASiblingWaitsForItsTurn lets the sibling wait for a dependency before and afterwards.
func TestTheTimeDoesNotPassWhileASiblingWaitsForItsTurn(t *testing.T) {
	for _, condition := range []string{v1alpha1.SourceReadyCondition, v1alpha1.RenderedCondition} {
		t.Run(condition, func(t *testing.T) {
			p := newProject(t, has())
			passes := func(reason string) {
				t.Helper()
				conditions.MarkUnknown(p.api, condition, reason, "it waits")
				if err := p.Client.Status().Update(t.Context(), p.api); err != nil {
					t.Fatal(err)
				}
				for range 2 {
					if got := p.wantedBy(); got != silentAPI {
						t.Errorf("%s: it is left for %q", reason, got)
					}
					p.after(siblingPatience - time.Second)
				}
			}
			passes(v1alpha1.WaitingForTurnReason)
			passes(v1alpha1.ProgressingReason)
			passes(v1alpha1.WaitingForTurnReason)
			passes(v1alpha1.ProgressingReason)
			if got := p.wantedBy(); got != "" {
				t.Errorf("after the time is up it is left for %q", got)
			}
		})
	}
}

// TestANewSpecHasItsOwnTime declares the sibling anew when the time of its old spec is up.
func TestANewSpecHasItsOwnTime(t *testing.T) {
	p := newProject(t, has())
	p.wantedBy()
	p.after(siblingPatience)
	if got := p.wantedBy(); got != "" {
		t.Errorf("it is left for %q", got)
	}
	p.api.Generation = 2
	if err := p.Client.Update(t.Context(), p.api); err != nil {
		t.Fatal(err)
	}
	if got := p.wantedBy(); got != silentAPI {
		t.Errorf("it is left for %q", got)
	}
	p.after(siblingPatience)
	if got := p.wantedBy(); got != "" {
		t.Errorf("after its time it is left for %q", got)
	}
}

// TestWaitingCostsLittle follows an app that waits for an hour for a sibling that never takes what it declares.
func TestWaitingCostsLittle(t *testing.T) {
	p := newProject(t, has())
	p.claims.note(declaring(p.api, "one", "left"))
	looks := 0
	for began := p.clock.Now(); p.clock.Now().Sub(began) < time.Hour; looks++ {
		p.web.again = 0
		p.handOver(p.web, []string{p.wantedBy()})
		p.after(p.web.again)
	}
	if looks < 15 || looks > 40 {
		t.Errorf("%d looks in an hour", looks)
	}
}

// TestASiblingsWordWakesWhoWaits says and does things in the sibling.
func TestASiblingsWordWakesWhoWaits(t *testing.T) {
	p := newProject(t, has())
	web := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: shop, Name: "web"}}
	woken := func(s *scope) bool {
		t.Helper()
		p.said(s)
		found := false
		for p.queue.Len() > 0 {
			request, _ := p.queue.Get()
			p.queue.Done(request)
			found = found || request == web
		}
		return found
	}
	quiet := declaring(p.api, "one")
	quiet.declared, quiet.app.Status.Conditions = false, []metav1.Condition{{Type: v1alpha1.DependenciesReadyCondition, Status: "Unknown"}}
	speaks, wrote := declaring(gitApp(1), "one", "left"), declaring(gitApp(1), "one", "left")
	wrote.wrote = true
	if woken(speaks) {
		t.Error("it is woken though it does not wait")
	}
	p.claims.forget(p.api)
	p.wantedBy()
	if woken(quiet) {
		t.Error("it is woken though the sibling said nothing")
	}
	if !woken(speaks) || woken(wrote) {
		t.Error("it is not woken once by a word")
	}
	p.wantedBy()
	if woken(speaks) || !woken(wrote) {
		t.Error("it is not woken by what the sibling takes alone")
	}
	p.wantedBy()
	p.handOver(p.web, nil)
	if woken(wrote) {
		t.Error("it is woken though nothing is left for others any more")
	}
}
