package release

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
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
func launch(t *testing.T, e *Engine, name string, run func(context.Context) (bool, error)) *slot {
	t.Helper()
	return launchIn(t, e, types.NamespacedName{Namespace: "team", Name: name}, run)
}

func launchIn(t *testing.T, e *Engine, app types.NamespacedName, run func(context.Context) (bool, error)) *slot {
	t.Helper()
	s := e.slot(app)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := e.start(t.Context(), s, app, job{act: install, digest: "d", run: run}); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *slot) look() (act, attempt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.action, s.last
}

func TestAPanicIsAFailedAttempt(t *testing.T) {
	e, notified := pool(1)
	s := launch(t, e, "a", func(context.Context) (bool, error) { panic("nil chart") })
	<-notified
	running, last := s.look()
	if running != settled || last.err == nil || !strings.Contains(last.err.Error(), "nil chart") || last.unstored != 1 {
		t.Errorf("action %q, attempt %+v", running, last)
	}
}

func TestFailuresInARowAreCounted(t *testing.T) {
	e, notified := pool(1)
	no := errors.New("no")
	for want, run := range []func(context.Context) (bool, error){
		func(context.Context) (bool, error) { return false, nil },
		func(context.Context) (bool, error) { return false, no },
		func(context.Context) (bool, error) { return false, no },
	} {
		s := launch(t, e, "a", run)
		<-notified
		if _, last := s.look(); last.unstored != want || last.at != noon {
			t.Errorf("attempt %+v, want %d without a record", last, want)
		}
	}
	s := launch(t, e, "a", func(context.Context) (bool, error) { return true, no })
	<-notified
	if _, last := s.look(); last.unstored != 0 || last.err == nil {
		t.Errorf("attempt %+v: storage counts those that it knows", last)
	}
}

func TestWorkersAreBounded(t *testing.T) {
	e, notified := pool(2)
	var now, most atomic.Int32
	release := make(chan struct{})
	for i := range 6 {
		name := string(rune('a' + i))
		launchIn(t, e, types.NamespacedName{Namespace: "team-" + name, Name: name}, func(context.Context) (bool, error) {
			most.Store(max(most.Load(), now.Add(1)))
			<-release
			now.Add(-1)
			return false, nil
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

// TestStuckActionsLeaveWorkersToOthers has the actions of one namespace never end: at most half of the workers are theirs,
// those of another namespace run meanwhile, and what is queued runs when it can.
func TestStuckActionsLeaveWorkersToOthers(t *testing.T) {
	tests := map[string]struct{ workers, share int }{
		"half of four":            {4, 2},
		"half of five, rounded":   {5, 2},
		"one of two":              {2, 1},
		"one of three is not two": {3, 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			e, notified := pool(tt.workers)
			began, release := make(chan struct{}, 8), make(chan struct{})
			for i := range 8 {
				launch(t, e, string(rune('a'+i)), func(context.Context) (bool, error) {
					began <- struct{}{}
					<-release
					return true, nil
				})
			}
			for range tt.share {
				<-began
			}
			for _, other := range []string{"one", "two", "three"} {
				a := types.NamespacedName{Namespace: "other", Name: other}
				launchIn(t, e, a, func(context.Context) (bool, error) { return true, nil })
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

func TestTheOnlyWorkerServesEverybody(t *testing.T) {
	e, notified := pool(1)
	for _, namespace := range []string{"team", "other"} {
		a := types.NamespacedName{Namespace: namespace, Name: "shop"}
		launchIn(t, e, a, func(context.Context) (bool, error) { return true, nil })
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
	err := e.start(ctx, s, app, job{act: install, run: func(ctx context.Context) (bool, error) {
		<-began
		ended <- ctx.Err()
		return false, nil
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
	launch(t, e, "runs", func(context.Context) (bool, error) {
		close(began)
		<-release
		return true, nil
	})
	<-began
	never := func(context.Context) (bool, error) {
		t.Error("a queued action began while draining")
		return false, nil
	}
	queued := launch(t, e, "queued", never)
	other := launchIn(t, e, types.NamespacedName{Namespace: "other", Name: "queued"}, never)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := e.Drain(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v while an action runs", err)
	}
	queued.mu.Lock()
	err := e.start(t.Context(), queued, app, job{act: install})
	queued.mu.Unlock()
	if !errors.Is(err, ErrDraining) {
		t.Errorf("got %v, want ErrDraining", err)
	}
	close(release)
	if err := e.Drain(t.Context()); err != nil {
		t.Error(err)
	}
	for _, dropped := range []*slot{queued, other} {
		if running, _ := dropped.look(); running != settled {
			t.Errorf("the dropped action is still %s", running)
		}
	}
}
