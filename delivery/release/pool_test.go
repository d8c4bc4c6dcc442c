package release

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeop/kubeop/delivery/release/cluster"
	"github.com/kubeop/kubeop/delivery/release/decide"
	"github.com/kubeop/kubeop/delivery/release/fault"
)

var app = types.NamespacedName{Namespace: "team", Name: "shop"}

// pool is an engine that reaches no cluster.
func pool(workers int) (*Engine, chan types.NamespacedName) {
	notified := make(chan types.NamespacedName, 100)
	return New(Options{
		Workers: workers, Holder: "me",
		Now:    func() time.Time { return noon },
		Notify: func(a types.NamespacedName) { notified <- a },
	}), notified
}

// launch starts a job in the slot of a release.
func launch(t *testing.T, e *Engine, name string, run func(context.Context, *place) result) *slot {
	t.Helper()
	return launchIn(t, e, types.NamespacedName{Namespace: "team", Name: name}, run)
}

func launchIn(t *testing.T, e *Engine, app types.NamespacedName, run func(context.Context, *place) result) *slot {
	t.Helper()
	s := e.slot(app)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := e.start(t.Context(), s, app, job{act: decide.Install, trial: "d", run: run}); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *slot) look() (decide.Act, decide.Attempt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.action, s.last
}

func TestAPanicIsAFailedAttempt(t *testing.T) {
	e, notified := pool(1)
	s := launch(t, e, "a", func(context.Context, *place) result { panic("nil chart") })
	<-notified
	running, last := s.look()
	if running != decide.Settled || last.Err == nil || !strings.Contains(last.Err.Error(), "nil chart") || last.Unstored != 1 {
		t.Errorf("action %q, attempt %+v", running, last)
	}
}

func TestFailuresInARowAreCounted(t *testing.T) {
	e, notified := pool(1)
	no := errors.New("no")
	for want, run := range []func(context.Context, *place) result{
		func(context.Context, *place) result { return result{} },
		func(context.Context, *place) result { return result{err: no} },
		func(context.Context, *place) result { return result{err: no} },
	} {
		s := launch(t, e, "a", run)
		<-notified
		if _, last := s.look(); last.Unstored != want || last.At != noon {
			t.Errorf("attempt %+v, want %d without a record", last, want)
		}
	}
	s := launch(t, e, "a", func(context.Context, *place) result { return result{stored: true, err: no} })
	<-notified
	if _, last := s.look(); last.Unstored != 0 || last.Err == nil {
		t.Errorf("attempt %+v: storage counts those that it knows", last)
	}
}

func TestWorkersAreBounded(t *testing.T) {
	e, notified := pool(2)
	var now, most atomic.Int32
	release := make(chan struct{})
	for i := range 6 {
		name := string(rune('a' + i))
		launchIn(t, e, types.NamespacedName{Namespace: "team-" + name, Name: name}, func(context.Context, *place) result {
			most.Store(max(most.Load(), now.Add(1)))
			<-release
			now.Add(-1)
			return result{}
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

// TestStuckActionsLeaveWorkersToOthers has the actions of one namespace never end: about half of the workers are theirs,
// those of another namespace run meanwhile, and what is queued runs when it can.
func TestStuckActionsLeaveWorkersToOthers(t *testing.T) {
	tests := map[string]struct{ workers, share int }{
		"half of four":          {4, 2},
		"half of five, rounded": {5, 3},
		"one of two":            {2, 1},
		"two of three":          {3, 2},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			e, notified := pool(tt.workers)
			began, release := make(chan struct{}, 8), make(chan struct{})
			for i := range 8 {
				launch(t, e, string(rune('a'+i)), func(context.Context, *place) result {
					began <- struct{}{}
					<-release
					return result{}
				})
			}
			for range tt.share {
				<-began
			}
			for _, other := range []string{"one", "two", "three"} {
				a := types.NamespacedName{Namespace: "other", Name: other}
				launchIn(t, e, a, func(context.Context, *place) result { return result{} })
				if got := <-notified; got != a {
					t.Errorf("%s ended first", got)
				}
			}
			if len(began) != 0 {
				t.Errorf("%d more than %d stuck actions of one namespace run on %d workers", len(began), tt.share, tt.workers)
			}
			close(release)
			for range 8 {
				<-notified
			}
		})
	}
}

// TestATenantHasOneShare has a tenant's actions in as many namespaces as it likes: they share what one has.
func TestATenantHasOneShare(t *testing.T) {
	e, notified := pool(4)
	began, release := make(chan struct{}, 4), make(chan struct{})
	for _, namespace := range []string{"acme-one", "acme-two", "acme-three", "acme-four"} {
		a := types.NamespacedName{Namespace: namespace, Name: "shop"}
		p := e.pass(e.slot(a), Request{App: a, Tenant: "acme"}, "d", "d")
		p.slot.mu.Lock()
		_, err := p.start(t.Context(), job{act: decide.Install, trial: "d", run: func(context.Context, *place) result {
			began <- struct{}{}
			<-release
			return result{}
		}})
		p.slot.mu.Unlock()
		if err != nil {
			t.Fatal(err)
		}
	}
	<-began
	<-began
	other := types.NamespacedName{Namespace: "other", Name: "shop"}
	launchIn(t, e, other, func(context.Context, *place) result { return result{} })
	if got := <-notified; got != other {
		t.Errorf("%s ended first", got)
	}
	select {
	case <-began:
		t.Error("a tenant has more than half of the workers")
	case <-time.After(50 * time.Millisecond):
	}
	close(release)
	for range 4 {
		<-notified
	}
}

// TestTenantsWhoseActionsNeverEndLeaveAWorker has three tenants begin all they can, as with templates that never end, and a fourth
// have its release installed and upgraded.
func TestTenantsWhoseActionsNeverEndLeaveAWorker(t *testing.T) {
	e, notified := pool(8)
	release := make(chan struct{})
	began := 0
	for _, namespace := range []string{"one", "two", "three"} {
		for i := range maxInFlight {
			launchIn(t, e, types.NamespacedName{Namespace: namespace, Name: string(rune('a' + i))}, func(context.Context, *place) result {
				<-release
				return result{}
			})
			began++
		}
	}
	few := types.NamespacedName{Namespace: "few", Name: "shop"}
	for range 2 {
		launchIn(t, e, few, func(context.Context, *place) result { return result{} })
		select {
		case got := <-notified:
			if got != few {
				t.Errorf("%s ended first", got)
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

func TestTheOnlyWorkerServesEverybody(t *testing.T) {
	e, notified := pool(1)
	for _, namespace := range []string{"team", "other"} {
		a := types.NamespacedName{Namespace: namespace, Name: "shop"}
		launchIn(t, e, a, func(context.Context, *place) result { return result{} })
		if got := <-notified; got != a {
			t.Errorf("%s ended, want %s", got, a)
		}
	}
}

func TestAnActionOutlivesItsReconcile(t *testing.T) {
	e, notified := pool(1)
	ctx, cancel := context.WithCancel(t.Context())
	s := e.slot(app)
	began, ended := make(chan struct{}), make(chan error, 1)
	s.mu.Lock()
	err := e.start(ctx, s, app, job{act: decide.Install, run: func(ctx context.Context, _ *place) result {
		<-began
		ended <- ctx.Err()
		return result{}
	}})
	s.mu.Unlock()
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

func TestDrainDropsTheQueue(t *testing.T) {
	e, _ := pool(1)
	release, began := make(chan struct{}), make(chan struct{})
	launch(t, e, "runs", func(context.Context, *place) result {
		close(began)
		<-release
		return result{}
	})
	<-began
	never := func(context.Context, *place) result {
		t.Error("a queued action began while draining")
		return result{}
	}
	queued := launch(t, e, "queued", never)
	other := launchIn(t, e, types.NamespacedName{Namespace: "other", Name: "queued"}, never)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := e.Drain(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v while an action runs", err)
	}
	queued.mu.Lock()
	err := e.start(t.Context(), queued, app, job{act: decide.Install})
	queued.mu.Unlock()
	if !errors.Is(err, fault.ErrDraining) {
		t.Errorf("got %v, want ErrDraining", err)
	}
	close(release)
	if err := e.Drain(t.Context()); err != nil {
		t.Error(err)
	}
	for _, dropped := range []*slot{queued, other} {
		if running, _ := dropped.look(); running != decide.Settled {
			t.Errorf("the dropped action is still %s", running)
		}
	}
}

// TestWhatWaitsHasNoWorker has as many actions of a namespace as may have begun wait for ever: others, of its own namespace
// and of another one, find a worker, and each that waits has one again afterwards.
func TestWhatWaitsHasNoWorker(t *testing.T) {
	e, notified := pool(1)
	waiting, release := make(chan struct{}, maxInFlight+1), make(chan struct{})
	wait := func(_ context.Context, at *place) result {
		return result{err: at.idle(func() error {
			// Waiting within waiting, and beside it, gives nothing back twice.
			var both sync.WaitGroup
			for range 2 {
				both.Go(func() { _ = at.idle(func() error { return nil }) })
			}
			both.Wait()
			waiting <- struct{}{}
			<-release
			return nil
		})}
	}
	for i := range maxInFlight - 1 {
		launch(t, e, string(rune('a'+i)), wait)
	}
	for range maxInFlight - 1 {
		<-waiting
	}
	for _, namespace := range []string{"team", "other"} {
		a := types.NamespacedName{Namespace: namespace, Name: "quick"}
		launchIn(t, e, a, func(context.Context, *place) result { return result{} })
		if got := <-notified; got != a {
			t.Errorf("%s ended, want %s", got, a)
		}
	}
	launch(t, e, "y", wait)
	<-waiting
	z := types.NamespacedName{Namespace: "team", Name: "z"}
	s := e.slot(z)
	s.mu.Lock()
	for range 2 {
		if err := e.start(t.Context(), s, z, job{act: decide.Install, run: wait}); !errors.Is(err, errInLine) {
			t.Errorf("more than %d actions of one namespace have begun: %v", maxInFlight, err)
		}
	}
	s.mu.Unlock()
	if running, _ := s.look(); running != decide.Settled {
		t.Errorf("what waits in line is %s", running)
	}
	close(release)
	called := 0
	for range maxInFlight + 1 {
		if a := <-notified; a == z {
			called++
		}
	}
	e.actions.Wait()
	if called != 1 || len(e.tenants) != 0 {
		t.Errorf("what waits was called %d times; actions are known of %d tenants", called, len(e.tenants))
	}
	if n := e.workers.Taken(); n != 0 {
		t.Errorf("%d workers were not given back", n)
	}
}

func TestAQueuedActionOfAnOlderInputIsNoAttempt(t *testing.T) {
	e, notified := pool(1)
	e.dial = func(Request) (*cluster.Connection, error) { return nil, errors.New("it began") }
	release := make(chan struct{})
	launch(t, e, "busy", func(context.Context, *place) result { <-release; return result{} })
	key := types.NamespacedName{Namespace: "team", Name: "queued"}
	s := e.slot(key)
	p := &pass{engine: e, slot: s}
	launchIn(t, e, key, p.deliver(decide.Decision{Act: decide.Install}))
	s.mu.Lock()
	s.supersede()
	s.mu.Unlock()
	close(release)
	<-notified
	<-notified
	if running, last := s.look(); running != decide.Settled || last.Err != nil {
		t.Errorf("action %q, attempt %+v", running, last)
	}
}

func TestWhatIsQueuedInAForgottenNamespaceNeverBegins(t *testing.T) {
	e, notified := pool(1)
	release := make(chan struct{})
	launchIn(t, e, types.NamespacedName{Namespace: "other", Name: "busy"}, func(context.Context, *place) result { <-release; return result{} })
	s := launch(t, e, "queued", func(context.Context, *place) result { panic("it began") })
	e.Forget("team")
	close(release)
	<-notified
	e.actions.Wait()
	if running, last := s.look(); running != decide.Settled || last.Err != nil {
		t.Errorf("action %q, attempt %+v", running, last)
	}
	if len(e.slots) != 1 || len(e.tenants) != 0 {
		t.Errorf("%d slots are remembered, want that of the other namespace; actions are known of %d tenants", len(e.slots), len(e.tenants))
	}
}

// An app that is called and wants nothing any more starts no action whose end would call the next.
func TestWhoWantsNothingHasTheNextCalled(t *testing.T) {
	e, notified := pool(1)
	next := types.NamespacedName{Namespace: "team", Name: "next"}
	e.tenants["acme"] = &tenantActions{waiting: []types.NamespacedName{next}, waits: map[types.NamespacedName]bool{next: true}}
	if _, err := e.Reconcile(t.Context(), Request{App: app, Tenant: "acme"}); err == nil {
		t.Fatal("an empty request was taken")
	}
	if got := <-notified; got != next || len(e.tenants) != 0 {
		t.Errorf("called %s, left %v", got, e.tenants)
	}
}
