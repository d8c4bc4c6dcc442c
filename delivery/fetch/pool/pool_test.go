package pool

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	clocktesting "k8s.io/utils/clock/testing"
)

var (
	errSilent  = errors.New("silent")
	errRefused = errors.New("refused")
)

func reach(err error) Reach {
	switch {
	case errors.Is(err, errSilent):
		return Silent
	case errors.Is(err, errRefused):
		return Unconnected
	}
	return Answered
}

// fixture is a pool whose time and whose fetches a test decides.
type fixture struct {
	*Pool
	t     *testing.T
	clock *clocktesting.FakeClock

	mu    sync.Mutex
	began []string
	ended map[string]error
	open  map[string]chan error
}

func newFixture(t *testing.T, o Options) *fixture {
	t.Helper()
	o.Reach = reach
	b := &fixture{t: t, clock: clocktesting.NewFakeClock(time.Unix(1000, 0)), ended: map[string]error{}, open: map[string]chan error{}}
	b.Pool = New(o, b.clock)
	return b
}

// task is a fetch that goes on until the test ends it.
func (b *fixture) task(name, host, tenant string) Task {
	answer := make(chan error, 1)
	b.mu.Lock()
	b.open[name] = answer
	b.mu.Unlock()
	return Task{
		Source: name, Host: host, Tenant: tenant, Priority: App, Timeout: time.Hour,
		Run: func(ctx context.Context) error {
			b.mu.Lock()
			b.began = append(b.began, name)
			b.mu.Unlock()
			select {
			case err := <-answer:
				return err
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		},
		Done: func(err error) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.ended[name] = err
		},
	}
}

func (b *fixture) submit(t Task) (cancel func()) {
	b.t.Helper()
	cancel, err := b.Submit(t)
	if err != nil {
		b.t.Fatalf("submitting %s: %v", t.Source, err)
	}
	return cancel
}

// end has a fetch end, and waits until the pool knows.
func (b *fixture) end(name string, err error) {
	b.t.Helper()
	b.open[name] <- err
	_ = b.finished(name) // The error is the one given.
}

func (b *fixture) finished(name string) error {
	b.t.Helper()
	var err error
	b.eventually("the end of "+name, func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		var ended bool
		err, ended = b.ended[name]
		return ended
	})
	return err
}

func (b *fixture) eventually(what string, f func() bool) {
	b.t.Helper()
	for begin := time.Now(); !f(); time.Sleep(time.Millisecond) {
		if time.Since(begin) > 30*time.Second {
			b.t.Fatalf("waited for %s; begun are %v", what, b.began)
		}
	}
}

// wantBegun wants exactly these fetches to have begun, in any order.
func (b *fixture) wantBegun(names ...string) {
	b.t.Helper()
	slices.Sort(names)
	begun := func() []string {
		b.mu.Lock()
		defer b.mu.Unlock()
		return slices.Sorted(slices.Values(b.began))
	}
	b.eventually(fmt.Sprintf("%v to begin", names), func() bool { return len(begun()) >= len(names) })
	time.Sleep(2 * time.Millisecond)
	if got := begun(); !slices.Equal(got, names) {
		b.t.Fatalf("begun are %v, want %v", got, names)
	}
}

// prove has a host have answered.
func (b *fixture) prove(host, tenant string, priority Priority) {
	b.t.Helper()
	name := "prove " + host + tenant
	t := b.task(name, host, tenant)
	t.Priority = priority
	b.submit(t)
	b.end(name, nil)
	b.mu.Lock()
	b.began = slices.DeleteFunc(b.began, func(s string) bool { return s == name })
	b.mu.Unlock()
}

func asked(t Task) Task { t.Requested = true; return t }

func of(p Priority, t Task) Task { t.Priority = p; return t }

func TestUnprovenHostsNeverHoldUpProvenOnes(t *testing.T) {
	b := newFixture(t, Options{Slots: 1, Trials: 2, PerTenant: 10})
	b.prove("good", "acme", Repository)
	for i := range 5 {
		b.submit(of(Repository, b.task(fmt.Sprint("hangs", i), fmt.Sprint("bad", i), fmt.Sprint("t", i))))
	}
	b.wantBegun("hangs0", "hangs1")
	b.submit(of(Repository, b.task("push", "good", "acme")))
	b.wantBegun("hangs0", "hangs1", "push")
}

func TestAProvenHostThatHangsGivesItsSlotBack(t *testing.T) {
	b := newFixture(t, Options{Slots: 1, Trials: 1, Slow: time.Second})
	b.prove("good", "acme", Repository)
	b.prove("turns bad", "other", Repository)
	b.submit(of(Repository, b.task("hangs", "turns bad", "other")))
	b.wantBegun("hangs")
	b.submit(of(Repository, b.task("push", "good", "acme")))
	b.wantBegun("hangs")
	b.clock.Step(time.Second)
	b.wantBegun("hangs", "push")
}

func TestTenantsTakeTurns(t *testing.T) {
	b := newFixture(t, Options{Trials: 4, PerTenant: 1, PerHost: 100})
	for i := range 3 {
		b.submit(b.task(fmt.Sprint("many", i), "host", "many"))
	}
	b.wantBegun("many0")
	b.submit(b.task("few", "host", "few")) // All of apps' trials is one: it waits.
	b.end("many0", nil)
	b.wantBegun("many0", "many1", "few")
}

func TestOneTenantThatNamesManyHosts(t *testing.T) {
	b := newFixture(t, Options{PerTenant: 2, Waiting: 5})
	for i := range 7 {
		b.submit(b.task(fmt.Sprint("m", i), fmt.Sprint("host", i), "mallory"))
	}
	b.wantBegun("m0", "m1")
	if _, err := b.Submit(b.task("m8", "host8", "mallory")); !errors.Is(err, ErrFull) {
		t.Errorf("more may wait than should: %v", err)
	}
	b.submit(b.task("a", "good", "acme"))
	b.wantBegun("m0", "m1", "a")
}

// TestARefusedTaskMayTryAgain has tasks be refused because too many wait, and wants them retried one by one when there is room.
func TestARefusedTaskMayTryAgain(t *testing.T) {
	b := newFixture(t, Options{PerTenant: 1, Waiting: 1})
	b.submit(b.task("runs", "host", "mallory"))
	canceled := b.submit(b.task("waits", "host", "mallory"))
	retried := make(chan string, 10)
	refuse := func(name, tenant string) {
		t.Helper()
		task := b.task(name, "host", tenant)
		task.Retry = func() { retried <- name }
		if _, err := b.Submit(task); !errors.Is(err, ErrFull) {
			t.Fatalf("submitting %s: %v", name, err)
		}
	}
	for _, name := range []string{"first", "second", "first", "third"} {
		refuse(name, "mallory")
	}
	canceled()
	if got := <-retried; got != "first" || len(retried) != 0 {
		t.Errorf("retried %s and %d more for one place", got, len(retried))
	}
	b.submit(b.task("first again", "host", "mallory"))
	b.end("runs", nil)
	b.wantBegun("runs", "first again")
	if got := <-retried; got != "second" || len(retried) != 0 {
		t.Errorf("retried %s and %d more for one place", got, len(retried))
	}
	b.end("first again", nil)
	if len(retried) != 0 || len(b.full) != 1 {
		t.Errorf("retried %d when nothing began; %d tenants are remembered", len(retried), len(b.full))
	}
	b.submit(b.task("second again", "host", "mallory"))
	if got := <-retried; got != "third" || len(b.full) != 0 {
		t.Errorf("retried %s; %d tenants are remembered", got, len(b.full))
	}
}

func TestAHostHasALimitedNumberOfSlots(t *testing.T) {
	b := newFixture(t, Options{PerHost: 2})
	for i := range 3 {
		b.submit(of(Repository, b.task(fmt.Sprint("r", i), "host", fmt.Sprint(i))))
	}
	b.submit(of(Repository, b.task("elsewhere", "other", "x")))
	b.wantBegun("r0", "r1", "elsewhere")
	b.submit(of(Platform, b.task("platform", "host", "platform")))
	b.wantBegun("r0", "r1", "elsewhere", "platform")
	b.end("platform", nil)
	b.end("r0", nil)
	b.wantBegun("r0", "r1", "elsewhere", "platform", "r2")
}

func TestTasksRunByPriority(t *testing.T) {
	b := newFixture(t, Options{Trials: 1, PerHost: 100})
	b.submit(of(Repository, b.task("first", "host0", "x")))
	b.wantBegun("first")
	waiting := []Task{
		b.task("app looks", "host1", "a"), of(Repository, b.task("repository looks", "host2", "b")),
		asked(b.task("app asks", "host3", "c")), asked(of(Repository, b.task("repository asks", "host4", "d"))),
		of(Platform, b.task("platform", "host5", "p1")), of(Platform, b.task("platform again", "host6", "p2")),
	}
	for _, w := range waiting {
		b.submit(w)
	}
	order := []string{"first", "platform"} // The platform has a slot of its own.
	b.wantBegun(order...)
	b.end("platform", nil)
	order = append(order, "platform again")
	b.wantBegun(order...)
	last := "first"
	for _, name := range []string{"repository asks", "app asks", "repository looks", "app looks"} {
		b.end(last, nil)
		order, last = append(order, name), name
		b.wantBegun(order...)
	}
}

func TestAppsLeaveSlotsToRepositories(t *testing.T) {
	b := newFixture(t, Options{Trials: 8, Slots: 4, PerTenant: 100, PerHost: 100})
	for i := range 8 {
		b.submit(b.task(fmt.Sprint("a", i), fmt.Sprint("host", i), "acme"))
	}
	b.wantBegun("a0", "a1")
	b.submit(of(Repository, b.task("r", "new", "r")))
	b.wantBegun("a0", "a1", "r")
}

func TestTheBreakerOpensAfterRepeatedFailures(t *testing.T) {
	b := newFixture(t, Options{})
	fail := func(name string, err error) {
		t.Helper()
		b.submit(b.task(name, "bad", "acme"))
		b.end(name, err)
	}
	for i := range tries {
		fail(fmt.Sprint("f", i), errRefused)
	}
	var open *OpenError
	refused := func(task Task) bool {
		t.Helper()
		_, err := b.Submit(task)
		return errors.As(err, &open)
	}
	b.clock.Step(time.Second)
	if !refused(b.task("no", "bad", "acme")) || open.Rest != firstRest-time.Second {
		t.Fatalf("the breaker is closed, or open for another time: %+v", open)
	}
	if refused(b.task("other", "bad", "another tenant")) {
		t.Error("what one tenant's apps met holds for another")
	}
	b.clock.Step(firstRest)
	b.submit(b.task("probe", "bad", "acme"))
	b.submit(b.task("waits", "bad", "acme"))
	b.end("probe", errRefused)
	if err := b.finished("waits"); !errors.As(err, &open) {
		t.Errorf("what waited for the probe got %v", err)
	}
	b.clock.Step(firstRest)
	if !refused(b.task("no2", "bad", "acme")) {
		t.Error("the second rest is no longer than the first")
	}
	b.submit(asked(b.task("push", "bad", "acme"))) // Somebody asks: it is tried though the rest is not over.
	b.end("push", nil)
	b.submit(b.task("again", "bad", "acme"))
	b.end("again", nil)
	if state := b.hosts["tenant acme"]["bad"].state(); state != Closed {
		t.Errorf("the breaker is %s after an answer, want %s", state, Closed)
	}
}

func TestOneSourceWithoutAnswerDoesNotOpenTheBreaker(t *testing.T) {
	b := newFixture(t, Options{})
	for i := range 2 * tries {
		name := fmt.Sprint("same", i)
		task := b.task(name, "host", "acme")
		task.Source = "same"
		b.submit(task)
		b.end(name, errSilent)
	}
	b.submit(b.task("another", "host", "acme"))
	b.end("another", errSilent)
	b.submit(b.task("third", "host", "acme"))
	b.end("third", errSilent)
	if _, err := b.Submit(b.task("fourth", "host", "acme")); err == nil {
		t.Error("three sources got no answer, and the host is asked on")
	}
}

func TestAFailureBeforeALaterAnswerDoesNotCount(t *testing.T) {
	b := newFixture(t, Options{PerTenant: 10})
	for i := range tries {
		b.submit(b.task(fmt.Sprint("hangs", i), "host", "acme"))
	}
	b.clock.Step(time.Second)
	b.prove("host", "acme", App)
	for i := range tries {
		b.end(fmt.Sprint("hangs", i), errSilent)
	}
	b.submit(b.task("next", "host", "acme"))
	b.end("next", nil)
}

func TestACanceledTaskEnds(t *testing.T) {
	b := newFixture(t, Options{PerTenant: 1})
	running := b.submit(b.task("running", "host", "acme"))
	waiting := b.submit(b.task("waiting", "host", "acme"))
	b.wantBegun("running")
	waiting()
	running()
	for _, name := range []string{"running", "waiting"} {
		if err := b.finished(name); !errors.Is(err, ErrCanceled) {
			t.Errorf("%s ended with %v", name, err)
		}
	}
	b.submit(b.task("next", "host", "acme"))
	b.wantBegun("running", "next")
}

func TestATaskEndsAtItsTimeout(t *testing.T) {
	b := newFixture(t, Options{})
	task := b.task("slow", "host", "acme")
	task.Timeout = time.Minute
	b.submit(task)
	b.wantBegun("slow")
	b.clock.Step(time.Minute)
	if err := b.finished("slow"); !errors.Is(err, ErrTimeout) {
		t.Errorf("it ended with %v", err)
	}
}

func TestStopCancelsRunningTasks(t *testing.T) {
	b := newFixture(t, Options{})
	b.submit(b.task("running", "host", "acme"))
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := b.Start(ctx); err != nil {
		t.Fatal(err)
	}
	if err := b.finished("running"); !errors.Is(err, ErrCanceled) {
		t.Errorf("it ended with %v", err)
	}
	if _, err := b.Submit(b.task("late", "host", "acme")); !errors.Is(err, ErrCanceled) {
		t.Errorf("a stopped pool takes a task: %v", err)
	}
}

func TestTheHostsRememberedForATenantAreBounded(t *testing.T) {
	b := newFixture(t, Options{})
	for i := range 2 * maxHosts {
		b.clock.Step(time.Second)
		b.prove(fmt.Sprint("host", i), "mallory", App)
	}
	if n := len(b.hosts["tenant mallory"]); n > maxHosts {
		t.Errorf("%d hosts are remembered for one tenant", n)
	}
}

// TestSourcesOfSeveralHostsAreNotRemembered: of what asks several hosts nobody knows which one gave no answer.
func TestSourcesOfSeveralHostsAreNotRemembered(t *testing.T) {
	b := newFixture(t, Options{})
	for i := range 10 * tries {
		name := fmt.Sprint("source", i)
		b.submit(b.task(name, "", "mallory"))
		b.end(name, errSilent)
	}
	b.Pool.mu.Lock()
	defer b.Pool.mu.Unlock()
	if h := b.hosts["tenant mallory"][""]; len(h.silent) > 0 || h.state() != Closed {
		t.Errorf("%d sources are remembered, and the breaker is %s", len(h.silent), h.state())
	}
}

func TestTenantsRememberedAreBounded(t *testing.T) {
	known := hosts{}
	busy := known.of(&Task{Priority: App, Tenant: "busy", Host: "a"})
	busy.running = 1
	shared := known.of(&Task{Priority: Repository, Host: "a"})
	for i := range maxGroups + 200 {
		known.of(&Task{Priority: App, Tenant: fmt.Sprint(i), Host: "a"}).contacted = time.Unix(int64(i), 0)
	}
	if len(known) > maxGroups {
		t.Errorf("hosts of %d tenants are remembered", len(known))
	}
	if known.of(&Task{Priority: App, Tenant: "busy", Host: "a"}) != busy || known.of(&Task{Priority: Repository, Host: "a"}) != shared {
		t.Error("a host that is being asked, or those of Repositories, are forgotten")
	}
}

// TestEverySlotIsGivenBack runs fetches at random and looks at what is left.
func TestEverySlotIsGivenBack(t *testing.T) {
	p := New(Options{Slots: 4, Trials: 8, PerHost: 2, PerTenant: 3, Slow: time.Millisecond, Reach: reach}, clocktesting.NewFakeClock(time.Unix(0, 0)))
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	var all sync.WaitGroup
	for i := range 2000 {
		end := []error{nil, nil, nil, errSilent, errRefused, errors.New("an answer")}[random.IntN(6)]
		all.Add(1)
		cancel, err := p.Submit(Task{
			Source: fmt.Sprint(i), Host: fmt.Sprint(random.IntN(20)), Tenant: fmt.Sprint(random.IntN(10)), Priority: Priority(random.IntN(3)),
			Requested: random.IntN(2) == 0, Timeout: time.Hour, Run: func(context.Context) error { return end }, Done: func(error) { all.Done() },
		})
		if err != nil {
			all.Done()
			continue
		}
		if random.IntN(10) == 0 {
			cancel()
		}
	}
	all.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, l := range p.lanes {
		if l.taken != 0 || l.byApps != 0 {
			t.Errorf("lane %d: %+v", i, l)
		}
	}
	if len(p.running) != 0 || len(p.tenants) != 0 || len(p.queue.waiting) != 0 {
		t.Errorf("left are %d under way, %v, %v", len(p.running), p.tenants, p.queue.waiting)
	}
	for group, known := range p.hosts {
		for name, h := range known {
			if h.running != 0 || h.probing {
				t.Errorf("%s of %s: %+v", name, group, h)
			}
		}
	}
}

func TestMetricsHaveNoNamesOfHosts(t *testing.T) {
	b := newFixture(t, Options{})
	registry := prometheus.NewRegistry()
	registry.MustRegister(b)
	count := func() (series int) {
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			series += len(f.GetMetric())
		}
		return series
	}
	b.prove("first", "acme", App)
	before := count()
	for i := range 50 {
		b.prove(fmt.Sprint("host", i), fmt.Sprint("tenant", i), App)
	}
	if after := count(); after != before || before == 0 {
		t.Errorf("%d series became %d", before, after)
	}
}
