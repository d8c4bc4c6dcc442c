package fence

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

const valid, duration = 12 * time.Second, 15 * time.Second

// newFence returns a fence that does not end the process.
func newFence(now func() Instant) *Fence { return New("home/lease", valid, now, func(error) {}) }

// clocks are a wall clock and a running clock that tests advance.
type clocks struct{ at Instant }

func newClocks() *clocks {
	return &clocks{at: Instant{Wall: time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC), Running: time.Hour}}
}

func (c *clocks) now() Instant { return c.at }

func (c *clocks) pass(wall, running time.Duration) {
	c.at.Wall, c.at.Running = c.at.Wall.Add(wall), c.at.Running+running
}

// record is the lease as the API server would keep it.
type record struct {
	resourcelock.Interface
	kept resourcelock.LeaderElectionRecord
	// before runs during a request. Its error is the request's.
	before func() error
	// asleep runs in the middle of a renewal, on its context.
	asleep func(context.Context)
	sent   int
}

func (*record) Identity() string { return "us" }
func (*record) Describe() string { return "home/lease" }

func (*record) RecordEvent(string) {}

func (r *record) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	kept := r.kept
	return &kept, []byte(fmt.Sprint(kept)), ctx.Err()
}

func (r *record) Create(ctx context.Context, next resourcelock.LeaderElectionRecord) error {
	return r.Update(ctx, next)
}

func (r *record) Update(ctx context.Context, next resourcelock.LeaderElectionRecord) error {
	r.sent++
	if r.asleep != nil && r.kept.HolderIdentity == "us" {
		r.asleep(ctx)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if r.before != nil {
		if err := r.before(); err != nil {
			return err
		}
	}
	r.kept = next
	return nil
}

func held(by string, term int) resourcelock.LeaderElectionRecord {
	return resourcelock.LeaderElectionRecord{HolderIdentity: by, LeaderTransitions: term}
}

func TestTheMorePessimisticClockCounts(t *testing.T) {
	cases := map[string]struct {
		wall, running time.Duration
		fenced        bool
	}{
		"just renewed":                      {},
		"within the lease":                  {wall: valid - 1, running: valid - 1},
		"at its end":                        {wall: valid, running: valid, fenced: true},
		"stopped, and woken long after":     {wall: time.Hour, running: time.Hour, fenced: true},
		"the machine was suspended":         {wall: time.Hour, running: time.Second, fenced: true},
		"the wall clock was set back":       {wall: -time.Hour, running: valid, fenced: true},
		"the same, but it is not over":      {wall: -time.Hour, running: valid - 1},
		"the wall clock was set far ahead":  {wall: time.Hour, running: time.Second, fenced: true},
		"the running clock began once more": {wall: valid, running: -time.Hour, fenced: true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			clocks := newClocks()
			f := newFence(clocks.now)
			if err := f.Lock(&record{}, duration).Create(t.Context(), held("us", 0)); err != nil {
				t.Fatal(err)
			}
			clocks.pass(c.wall, c.running)
			if err := f.Check(); errors.Is(err, ErrFenced) != c.fenced || !c.fenced && err != nil {
				t.Errorf("got %v, want fenced %t", err, c.fenced)
			}
		})
	}
}

// TestWritesAreRefusedBeforeTheElection: neither a start nor a try that did not succeed opens the fence.
func TestWritesAreRefusedBeforeTheElection(t *testing.T) {
	clocks := newClocks()
	f := newFence(clocks.now)
	if err := f.Check(); !errors.Is(err, ErrFenced) || err.Error() != "this operator does not hold the lease home/lease yet: another one leads" {
		t.Errorf("before the election: %v", err)
	}
	away := errors.New("away")
	lock := f.Lock(&record{before: func() error { return away }}, duration)
	if err := lock.Create(t.Context(), held("us", 0)); !errors.Is(err, away) || err.Error() != "away" {
		t.Errorf("creating the lease: %v", err)
	}
	if err := f.Check(); !errors.Is(err, ErrFenced) || err.Error() != "this operator does not hold the lease home/lease yet: another one leads" {
		t.Errorf("after a try that failed: %v", err)
	}
}

func TestARenewalCountsFromItsBeginning(t *testing.T) {
	clocks, kept := newClocks(), &record{}
	f := newFence(clocks.now)
	lock := f.Lock(kept, duration)
	if err := lock.Create(t.Context(), held("us", 0)); err != nil {
		t.Fatal(err)
	}
	clocks.pass(valid/2, valid/2)
	kept.before = func() error { clocks.pass(valid-1, valid-1); return nil }
	if err := lock.Update(t.Context(), held("us", 0)); err != nil {
		t.Fatal(err)
	}
	if err := f.Check(); err != nil {
		t.Errorf("right after a slow renewal: %v", err)
	}
	clocks.pass(1, 1)
	if err := f.Check(); !errors.Is(err, ErrFenced) || err.Error() != "this operator does not hold the lease home/lease any more: it last renewed the lease 12s ago and others may have taken over" {
		t.Errorf("the time that the slow renewal took was added to the lease: %v", err)
	}
	kept.before = nil
	if err := lock.Update(t.Context(), held("us", 0)); err != nil {
		t.Fatal(err)
	}
	if err := f.Check(); err != nil {
		t.Errorf("renewed late, but no other operator had the lease: %v", err)
	}
	clocks.pass(valid/2, valid/2)
	kept.before = func() error { return errors.New("away") }
	if err := lock.Update(t.Context(), held("us", 0)); err == nil {
		t.Fatal("the renewal did not fail")
	}
	clocks.pass(valid/2, valid/2)
	if err := f.Check(); !errors.Is(err, ErrFenced) || err.Error() != "this operator does not hold the lease home/lease for certain: its last renewal got no answer" {
		t.Errorf("a renewal that failed counted: %v", err)
	}
}

// TestAProcessLeadsOnlyOnce: a process does not lead again, because its unfinished work belongs to the first term.
func TestAProcessLeadsOnlyOnce(t *testing.T) {
	cases := map[string]struct {
		kept resourcelock.LeaderElectionRecord
		act  func(context.Context, resourcelock.Interface) error
	}{
		"the lease of one that released it": {kept: held("", 4), act: func(ctx context.Context, l resourcelock.Interface) error {
			return l.Update(ctx, held("us", 5))
		}},
		"a lease that was deleted": {act: func(ctx context.Context, l resourcelock.Interface) error {
			return l.Create(ctx, held("us", 0))
		}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			kept := &record{}
			f := newFence(newClocks().now)
			lock := f.Lock(kept, duration)
			if err := lock.Update(t.Context(), held("us", 3)); err != nil {
				t.Fatal(err)
			}
			kept.kept, kept.sent = c.kept, 0
			if _, _, err := lock.Get(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := c.act(t.Context(), lock); !errors.Is(err, ErrFenced) || kept.sent != 0 {
				t.Errorf("got %v after %d requests, want ErrFenced and none", err, kept.sent)
			}
		})
	}
}

func TestReleaseClosesTheFenceFirst(t *testing.T) {
	kept := &record{}
	f := newFence(newClocks().now)
	lock := f.Lock(kept, duration)
	if err := lock.Create(t.Context(), held("us", 0)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := lock.Get(t.Context()); err != nil {
		t.Fatal(err)
	}
	var during error
	kept.before = func() error { during = f.Check(); return nil }
	if err := lock.Update(t.Context(), held("", 0)); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(during, ErrFenced) {
		t.Errorf("a write during the release of the lease: %v", during)
	}
	if err := lock.Update(t.Context(), held("us", 0)); !errors.Is(err, ErrFenced) || err.Error() != "this operator does not hold the lease home/lease: it may not take the lease a second time" {
		t.Errorf("taking it again: %v", err)
	}
}

// TestAnothersLeaseIsNotReleased: client-go's election would release it if the process slept during a renewal.
func TestAnothersLeaseIsNotReleased(t *testing.T) {
	kept := &record{}
	f := newFence(newClocks().now)
	kept.asleep = func(ctx context.Context) {
		<-ctx.Done()
		kept.asleep, kept.kept = nil, held("them", 1)
	}
	lost := make(chan struct{})
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: f.Lock(kept, duration), LeaseDuration: time.Second, RenewDeadline: 100 * time.Millisecond, RetryPeriod: 20 * time.Millisecond, ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: func(context.Context) {}, OnStoppedLeading: func() { close(lost) }},
	})
	if err != nil {
		t.Fatal(err)
	}
	elector.Run(t.Context())
	<-lost
	if kept.kept != held("them", 1) {
		t.Errorf("the lease is %+v", kept.kept)
	}
	if err := f.Check(); !errors.Is(err, ErrFenced) || err.Error() != "this operator does not hold the lease home/lease any more: it gave the lease up" {
		t.Errorf("a write: %v", err)
	}
}

func TestSystemClockRuns(t *testing.T) {
	now := SystemClock()
	first := now()
	time.Sleep(2 * time.Millisecond)
	second := now()
	if second.Running-first.Running < 2*time.Millisecond || second.Wall.Sub(first.Wall) < time.Millisecond {
		t.Errorf("from %+v to %+v", first, second)
	}
	if second.Wall != second.Wall.Round(0) {
		t.Error("the wall clock carries the running one, and would be compared by it")
	}
}
