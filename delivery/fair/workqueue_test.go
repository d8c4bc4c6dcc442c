package fair

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
)

// series are the metrics of a resource, each with its value or count.
func series(t *testing.T, resource string) (out []string) {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(Collectors()...)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if len(m.GetLabel()) != 1 || m.GetLabel()[0].GetName() != "resource" {
				t.Errorf("%s has labels %v", f.GetName(), m.GetLabel())
			}
			if m.GetLabel()[0].GetValue() == resource {
				out = append(out, fmt.Sprint(f.GetName(), " ", m.GetGauge().GetValue()+float64(m.GetHistogram().GetSampleCount())))
			}
		}
	}
	return out
}

// queueFixture is a work queue whose time a test decides. The tenant of "a/1" is "a".
type queueFixture struct {
	*WorkQueue[string]
	t     *testing.T
	clock *clocktesting.FakeClock
}

func newQueueFixture(t *testing.T, b Bounds) *queueFixture {
	clock := clocktesting.NewFakeClock(time.Unix(1000, 0))
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[string](time.Second, time.Minute)
	q := NewWorkQueue("queueFixture", b, func(key string) string { tenant, _, _ := strings.Cut(key, "/"); return tenant }, limiter, clock)
	t.Cleanup(q.ShutDown)
	return &queueFixture{q, t, clock}
}

// wants gets exactly these, in this order, and nothing else.
func (b *queueFixture) wants(keys ...string) {
	b.t.Helper()
	for _, want := range keys {
		if got := b.get(); got != want {
			b.t.Fatalf("got %q, want %q", got, want)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if w, ok := b.queue.Next(b.admit); ok {
		b.t.Fatalf("got %q, too", w.key)
	}
}

// get is Get, and fails where that takes too long.
func (b *queueFixture) get() string {
	b.t.Helper()
	got := make(chan string, 1)
	go func() {
		key, _ := b.Get()
		got <- key
	}()
	select {
	case key := <-got:
		return key
	case <-time.After(30 * time.Second):
		b.t.Fatal("nothing is ready")
	}
	return ""
}

// ready waits until so many are ready.
func (b *queueFixture) ready(n int) {
	b.t.Helper()
	for begin := time.Now(); b.Len() != n; time.Sleep(time.Millisecond) {
		if time.Since(begin) > 30*time.Second {
			b.t.Fatalf("%d are ready, want %d", b.Len(), n)
		}
	}
}

func (b *queueFixture) add(keys ...string) {
	for _, key := range keys {
		b.Add(key)
	}
}

func TestATenantOfTenThousandObjectsDelaysNoOtherTenant(t *testing.T) {
	b := newQueueFixture(t, Bounds{Places: 4, PerTenant: 2})
	for i := range 10_000 {
		b.Add(fmt.Sprint("many/", i))
	}
	b.wants("many/0", "many/1")
	b.add("few/push")
	b.wants("few/push")
	b.add("other/push", "few/second")
	b.Done("many/0")
	b.wants("other/push")
	b.Done("few/push")
	b.wants("many/2", "few/second")
}

func TestAnObjectIsHeldOnce(t *testing.T) {
	b := newQueueFixture(t, Bounds{Places: 8})
	b.add("a/1", "a/1", "b/1", "a/1")
	b.wants("a/1", "b/1")
	b.add("a/1", "a/1") // While it is worked on.
	b.wants()
	b.Done("a/1")
	b.wants("a/1")
	b.Done("a/1")
	b.Done("a/1")
	b.wants()
	if b.shares.taken != 1 {
		t.Errorf("%d places are taken, want 1", b.shares.taken)
	}
}

func TestTheSoonerOfTwoDelaysCounts(t *testing.T) {
	b := newQueueFixture(t, Bounds{Places: 8})
	b.AddAfter("a/1", 10*time.Second)
	b.AddAfter("a/2", 5*time.Second)
	b.AddAfter("a/2", 7*time.Second) // The sooner counts.
	b.AddAfter("a/1", 8*time.Second)
	b.AddAfter("a/3", 0)
	b.wants("a/3")
	b.clock.Step(5 * time.Second)
	b.ready(1)
	b.wants("a/2")
	b.clock.Step(3 * time.Second)
	b.ready(1)
	b.wants("a/1")
	b.Done("a/1")
	b.clock.Step(time.Hour)
	b.wants()
}

// TestAnEventTakesTheDelayAway: an object that an event had looked at is not looked at again because it once was to be.
func TestAnEventTakesTheDelayAway(t *testing.T) {
	b := newQueueFixture(t, Bounds{Places: 8})
	b.AddAfter("a/1", time.Minute)
	b.Add("a/1")
	b.AddAfter("a/1", time.Second) // It is ready already.
	b.wants("a/1")
	b.Done("a/1")
	b.clock.Step(time.Hour)
	time.Sleep(5 * time.Millisecond)
	b.wants()
}

func TestADelayThatEndsWhileTheObjectIsWorkedOn(t *testing.T) {
	b := newQueueFixture(t, Bounds{Places: 8})
	b.Add("a/1")
	b.wants("a/1")
	b.AddAfter("a/1", time.Second)
	b.clock.Step(time.Second)
	for begin := time.Now(); ; time.Sleep(time.Millisecond) {
		b.mu.Lock()
		over := len(b.delayed) == 0
		b.mu.Unlock()
		if over {
			break
		}
		if time.Since(begin) > 30*time.Second {
			t.Fatal("the delay does not end")
		}
	}
	b.wants()
	b.Done("a/1")
	b.wants("a/1")
}

func TestFailuresAreDelayed(t *testing.T) {
	b := newQueueFixture(t, Bounds{Places: 8})
	for range 3 {
		b.AddRateLimited("a/1")
		b.Add("a/1")
		b.wants("a/1")
		b.Done("a/1")
	}
	if n := b.NumRequeues("a/1"); n != 3 {
		t.Errorf("%d failures, want 3", n)
	}
	b.AddRateLimited("a/1")
	b.clock.Step(7 * time.Second)
	time.Sleep(5 * time.Millisecond)
	b.wants()
	b.clock.Step(time.Second)
	b.ready(1)
	b.Forget("a/1")
	if n := b.NumRequeues("a/1"); n != 0 {
		t.Errorf("%d failures after they were forgotten, want 0", n)
	}
}

// TestTheShorterOfDelayAndBackoffDecides when an item that failed and has a delay is ready.
func TestTheShorterOfDelayAndBackoffDecides(t *testing.T) {
	for name, tc := range map[string]struct{ after, want time.Duration }{
		"a longer delay": {10 * time.Second, time.Second}, "a shorter one": {500 * time.Millisecond, 500 * time.Millisecond}, "none": {0, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			b := newQueueFixture(t, Bounds{Places: 8})
			b.AddWithOpts(priorityqueue.AddOpts{After: tc.after, RateLimited: true}, "a/1")
			b.clock.Step(tc.want - 1)
			time.Sleep(2 * time.Millisecond)
			b.wants()
			b.clock.Step(1)
			b.ready(1)
			b.wants("a/1")
		})
	}
}

func TestADelayThatEndsAfterTheShutDownMakesNothingReady(t *testing.T) {
	b := newQueueFixture(t, Bounds{Places: 8})
	b.AddAfter("a/1", time.Second)
	b.ShutDownWithDrain()
	if b.clock.HasWaiters() {
		t.Error("the timer is not stopped")
	}
	b.clock.Step(time.Second)
	b.due() // The timer may have rung just before.
	if _, end := b.Get(); !end || !b.ShuttingDown() || b.Len() != 0 {
		t.Errorf("%d are ready in a queue that was shut down", b.Len())
	}
}

func TestWaitsElsewhereAreMeasured(t *testing.T) {
	Waited("elsewhere", time.Second)
	Waited("elsewhere", time.Minute)
	if got := strings.Join(series(t, "elsewhere"), ", "); got != "kubeop_queue_wait_seconds 2" {
		t.Errorf("got %s", got)
	}
}

func TestPriorityIsWithinTheTenant(t *testing.T) {
	low := -100
	b := newQueueFixture(t, Bounds{Places: 20})
	b.AddWithOpts(priorityqueue.AddOpts{Priority: &low}, "a/1", "a/2", "a/3", "b/1")
	b.add("a/push", "a/2") // The higher priority counts.
	b.wants("a/push", "b/1", "a/2", "a/1", "a/3")
	b.Done("a/1")
	b.AddWithOpts(priorityqueue.AddOpts{Priority: &low, After: time.Second}, "a/1")
	b.Add("a/1")
	if _, priority, _ := b.GetWithPriority(); priority != 0 {
		t.Errorf("its priority is %d, want 0", priority)
	}
}

func TestShutDownEndsWhoWaits(t *testing.T) {
	b := newQueueFixture(t, Bounds{Places: 8})
	ended := make(chan bool)
	for range 3 {
		go func() { _, end := b.Get(); ended <- end }()
	}
	b.AddAfter("a/2", time.Second)
	b.ShutDown()
	for range 3 {
		if !<-ended {
			t.Error("it got something")
		}
	}
	b.Add("a/1")
	b.clock.Step(time.Minute)
	if _, end := b.Get(); !end || !b.ShuttingDown() || b.Len() != 0 {
		t.Errorf("an ended queue goes on: %d", b.Len())
	}
}

// TestNothingIsLost has workers take what others add at random: each object is worked on after it was last added, never twice at
// once, no tenant has more than its places, and nothing is left.
func TestNothingIsLost(t *testing.T) {
	const objects, tenants, perTenant = 60, 5, 3
	b := newQueueFixture(t, Bounds{Places: 8, PerTenant: perTenant})
	var mu sync.Mutex
	due, busy, of := map[string]bool{}, map[string]bool{}, map[string]int{}
	var workers, adders sync.WaitGroup
	for range 12 {
		workers.Go(func() {
			for {
				key, end := b.Get()
				if end {
					return
				}
				tenant, _, _ := strings.Cut(key, "/")
				mu.Lock()
				of[tenant]++
				if busy[key] || of[tenant] > perTenant {
					t.Errorf("%s is worked on: %t; %d of its tenant are", key, busy[key], of[tenant])
				}
				busy[key] = true
				delete(due, key)
				mu.Unlock()
				time.Sleep(10 * time.Microsecond)
				mu.Lock()
				delete(busy, key)
				of[tenant]--
				mu.Unlock()
				b.Done(key)
			}
		})
	}
	for i := range 4 {
		random := rand.New(rand.NewPCG(uint64(i), 7))
		adders.Go(func() {
			for range 2000 {
				n := random.IntN(objects)
				key, after := fmt.Sprint(n%tenants, "/", n), time.Duration(random.IntN(3))*time.Second
				mu.Lock()
				due[key] = true
				b.AddAfter(key, after)
				mu.Unlock()
				if random.IntN(50) == 0 {
					b.clock.Step(time.Second)
				}
			}
		})
	}
	adders.Wait()
	left := func() int { mu.Lock(); defer mu.Unlock(); return len(due) + len(busy) }
	for begin := time.Now(); left() > 0; time.Sleep(time.Millisecond) {
		b.clock.Step(time.Second)
		if time.Since(begin) > 30*time.Second {
			t.Fatalf("%d objects are left", left())
		}
	}
	b.ShutDown()
	workers.Wait()
	if b.shares.taken != 0 || len(b.shares.of)+len(b.busy)+len(b.known)+len(b.queue.tenants)+len(b.delayed) != 0 {
		t.Errorf("left are %d places, %v, %v, %d known, %d tenants", b.shares.taken, b.shares.of, b.busy, len(b.known), len(b.queue.tenants))
	}
}
