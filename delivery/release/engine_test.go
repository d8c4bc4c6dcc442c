package release

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeop/kubeop/delivery/fair"
	"github.com/kubeop/kubeop/delivery/release/cluster"
	"github.com/kubeop/kubeop/delivery/release/decide"
	"github.com/kubeop/kubeop/delivery/release/pool"
)

var app = types.NamespacedName{Namespace: "team", Name: "shop"}

// unconnected is an engine that reaches no cluster.
func unconnected(workers int) (*Engine, chan types.NamespacedName) {
	notified := make(chan types.NamespacedName, 100)
	return New(Options{
		Workers: fair.Bounds{Places: workers}, Holder: "me",
		Now:    func() time.Time { return noon },
		Notify: func(a types.NamespacedName) { notified <- a },
	}), notified
}

// launch starts a job in the slot of a release.
func launch(t *testing.T, e *Engine, name string, run func(context.Context, *pool.Worker) result) *slot {
	t.Helper()
	return launchIn(t, e, types.NamespacedName{Namespace: "team", Name: name}, run)
}

func launchIn(t *testing.T, e *Engine, app types.NamespacedName, run func(context.Context, *pool.Worker) result) *slot {
	t.Helper()
	s := e.pool.Slot(app)
	s.Lock()
	defer s.Unlock()
	if err := e.start(t.Context(), s, app, job{act: decide.Install, trial: "d", tenant: app.Namespace, run: run}); err != nil {
		t.Fatal(err)
	}
	return s
}

func look(s *slot) (running string, last decide.Attempt) {
	s.Lock()
	defer s.Unlock()
	return s.Action().Name, s.Memory.last
}

func TestAPanicIsAFailedAttempt(t *testing.T) {
	e, notified := unconnected(1)
	s := launch(t, e, "a", func(context.Context, *pool.Worker) result { panic("nil chart") })
	<-notified
	running, last := look(s)
	if running != "" || last.Err == nil || !strings.Contains(last.Err.Error(), "nil chart") || last.Unstored != 1 {
		t.Errorf("action %q, attempt %+v", running, last)
	}
}

func TestFailuresInARowAreCounted(t *testing.T) {
	e, notified := unconnected(1)
	no := errors.New("no")
	for want, run := range []func(context.Context, *pool.Worker) result{
		func(context.Context, *pool.Worker) result { return result{} },
		func(context.Context, *pool.Worker) result { return result{err: no} },
		func(context.Context, *pool.Worker) result { return result{err: no} },
	} {
		s := launch(t, e, "a", run)
		<-notified
		if _, last := look(s); last.Unstored != want || last.At != noon {
			t.Errorf("attempt %+v, want %d without a record", last, want)
		}
	}
	s := launch(t, e, "a", func(context.Context, *pool.Worker) result { return result{stored: true, err: no} })
	<-notified
	if _, last := look(s); last.Unstored != 0 || last.Err == nil {
		t.Errorf("attempt %+v: storage counts those that it knows", last)
	}
}

func TestAQueuedActionOfAnOlderInputIsNoAttempt(t *testing.T) {
	e, notified := unconnected(1)
	e.dial = func(Request) (*cluster.Connection, error) { return nil, errors.New("it began") }
	release := make(chan struct{})
	launch(t, e, "busy", func(context.Context, *pool.Worker) result { <-release; return result{} })
	key := types.NamespacedName{Namespace: "team", Name: "queued"}
	s := e.pool.Slot(key)
	p := &pass{engine: e, slot: s}
	launchIn(t, e, key, p.deliver(decide.Decision{Act: decide.Install}))
	s.Lock()
	s.Supersede()
	s.Unlock()
	close(release)
	<-notified
	<-notified
	if running, last := look(s); running != "" || last.Err != nil {
		t.Errorf("action %q, attempt %+v", running, last)
	}
}

// A notified app that needs no action starts none, whose end would notify the next.
func TestAReconcileThatStartsNothingNotifiesTheNextQueuedApp(t *testing.T) {
	e, notified := unconnected(1)
	release := make(chan struct{})
	block := job{act: decide.Install, tenant: "acme", run: func(context.Context, *pool.Worker) result { <-release; return result{} }}
	var queued []types.NamespacedName
	for i := 0; len(queued) < 2; i++ {
		a := types.NamespacedName{Namespace: "team", Name: strconv.Itoa(i)}
		s := e.pool.Slot(a)
		s.Lock()
		err := e.start(t.Context(), s, a, block)
		s.Unlock()
		if errors.Is(err, pool.ErrQueued) {
			queued = append(queued, a)
		} else if err != nil {
			t.Fatal(err)
		}
	}
	release <- struct{}{}
	<-notified // the one that ended
	for _, next := range queued {
		if got := <-notified; got != next {
			t.Errorf("notified %s, want %s", got, next)
		}
		if _, err := e.Reconcile(t.Context(), Request{App: app, Tenant: "acme"}); err == nil {
			t.Fatal("an empty request was taken")
		}
	}
	close(release)
}

// TestTheActionsOfATenantShareItsWorkersAcrossNamespaces: a tenant gets no more workers by having more namespaces.
func TestTheActionsOfATenantShareItsWorkersAcrossNamespaces(t *testing.T) {
	e, notified := unconnected(4)
	began, release := make(chan struct{}, 4), make(chan struct{})
	for _, namespace := range []string{"acme-one", "acme-two", "acme-three", "acme-four"} {
		a := types.NamespacedName{Namespace: namespace, Name: "shop"}
		p := e.pass(e.pool.Slot(a), Request{App: a, Tenant: "acme"}, "d", "d")
		p.slot.Lock()
		_, err := p.start(t.Context(), job{act: decide.Install, trial: "d", run: func(context.Context, *pool.Worker) result {
			began <- struct{}{}
			<-release
			return result{}
		}})
		p.slot.Unlock()
		if err != nil {
			t.Fatal(err)
		}
	}
	<-began
	<-began
	other := types.NamespacedName{Namespace: "other", Name: "shop"}
	launchIn(t, e, other, func(context.Context, *pool.Worker) result { return result{} })
	if got := <-notified; got != other {
		t.Errorf("%s ended first, want %s", got, other)
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
