package cache

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/pool"
)

// begins asks once, and waits until the source is being fetched.
func (s *source) begins(q Query) {
	s.t.Helper()
	before := s.asked.Load()
	if _, err := s.Get(q, s.prepare); !errors.As(err, new(*Unanswered)) {
		s.t.Fatalf("got %v", err)
	}
	for s.asked.Load() == before {
		time.Sleep(time.Millisecond)
	}
}

func TestAFetchWithoutATimeoutEndsAfterFiveMinutes(t *testing.T) {
	s := newSource(t, recent)
	s.held = make(chan struct{})
	q := Query{Caller: caller("a"), Key: "a", Question: Question{MaxAge: time.Hour}}
	s.begins(q)
	s.clock.Step(defaultTimeout - 1)
	if _, err := s.Get(q, s.prepare); !errors.As(err, new(*Unanswered)) {
		t.Fatalf("before the timeout: %v", err)
	}
	s.clock.Step(1)
	<-s.woken
	if _, err := s.Get(q, s.prepare); !errors.Is(err, pool.ErrTimeout) || s.asked.Load() != 1 {
		t.Errorf("after it: %v, asked %d times", err, s.asked.Load())
	}
}

// TestAFailureServesThoseThatWouldWaitNoLonger: a fetch that timed out may succeed for a caller that allows more time. Any other failure
// serves all.
func TestAFailureServesThoseThatWouldWaitNoLonger(t *testing.T) {
	s := newSource(t, shared)
	s.held = make(chan struct{})
	query := func(name string, timeout time.Duration) Query {
		return Query{Caller: caller(name), Key: "a", Question: Question{MaxAge: time.Hour, Retry: time.Minute}, Timeout: timeout}
	}
	s.begins(query("a", 10*time.Second))
	s.clock.Step(10 * time.Second)
	<-s.woken
	for _, q := range []Query{query("a", 10*time.Second), query("a", 10*time.Second), query("b", 9*time.Second)} {
		if _, err := s.Get(q, s.prepare); !errors.Is(err, pool.ErrTimeout) {
			t.Errorf("%s, who waits %s: %v", q.Caller.Name, q.Timeout, err)
		}
	}
	s.held, s.err = nil, errors.New("away")
	if _, err := s.get(query("c", 11*time.Second)); err == nil || err.Error() != "away" || s.asked.Load() != 2 {
		t.Errorf("who waits longer: %v, asked %d times", err, s.asked.Load())
	}
	if _, err := s.get(query("d", time.Hour)); err == nil || err.Error() != "away" || s.asked.Load() != 2 {
		t.Errorf("after another failure: %v, asked %d times", err, s.asked.Load())
	}
}

func TestNothingToFetchIsNotCached(t *testing.T) {
	s := newSource(t, recent)
	q := Query{Caller: caller("a"), Key: "a", Question: Question{MaxAge: time.Hour}}
	nothing := 0
	for range 2 {
		got, err := s.Get(q, func() (Fetcher[int], error) { nothing++; return nil, nil })
		if got != 0 || err != nil {
			t.Errorf("got %d, %v", got, err)
		}
	}
	if _, _, known := s.Last("a"); known || nothing != 2 {
		t.Errorf("known: %v; it was looked for %d times, want 2", known, nothing)
	}
	if got, err := s.get(q); got != 1 || err != nil {
		t.Errorf("once there is something: %d, %v", got, err)
	}
}

// TestACallerJoinsAFetchThatBeganWhileItPrepared its own.
func TestACallerJoinsAFetchThatBeganWhileItPrepared(t *testing.T) {
	s := newSource(t, shared)
	s.held = make(chan struct{})
	query := func(name string) Query {
		return Query{Caller: caller(name), Key: "a", Cause: "push", Question: Question{MaxAge: time.Hour}}
	}
	_, err := s.Get(query("slow"), func() (Fetcher[int], error) {
		s.begins(query("fast"))
		s.clock.Step(time.Second)
		return s.prepare()
	})
	var unanswered *Unanswered
	if !errors.As(err, &unanswered) || !unanswered.Since.Equal(time.Unix(1000, 0)) {
		t.Errorf("got %v", err)
	}
	close(s.held)
	woken := map[types.NamespacedName]bool{<-s.woken: true, <-s.woken: true}
	if !woken[caller("slow")] || !woken[caller("fast")] {
		t.Errorf("woken are %v", woken)
	}
	for _, name := range []string{"slow", "fast"} {
		if got, err := s.Get(query(name), s.prepare); got != 1 || err != nil {
			t.Errorf("%s got %d, %v", name, got, err)
		}
	}
}

// TestCallersThatJoinedARefusedFetchAreWoken: the caller itself gets the error.
func TestCallersThatJoinedARefusedFetchAreWoken(t *testing.T) {
	s := newSource(t, shared)
	q := Query{Caller: caller("a"), Key: "a", Tenant: "acme", Question: Question{MaxAge: time.Hour}}
	r := &run{query: q, waiting: map[types.NamespacedName]waiter{caller("a"): {}, caller("b"): {}}}
	s.memory.of("a", q.Question).run = r
	err := s.notSubmitted("a", r, pool.ErrFull)
	if !errors.Is(err, failure.ErrBusy) || !strings.Contains(fmt.Sprint(err), "tenant acme") {
		t.Errorf("got %v", err)
	}
	if got := <-s.woken; got != caller("b") || len(s.woken) != 0 {
		t.Errorf("woken is %s, and %d more", got, len(s.woken))
	}
	if s.memory.known["a"].run != nil {
		t.Error("the refused fetch still counts as running")
	}
}

// TestOnlyFailuresOfTheSourceAreKept, not a full queue, and not the end of a fetch that nobody waits for.
func TestOnlyFailuresOfTheSourceAreKept(t *testing.T) {
	for name, err := range map[string]error{
		"a full queue": failure.New(failure.ErrBusy, "it waits its turn"), "a canceled fetch": fmt.Errorf("%w: no object waits for it any more", context.Canceled),
	} {
		t.Run(name, func(t *testing.T) {
			s := newSource(t, recent)
			q := Query{Caller: caller("a"), Key: "a", Question: Question{MaxAge: time.Hour}}
			if _, got := s.Get(q, func() (Fetcher[int], error) { return nil, err }); !errors.Is(got, err) {
				t.Errorf("got %v", got)
			}
			if until, kept := s.Failure("a"); kept != nil || !until.IsZero() {
				t.Errorf("kept until %s: %v", until, kept)
			}
			if got, err := s.get(q); got != 1 || err != nil {
				t.Errorf("the next query gets %d, %v", got, err)
			}
		})
	}
}

func TestFailureReturnsTheLastErrorAndTheNextTry(t *testing.T) {
	s := newSource(t, recent)
	q := Question{MaxAge: time.Hour, Retry: time.Minute}
	if until, err := s.Failure("a"); err != nil || !until.IsZero() {
		t.Errorf("of a source that nobody asked: %s, %v", until, err)
	}
	s.err = errors.New("away")
	_, _ = s.query("a", q)
	for range 2 {
		until, err := s.Failure("a")
		if err == nil || err.Error() != "away" || !until.Equal(time.Unix(1060, 0)) {
			t.Errorf("got %s, %v", until, err)
		}
	}
	s.err = nil
	s.clock.Step(time.Minute)
	_, _ = s.query("a", q)
	if until, err := s.Failure("a"); err != nil || !until.IsZero() {
		t.Errorf("after an answer: %s, %v", until, err)
	}
}

func TestAnAnswerFollowsOneOfTheSameSource(t *testing.T) {
	for name, tc := range map[string]struct {
		make    func(*pool.Pool, *clocktesting.FakeClock) *Answers[int]
		was, is int64
		want    bool
	}{
		"the same spec":                     {recent, 1, 1, true},
		"another spec":                      {recent, 1, 2, false},
		"another spec of a caller of many":  {shared, 1, 2, true},
		"the same spec of a caller of many": {shared, 1, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSource(t, tc.make)
			if got := s.Follows(Question{Generation: tc.was}, Question{Generation: tc.is}); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

// TestErrorsOfThePoolGetTheirKind, which decides the condition.
func TestErrorsOfThePoolGetTheirKind(t *testing.T) {
	other := errors.New("away")
	for name, tc := range map[string]struct{ err, want error }{
		"full": {pool.ErrFull, failure.ErrBusy}, "canceled": {pool.ErrCanceled, context.Canceled}, "open": {&pool.OpenError{Host: "h"}, failure.ErrUnavailable},
		"of the fetch": {other, other},
	} {
		if got := explained(tc.err, "acme"); !errors.Is(got, tc.want) {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

// TestForgettingARefusedFetchCancelsNothing: there is nothing to cancel yet, and the pool accepts nothing.
func TestForgettingARefusedFetchCancelsNothing(t *testing.T) {
	clock := &watchedClock{FakeClock: clocktesting.NewFakeClock(time.Unix(1000, 0)), read: func() {}}
	s := &source{t: t, clock: clock.FakeClock, woken: newWoken()}
	s.Answers = NewRecent[int](pool.New(pool.Options{Reach: pool.ReachOf}, clock), clock.FakeClock)
	s.Wake = func(caller types.NamespacedName) { s.woken <- caller }
	s.err = refusedBy("connection refused")
	for i := range 3 {
		_, _ = s.query(fmt.Sprint(i), Question{MaxAge: time.Hour}) // This opens the circuit breaker.
	}
	forgotten := make(chan struct{})
	clock.read = func() {
		clock.read = func() {}
		go func() {
			s.Forget("a")
			close(forgotten)
		}()
		for known := true; known; time.Sleep(time.Millisecond) {
			s.mu.Lock()
			_, known = s.memory.known["a"]
			s.mu.Unlock()
		}
	}
	if _, err := s.Get(Query{Caller: caller("a"), Key: "a", Host: "host:443", Question: Question{MaxAge: time.Hour}}, s.prepare); !errors.Is(err, failure.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
	<-forgotten
	if s.asked.Load() != 3 {
		t.Errorf("the source was asked %d times", s.asked.Load())
	}
}

// watchedClock calls read before it tells the time to a pool.
type watchedClock struct {
	*clocktesting.FakeClock
	read func()
}

// Now implements clock.Clock.
func (c *watchedClock) Now() time.Time {
	c.read()
	return c.FakeClock.Now()
}
