package pool

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeop/kubeop/delivery/fair"
	"github.com/kubeop/kubeop/delivery/release/fault"
)

// run is what an action of these tests does.
type run func(*Worker)

func (f run) action(app types.NamespacedName) Action {
	return Action{Name: "installing", Input: "d", App: app, Tenant: app.Namespace, Run: func(_ context.Context, w *Worker) func() {
		f(w)
		return nil
	}}
}

func nothing(*Worker) {}

func newPool(workers int) (*Pool[int], chan types.NamespacedName) {
	notified := make(chan types.NamespacedName, 100)
	return New[int](Options{
		Workers: fair.Bounds{Places: workers},
		Now:     time.Now,
		Notify:  func(a types.NamespacedName) { notified <- a },
	}), notified
}

// launch starts an action in the slot of a release of namespace team.
func launch(t *testing.T, p *Pool[int], name string, f run) *Slot[int] {
	t.Helper()
	return launchIn(t, p, types.NamespacedName{Namespace: "team", Name: name}, f)
}

func launchIn(t *testing.T, p *Pool[int], app types.NamespacedName, f run) *Slot[int] {
	t.Helper()
	s := p.Slot(app)
	s.Lock()
	defer s.Unlock()
	if err := p.Start(t.Context(), s, f.action(app)); err != nil {
		t.Fatal(err)
	}
	return s
}

func busy(s *Slot[int]) bool {
	s.Lock()
	defer s.Unlock()
	return s.Busy()
}

func TestWorkersAreBounded(t *testing.T) {
	p, notified := newPool(2)
	var now, most atomic.Int32
	release := make(chan struct{})
	for i := range 6 {
		name := string(rune('a' + i))
		launchIn(t, p, types.NamespacedName{Namespace: "team-" + name, Name: name}, func(*Worker) {
			most.Store(max(most.Load(), now.Add(1)))
			<-release
			now.Add(-1)
		})
	}
	close(release)
	for range 6 {
		<-notified
	}
	if most.Load() > 2 {
		t.Errorf("%d actions ran at once", most.Load())
	}
}

// TestATenantHasAboutHalfOfTheWorkers has the actions of one namespace never end: about half of the workers are theirs,
// those of another namespace run meanwhile, and what is queued runs when it can.
func TestATenantHasAboutHalfOfTheWorkers(t *testing.T) {
	tests := map[string]struct{ workers, share int }{
		"half of four":          {4, 2},
		"half of five, rounded": {5, 3},
		"one of two":            {2, 1},
		"two of three":          {3, 2},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p, notified := newPool(tt.workers)
			began, release := make(chan struct{}, 8), make(chan struct{})
			for i := range 8 {
				launch(t, p, string(rune('a'+i)), func(*Worker) {
					began <- struct{}{}
					<-release
				})
			}
			for range tt.share {
				<-began
			}
			for _, other := range []string{"one", "two", "three"} {
				a := types.NamespacedName{Namespace: "other", Name: other}
				launchIn(t, p, a, nothing)
				if got := <-notified; got != a {
					t.Errorf("%s ended first, want %s", got, a)
				}
			}
			if len(began) != 0 {
				t.Errorf("%d more than %d stuck actions of one namespace run on %d workers, want 0", len(began), tt.share, tt.workers)
			}
			close(release)
			for range 8 {
				<-notified
			}
		})
	}
}

// TestOneTenantFindsAWorkerWhileOthersActionsNeverEnd has three tenants begin all they can, as with templates that never end, and a fourth
// have its release installed and upgraded.
func TestOneTenantFindsAWorkerWhileOthersActionsNeverEnd(t *testing.T) {
	p, notified := newPool(8)
	release := make(chan struct{})
	began := 0
	for _, namespace := range []string{"one", "two", "three"} {
		for i := range MaxInFlight {
			launchIn(t, p, types.NamespacedName{Namespace: namespace, Name: string(rune('a' + i))}, func(*Worker) {
				<-release
			})
			began++
		}
	}
	few := types.NamespacedName{Namespace: "few", Name: "shop"}
	for range 2 {
		launchIn(t, p, few, nothing)
		select {
		case got := <-notified:
			if got != few {
				t.Errorf("%s ended first, want %s", got, few)
			}
		case <-time.After(30 * time.Second):
			t.Fatal("a fourth tenant's action does not begin")
		}
	}
	close(release)
	for range began {
		<-notified
	}
}

func TestTheErrorOfAnIdleWaitIsReturned(t *testing.T) {
	p, notified := newPool(1)
	failed := errors.New("not ready in time")
	var got, none error
	launch(t, p, "web", func(w *Worker) {
		got = w.Idle(func() error { return failed })
		none = w.Idle(func() error { return nil })
	})
	<-notified
	if !errors.Is(got, failed) || none != nil {
		t.Errorf("got %v and %v, want %v and none", got, none, failed)
	}
}

func TestOneWorkerServesAllTenants(t *testing.T) {
	p, notified := newPool(1)
	for _, namespace := range []string{"team", "other"} {
		a := types.NamespacedName{Namespace: namespace, Name: "shop"}
		launchIn(t, p, a, nothing)
		if got := <-notified; got != a {
			t.Errorf("%s ended, want %s", got, a)
		}
	}
}

func TestAnActionOutlivesTheCallersContext(t *testing.T) {
	p, notified := newPool(1)
	ctx, cancel := context.WithCancel(t.Context())
	s := p.Slot(types.NamespacedName{Namespace: "team", Name: "shop"})
	began, ended := make(chan struct{}), make(chan error, 1)
	s.Lock()
	err := p.Start(ctx, s, Action{Name: "installing", Tenant: "team", Run: func(ctx context.Context, _ *Worker) func() {
		<-began
		ended <- ctx.Err()
		return nil
	}})
	s.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	close(began)
	if err := <-ended; err != nil {
		t.Errorf("the action's context ended with the caller's: %v", err)
	}
	<-notified
}

func TestDrainDropsQueuedActions(t *testing.T) {
	p, _ := newPool(1)
	release, began := make(chan struct{}), make(chan struct{})
	launch(t, p, "runs", func(*Worker) {
		close(began)
		<-release
	})
	<-began
	never := func(*Worker) {
		t.Error("a queued action began while draining")
	}
	queued := launch(t, p, "queued", never)
	other := launchIn(t, p, types.NamespacedName{Namespace: "other", Name: "queued"}, never)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Drain(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v while an action runs", err)
	}
	third := p.Slot(types.NamespacedName{Namespace: "team", Name: "third"})
	third.Lock()
	err := p.Start(t.Context(), third, run(never).action(types.NamespacedName{Namespace: "team", Name: "third"}))
	third.Unlock()
	if !errors.Is(err, fault.ErrDraining) {
		t.Errorf("got %v, want ErrDraining", err)
	}
	close(release)
	if err := p.Drain(t.Context()); err != nil {
		t.Error(err)
	}
	for _, dropped := range []*Slot[int]{queued, other, third} {
		if busy(dropped) {
			t.Error("a dropped action is still in its slot")
		}
	}
}

// TestAnIdleActionHoldsNoWorker: while as many actions of a tenant as it may start are idle, others find a worker, and each idle one has a worker
// again afterwards.
func TestAnIdleActionHoldsNoWorker(t *testing.T) {
	p, notified := newPool(1)
	waiting, release := make(chan struct{}, MaxInFlight+1), make(chan struct{})
	wait := func(w *Worker) {
		_ = w.Idle(func() error {
			// Idle within Idle, and beside it, does not release the worker twice.
			var both sync.WaitGroup
			for range 2 {
				both.Go(func() { _ = w.Idle(func() error { return nil }) })
			}
			both.Wait()
			waiting <- struct{}{}
			<-release
			return nil
		})
	}
	for i := range MaxInFlight - 1 {
		launch(t, p, string(rune('a'+i)), wait)
	}
	for range MaxInFlight - 1 {
		<-waiting
	}
	for _, namespace := range []string{"team", "other"} {
		a := types.NamespacedName{Namespace: namespace, Name: "quick"}
		launchIn(t, p, a, nothing)
		if got := <-notified; got != a {
			t.Errorf("%s ended, want %s", got, a)
		}
	}
	launch(t, p, "y", wait)
	<-waiting
	z := types.NamespacedName{Namespace: "team", Name: "z"}
	s := p.Slot(z)
	s.Lock()
	for range 2 {
		if err := p.Start(t.Context(), s, run(wait).action(z)); !errors.Is(err, ErrQueued) {
			t.Errorf("more than %d actions of one tenant have started: %v", MaxInFlight, err)
		}
	}
	s.Unlock()
	if busy(s) {
		t.Error("an action that did not start is in its slot")
	}
	close(release)
	times := 0
	for range MaxInFlight + 1 {
		if a := <-notified; a == z {
			times++
		}
	}
	p.actions.Wait()
	if times != 1 || len(p.admission.tenants) != 0 {
		t.Errorf("the queued app was notified %d times; %d tenants are remembered", times, len(p.admission.tenants))
	}
	if n := p.Working(); n != 0 {
		t.Errorf("%d workers were not released", n)
	}
}

func TestQueuedActionsOfAForgottenNamespaceNeverRun(t *testing.T) {
	p, notified := newPool(1)
	release := make(chan struct{})
	launchIn(t, p, types.NamespacedName{Namespace: "other", Name: "busy"}, func(*Worker) { <-release })
	s := launch(t, p, "queued", func(*Worker) { panic("it began") })
	p.Forget("team")
	close(release)
	<-notified
	p.actions.Wait()
	if busy(s) {
		t.Error("the dropped action is still in its slot")
	}
	if len(p.slots.byKey) != 1 || len(p.admission.tenants) != 0 {
		t.Errorf("%d slots are remembered, want that of the other namespace; %d tenants are remembered", len(p.slots.byKey), len(p.admission.tenants))
	}
}

// ending is a context that ends after it was asked once.
type ending struct {
	context.Context
	asked bool
}

func (e *ending) Err() error {
	if !e.asked {
		e.asked = true
		return nil
	}
	return context.Canceled
}

// TestAWorkerThatIsFoundWhileThePoolStopsIsReleased: its action would begin after Drain.
func TestAWorkerThatIsFoundWhileThePoolStopsIsReleased(t *testing.T) {
	p, _ := newPool(1)
	w := &Worker{workers: p.workers, tenant: "team"}
	if w.acquire(&ending{Context: t.Context()}) {
		t.Fatal("the worker may begin")
	}
	if p.Working() != 0 {
		t.Error("the worker is still taken")
	}
	if !w.acquire(t.Context()) || p.Working() != 1 {
		t.Error("the worker is not free for another action")
	}
}
