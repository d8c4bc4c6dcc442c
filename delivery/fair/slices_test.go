package fair

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
)

const testSlice = 250 * time.Millisecond

// runs are a set of places in virtual time, and those that run in it.
type runs struct {
	*Slices
	t    *testing.T
	all  sync.WaitGroup
	most atomic.Int32
	now  atomic.Int32
}

func newRuns(t *testing.T, places int) *runs {
	return &runs{Slices: NewSlices("slices", places, testSlice, nil, clock.RealClock{}), t: t}
}

// work takes so long, and ends when it is stopped.
func (b *runs) work(d time.Duration) func(context.Context) error {
	return func(ctx context.Context) error {
		b.most.Store(max(b.most.Load(), b.now.Add(1)))
		defer b.now.Add(-1)
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// start runs work beside the test. It returns a function that returns how long the work took, 0 while it runs.
func (b *runs) start(tenant string, d time.Duration) (took func() time.Duration) {
	var after atomic.Int64
	begun := time.Now()
	b.all.Go(func() {
		if err := b.Run(b.t.Context(), tenant, b.work(d)); err != nil {
			b.t.Errorf("%s: %v", tenant, err)
		}
		after.Store(int64(time.Since(begun)))
	})
	synctest.Wait()
	return func() time.Duration { return time.Duration(after.Load()) }
}

// over checks that nothing is left.
func (b *runs) over(places int) {
	b.t.Helper()
	b.all.Wait()
	if b.fresh.Len()+b.long.Len()+len(b.running) > 0 || b.timer != nil || int(b.most.Load()) > places {
		b.t.Errorf("%d and %d wait, %d run, timer %v; %d ran at once", b.fresh.Len(), b.long.Len(), len(b.running), b.timer, b.most.Load())
	}
}

func TestANewTenantWaitsAtMostASliceOfEachOther(t *testing.T) {
	for name, tt := range map[string]struct {
		places, attackers int
		most              time.Duration
	}{
		"one tenant of long work": {2, 1, testSlice},
		"three tenants":           {2, 3, 3 * testSlice},
		"three, eight places":     {8, 3, testSlice},
		"one place":               {1, 1, 10*time.Second + testSlice},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newRuns(t, tt.places)
				for i := range tt.attackers {
					for range 20 {
						b.start(fmt.Sprint("attacker", i), 10*time.Second)
					}
				}
				time.Sleep(15 * time.Second)
				for range 10 {
					took := b.start("beta", 20*time.Millisecond)
					time.Sleep(tt.most + 20*time.Millisecond)
					synctest.Wait()
					if d := took(); d == 0 || d > tt.most+20*time.Millisecond {
						t.Errorf("beta's waited for %s, or has not ended", d)
					}
				}
				b.over(tt.places)
			})
		})
	}
}

// TestARunHasItsWholeSlice: another one that comes just before its end does not shorten it.
func TestARunHasItsWholeSlice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newRuns(t, 1)
		first := b.start("alpha", testSlice)
		time.Sleep(testSlice - time.Nanosecond)
		b.start("beta", time.Millisecond)
		b.all.Wait()
		if d := first(); d != testSlice {
			t.Errorf("it took %s, want %s", d, testSlice)
		}
		b.over(1)
	})
}

func TestOneTenantMayHaveAllPlacesWhileNoOtherWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newRuns(t, 2)
		first, second := b.start("alpha", 10*time.Second), b.start("alpha", 10*time.Second)
		b.over(2)
		if first() != 10*time.Second || second() != 10*time.Second {
			t.Errorf("they took %s and %s: one waited, or began anew", first(), second())
		}
	})
}

// TestLongWorkFinishes: a run of two seconds ends though there is never a moment without others that have not run yet.
func TestLongWorkFinishes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newRuns(t, 2)
		ctx, stop := context.WithCancel(t.Context())
		for i := range 30 {
			b.all.Go(func() {
				for ctx.Err() == nil {
					_ = b.Run(t.Context(), fmt.Sprint("alpha", i%3), b.work(100*time.Millisecond))
				}
			})
		}
		synctest.Wait()
		took := b.start("beta", 2*time.Second)
		time.Sleep(10 * time.Second)
		if d := took(); d == 0 || d > 4*time.Second {
			t.Errorf("it took %s, or has not ended", d)
		}
		stop()
		b.over(2)
	})
}

// TestAPlaceIsNotKeptFreeForOthers: what was ended goes on in any place while nothing else waits, and is not ended again once it may
// stay.
func TestAPlaceIsNotKeptFreeForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newRuns(t, 2)
		first, second := b.start("alpha", 4*time.Second), b.start("alpha", 4*time.Second)
		time.Sleep(time.Second)
		b.start("beta", 10*time.Millisecond) // ends one of them, which begins anew, and stays
		time.Sleep(time.Second)
		b.start("beta", 10*time.Millisecond) // ends the other one, which begins anew and may be ended again
		b.over(2)
		if a, z := first(), second(); max(a, z) > 6*time.Second+100*time.Millisecond || min(a, z) > 5*time.Second+100*time.Millisecond {
			t.Errorf("they took %s and %s", a, z)
		}
	})
}

func TestRunEndsWithItsContextOrItsError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newRuns(t, 1)
		broken, newer := errors.New("broken"), errors.New("a newer commit")
		if err := b.Run(t.Context(), "a", func(context.Context) error { return broken }); !errors.Is(err, broken) {
			t.Errorf("got %v", err)
		}
		b.start("a", time.Minute)
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(newer) })
		if err := b.Run(ctx, "b", b.work(time.Second)); !errors.Is(err, newer) { // while it waits
			t.Errorf("got %v", err)
		}
		if err := b.Run(ctx, "b", b.work(time.Second)); !errors.Is(err, newer) { // before
			t.Errorf("got %v", err)
		}
		b.all.Wait()
		ctx, cancel = context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(newer) })
		if err := b.Run(ctx, "b", b.work(time.Minute)); !errors.Is(err, newer) { // while it runs
			t.Errorf("got %v", err)
		}
		b.over(1)
	})
}

// TestTheErrorOfAPreemptedRunDoesNotCount: whatever it says, it was about to begin anew.
func TestTheErrorOfAPreemptedRunDoesNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newRuns(t, 1)
		tries := 0
		b.all.Go(func() {
			err := b.Run(t.Context(), "a", func(ctx context.Context) error {
				if tries++; tries == 1 {
					<-ctx.Done()
					return errors.New("a lookup was interrupted")
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		b.start("b", time.Millisecond)
		b.over(1)
		if tries != 2 {
			t.Errorf("%d tries, want 2", tries)
		}
	})
}

// TestEverySliceIsGivenBack has runs of all lengths come and give up at random.
func TestEverySliceIsGivenBack(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			places := 1 + random.IntN(4)
			b := newRuns(t, places)
			for range 200 {
				tenant, d := fmt.Sprint(random.IntN(5)), time.Duration(random.IntN(1000))*time.Millisecond
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+random.IntN(20000))*time.Millisecond)
				b.all.Go(func() {
					defer cancel()
					_ = b.Run(ctx, tenant, b.work(d))
				})
				time.Sleep(time.Duration(random.IntN(300)) * time.Millisecond)
			}
			b.over(places)
		})
	}
}

// TestABusyMachineEndsNoRunBeforeItsSlice: where runs say what they use, none ends before it used a slice, or ran for four.
func TestABusyMachineEndsNoRunBeforeItsSlice(t *testing.T) {
	for name, tt := range map[string]struct {
		// speed is how much of the time it has a processor.
		speed float64
		after time.Duration
	}{
		"a processor of its own":     {1, testSlice},
		"half of one":                {0.5, 2 * testSlice},
		"hardly any":                 {0.01, stretch * testSlice},
		"it waits, and uses nothing": {0, stretch * testSlice},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newRuns(t, 1)
				var ended time.Duration
				b.all.Go(func() {
					began, work := time.Now(), b.work(10*time.Second)
					_ = b.Run(t.Context(), "alpha", func(ctx context.Context) error {
						at := time.Now()
						Uses(ctx, func() time.Duration { return time.Duration(tt.speed * float64(time.Since(at))) })
						err := work(ctx)
						if err != nil && ended == 0 {
							ended = time.Since(began)
						}
						return err
					})
				})
				synctest.Wait()
				b.start("beta", time.Millisecond)
				b.over(1)
				if late := ended - tt.after; late < 0 || late > testSlice/looks {
					t.Errorf("it was ended after %s, want %s", ended, tt.after)
				}
			})
		})
	}
	Uses(t.Context(), nil) // elsewhere nothing
}

// TestTheContextOfARunEndsWithIt: what the work left running ends, too.
func TestTheContextOfARunEndsWithIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newRuns(t, 1)
		var left context.Context
		if err := b.Run(t.Context(), "a", func(ctx context.Context) error { left = ctx; return ctx.Err() }); err != nil {
			t.Fatal(err)
		}
		if !errors.Is(left.Err(), context.Canceled) || t.Context().Err() != nil {
			t.Errorf("after the run its context has %v, the caller's %v", left.Err(), t.Context().Err())
		}
		b.over(1)
	})
}

// TestWorkOfACallerThatGaveUpDoesNotBegin, though a place is free.
func TestWorkOfACallerThatGaveUpDoesNotBegin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, newer := newRuns(t, 1), errors.New("a newer commit")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(newer)
		err := b.Run(ctx, "a", func(context.Context) error { t.Error("it began"); return nil })
		if !errors.Is(err, newer) {
			t.Errorf("got %v, want %v", err, newer)
		}
		b.over(1)
	})
}

// TestMetricsOfSlicesCountWhatWaitsAndRuns, and how often something waited.
func TestMetricsOfSlicesCountWhatWaitsAndRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &runs{Slices: NewSlices("measured slices", 0, testSlice, nil, clock.RealClock{}), t: t} // There is at least one place.
		b.start("a", time.Second)
		b.start("a", time.Second)
		want := func(waited, wait, run int) {
			t.Helper()
			got := strings.Join(series(t, "measured slices"), ", ")
			if text := fmt.Sprintf("kubeop_queue_running %d, kubeop_queue_wait_seconds %d, kubeop_queue_waiting %d", run, waited, wait); got != text {
				t.Errorf("got %s, want %s", got, text)
			}
		}
		want(1, 1, 1)
		b.over(1)
		if got := len(series(t, "measured slices")); got != 3 {
			t.Errorf("%d metrics, want 3", got)
		}
	})
}

// TestATenantOfMoreWeightHasMoreTurns at slices.
func TestATenantOfMoreWeightHasMoreTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		weight := func(tenant string) int { return map[string]int{"heavy": 3, "light": 1}[tenant] }
		b := &runs{Slices: NewSlices("weighted slices", 1, testSlice, weight, clock.RealClock{}), t: t}
		var mu sync.Mutex
		turns := map[string]int{}
		b.start("another", 10*time.Millisecond)
		for range 9 {
			for tenant := range map[string]bool{"heavy": true, "light": true} {
				b.all.Go(func() {
					_ = b.Run(t.Context(), tenant, func(context.Context) error {
						mu.Lock()
						turns[tenant]++
						mu.Unlock()
						time.Sleep(10 * time.Millisecond)
						return nil
					})
				})
			}
		}
		time.Sleep(90 * time.Millisecond) // Eight turns have begun.
		synctest.Wait()
		mu.Lock()
		if turns["heavy"] < 5 || turns["light"] > 3 || turns["light"] == 0 {
			t.Errorf("the turns are %v", turns)
		}
		mu.Unlock()
		b.over(1)
	})
}
