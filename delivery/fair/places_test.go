package fair

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

// fixture is a set of places, and who has one.
type fixture struct {
	*Places
	t      *testing.T
	began  []string
	leaves map[string]func()
}

func newFixture(t *testing.T, b Bounds) *fixture {
	return &fixture{Places: NewPlaces("test", b, clocktesting.NewFakePassiveClock(time.Unix(0, 0))), t: t, leaves: map[string]func(){}}
}

// ask has a tenant ask for a place under a name.
func (x *fixture) ask(tenant, name string) (cancel func() bool) {
	x.t.Helper()
	cancel, err := x.Begin(tenant, func(leave func()) {
		x.began = append(x.began, name)
		x.leaves[name] = leave
	})
	if err != nil {
		x.t.Fatalf("asking for %s: %v", name, err)
	}
	return cancel
}

func (x *fixture) want(names string) {
	x.t.Helper()
	if got := strings.Join(x.began, " "); got != names {
		x.t.Fatalf("began %q, want %q", got, names)
	}
}

func TestNoPlaceThatMayBeTakenStaysFree(t *testing.T) {
	x := newFixture(t, Bounds{Places: 6, PerTenant: 3})
	for i := range 5 {
		x.ask("a", fmt.Sprint("a", i))
	}
	x.want("a0 a1 a2") // Alone, it has all that it may at once,
	x.leaves["a1"]()
	x.want("a0 a1 a2 a3") // and the next begins with no pause.
	x.ask("b", "b0")
	x.ask("b", "b1")
	x.want("a0 a1 a2 a3 b0 b1")
}

func TestTenantsWithEndlessWorkLeavePlacesToOthers(t *testing.T) {
	for name, tt := range map[string]struct{ places, tenants, left int }{
		"one of eight":   {8, 1, 4},
		"two of eight":   {8, 2, 2},
		"three of eight": {8, 3, 1},
		"one of two":     {2, 1, 1},
		"the only place": {1, 1, 0},
		"three of four":  {4, 3, 0},
		"four of twenty": {20, 4, 1},
	} {
		t.Run(name, func(t *testing.T) {
			x := newFixture(t, Bounds{Places: tt.places})
			for i := range tt.tenants { // One after the other, each takes all that it can.
				for j := range 100 {
					x.ask(fmt.Sprint(i), fmt.Sprint(i, "/", j))
				}
			}
			if left := tt.places - x.Taken(); left != tt.left {
				t.Errorf("%d tenants leave %d of %d places, want %d", tt.tenants, left, tt.places, tt.left)
			}
		})
	}
}

func TestAWaitingTenantGetsTheNextFreePlace(t *testing.T) {
	x := newFixture(t, Bounds{Places: 2})
	for i := range 1000 {
		x.ask("many", fmt.Sprint("many", i))
	}
	x.ask("other", "other")
	x.ask("few", "few")
	x.want("many0 other")
	x.leaves["many0"]()
	x.leaves["other"]()
	x.want("many0 other many1 few")
}

func TestPlacesGoByWeight(t *testing.T) {
	x := newFixture(t, Bounds{Places: 100, PerTenant: 2, Weight: func(tenant string) int { return len(tenant) }})
	for i := range 10 {
		x.ask("a", fmt.Sprint("a", i))
		x.ask("bbb", fmt.Sprint("b", i))
	}
	if a, b := x.shares.of["a"], x.shares.of["bbb"]; a != 2 || b != 6 {
		t.Errorf("one of weight 1 has %d places, one of weight 3 has %d", a, b)
	}
}

func TestWaitingIsBounded(t *testing.T) {
	x := newFixture(t, Bounds{Places: 2, PerTenant: 1, Waiting: 2})
	for i := range 3 {
		x.ask("a", fmt.Sprint("a", i))
	}
	if _, err := x.Begin("a", func(func()) { t.Error("it began") }); !errors.Is(err, ErrFull) || !strings.Contains(err.Error(), "2") {
		t.Errorf("a third that waits: %v", err)
	}
	if _, err := x.Enter(t.Context(), "a"); !errors.Is(err, ErrFull) {
		t.Errorf("one that waits for it: %v", err)
	}
	x.ask("b", "b0")
	x.want("a0 b0")
}

func TestCanceledWorkLeavesItsPlaceOnce(t *testing.T) {
	x := newFixture(t, Bounds{Places: 1})
	began := x.ask("a", "a0")
	waits := x.ask("b", "b0")
	x.ask("c", "c0")
	if !waits() || waits() || began() {
		t.Error("what waited was not canceled once, or what began was")
	}
	x.leaves["a0"]()
	x.leaves["a0"]() // Twice gives no second place.
	x.want("a0 c0")
	if x.Taken() != 1 || x.Waiting() != 0 {
		t.Errorf("%d places are taken, %d wait", x.Taken(), x.Waiting())
	}
}

func TestEnterEndsWithItsContext(t *testing.T) {
	x := newFixture(t, Bounds{Places: 1})
	leave, err := x.Enter(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		_, err := x.Enter(ctx, "b")
		ended <- err
	}()
	for x.Waiting() == 0 {
		time.Sleep(time.Millisecond)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) || x.Waiting() != 0 {
		t.Errorf("got %v, %d wait", err, x.Waiting())
	}
	if _, err := x.Enter(ctx, "c"); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that has ended: %v", err)
	}
	leave()
	if x.Taken() != 0 {
		t.Errorf("%d places are taken, want 0", x.Taken())
	}
}

// TestEveryPlaceIsGivenBack has goroutines of several tenants enter and leave at random, and some give up.
func TestEveryPlaceIsGivenBack(t *testing.T) {
	p := NewPlaces("test", Bounds{Places: 5, PerTenant: 3}, clocktesting.NewFakePassiveClock(time.Unix(0, 0)))
	var all sync.WaitGroup
	var now, most atomic.Int32
	for i := range 40 {
		random := rand.New(rand.NewPCG(uint64(i), 1))
		tenant := fmt.Sprint(random.IntN(6))
		all.Go(func() {
			for range 200 {
				ctx, cancel := context.WithCancel(t.Context())
				if random.IntN(4) == 0 {
					go cancel()
				}
				leave, err := p.Enter(ctx, tenant)
				if err == nil {
					most.Store(max(most.Load(), now.Add(1)))
					now.Add(-1)
					leave()
				}
				cancel()
			}
		})
	}
	all.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	if most.Load() > 5 || p.shares.taken != 0 || len(p.shares.of) != 0 || p.queue.Len() != 0 || len(p.queue.tenants) != 0 {
		t.Errorf("%d at once; left are %d taken, %v, %d waiting, %d tenants", most.Load(), p.shares.taken, p.shares.of, p.queue.Len(), len(p.queue.tenants))
	}
}

func TestSeriesAreNamedByResourceOnly(t *testing.T) {
	x := newFixture(t, Bounds{Places: 1})
	for i := range 100 {
		x.ask(fmt.Sprint("tenant", i), fmt.Sprint(i))
	}
	got := series(t, "test")
	slices.Sort(got)
	want := []string{"kubeop_queue_running 1", "kubeop_queue_wait_seconds 1", "kubeop_queue_waiting 99"}
	for i := range got {
		if i > 0 && strings.HasPrefix(got[i], "kubeop_queue_wait_seconds") {
			got[i] = "kubeop_queue_wait_seconds 1" // Other tests wait, too.
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
