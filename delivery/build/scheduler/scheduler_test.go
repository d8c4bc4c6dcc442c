package scheduler

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

// fixture is Builders whose builds end when a test says so.
type fixture struct {
	Builders[string]
	t *testing.T

	mu    sync.Mutex
	open  map[string]chan error
	woken map[string]int
}

func newFixture(t *testing.T) *fixture {
	b := &fixture{t: t, open: map[string]chan error{}, woken: map[string]int{}}
	t.Cleanup(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, end := range b.open {
			close(end)
		}
	})
	return b
}

// do asks for a build of "tenant/name", which goes on until end.
func (b *fixture) do(key, input string) (string, error) {
	b.t.Helper()
	tenant, _, _ := strings.Cut(key, "/")
	began := time.Now()
	made, err := b.Do(Task[string]{
		Key: key, Input: input, Tenant: tenant, Within: time.Hour,
		Run: func(context.Context) (string, error) {
			end := make(chan error)
			b.mu.Lock()
			b.open[key] = end
			b.mu.Unlock()
			return key + " of " + input, <-end
		},
		Wake: func() {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.woken[key]++
		},
	})
	if took := time.Since(began); took > 10*shortWait {
		b.t.Errorf("asking for %s took %s", key, took)
	}
	return made, err
}

func (b *fixture) wants(key, input string, want error) {
	b.t.Helper()
	if _, err := b.do(key, input); !errors.Is(err, want) {
		b.t.Fatalf("%s of %s: got %v, want %v", key, input, err, want)
	}
}

// end has a build end that has begun, or begins soon.
func (b *fixture) end(key string, err error) {
	b.t.Helper()
	var end chan error
	b.eventually(key+" began", func() bool {
		end = b.open[key]
		delete(b.open, key)
		return end != nil
	})
	end <- err
}

func (b *fixture) wokenFor(key string, n int) {
	b.t.Helper()
	b.eventually(key+" is woken", func() bool { return b.woken[key] >= n })
}

func (b *fixture) eventually(what string, is func() bool) {
	b.t.Helper()
	for begin := time.Now(); ; time.Sleep(time.Millisecond) {
		b.mu.Lock()
		done := is()
		b.mu.Unlock()
		if done {
			return
		}
		if time.Since(begin) > 30*time.Second {
			b.t.Fatalf("not within 30s: %s", what)
		}
	}
}

// isIdle checks that nothing is left of what was built.
func (b *fixture) isIdle() {
	b.t.Helper()
	b.eventually("all places are given back", func() bool { return b.places.Taken() == 0 })
	b.Builders.mu.Lock()
	defer b.Builders.mu.Unlock()
	if len(b.of) != 0 || b.places.Waiting() != 0 {
		b.t.Errorf("%d builds are remembered, %d wait", len(b.of), b.places.Waiting())
	}
}

func TestAShortBuildIsWaitedFor(t *testing.T) {
	b := newFixture(t)
	made, err := b.Do(Task[string]{Key: "a", Tenant: "a", Within: time.Hour, Run: func(context.Context) (string, error) { return "made", nil }})
	if made != "made" || err != nil {
		t.Errorf("got %q, %v", made, err)
	}
	no := errors.New("no")
	if _, err := b.Do(Task[string]{Key: "a", Tenant: "a", Within: time.Hour, Run: func(context.Context) (string, error) { return "", no }}); !errors.Is(err, no) {
		t.Errorf("got %v", err)
	}
	b.isIdle()
}

func TestALongBuildWakesItsCaller(t *testing.T) {
	b := newFixture(t)
	b.wants("a/1", "x", ErrUnfinished)
	b.wants("a/1", "x", ErrUnfinished)
	b.end("a/1", nil)
	b.wokenFor("a/1", 1)
	if made, err := b.do("a/1", "x"); made != "a/1 of x" || err != nil {
		t.Errorf("got %q, %v", made, err)
	}
	b.wants("a/1", "x", ErrUnfinished) // What was taken is not given twice.
	b.Forget("a/1")
	b.end("a/1", nil)
	b.isIdle()
}

func TestBuildsWaitForTheirTurn(t *testing.T) {
	b := newFixture(t)
	b.wants("a/1", "x", ErrUnfinished)
	b.wants("a/2", "x", ErrUnfinished)
	_, err := b.do("a/3", "x")
	if !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), "8 builds run at once, 2 of a tenant") {
		t.Fatalf("a third build of a tenant: %v", err)
	}
	b.wants("a/4", "x", ErrBusy)
	b.wants("b/1", "x", ErrUnfinished)
	b.Forget("a/4")
	b.end("a/1", nil)
	b.end("a/3", nil)
	b.wokenFor("a/3", 1)
	if made, err := b.do("a/3", "x"); made != "a/3 of x" || err != nil {
		t.Errorf("got %q, %v", made, err)
	}
	for _, key := range []string{"a/2", "b/1"} {
		b.Forget(key)
		b.end(key, nil)
	}
	b.Forget("a/1")
	b.isIdle()
}

func TestTheOutcomeOfAnotherInputIsDropped(t *testing.T) {
	b := newFixture(t)
	b.wants("a/1", "old", ErrUnfinished)
	_, err := b.do("a/1", "new")
	if !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), "an earlier version") {
		t.Fatalf("while the old one runs: %v", err)
	}
	b.end("a/1", nil)
	b.wokenFor("a/1", 1)
	b.wants("a/1", "new", ErrUnfinished)
	b.end("a/1", nil)
	b.wokenFor("a/1", 2)
	b.wants("a/1", "newest", ErrUnfinished) // One that has ended makes room at once,
	b.wants("a/2", "x", ErrUnfinished)
	b.wants("a/3", "old", ErrBusy)
	b.wants("a/3", "new", ErrBusy) // and so does one that has not begun.
	b.end("a/2", nil)
	b.end("a/3", nil)
	b.wokenFor("a/3", 1)
	if made, err := b.do("a/3", "new"); made != "a/3 of new" || err != nil {
		t.Errorf("got %q, %v", made, err)
	}
}

func TestABuildThatTakesTooLongIsEnded(t *testing.T) {
	b := newFixture(t)
	ended, release := make(chan struct{}), make(chan struct{})
	task := Task[string]{
		Key: "a", Tenant: "a", Within: 2 * shortWait, Wake: func() { close(ended) },
		Run: func(ctx context.Context) (string, error) {
			<-ctx.Done()
			<-release
			return "late", nil
		},
	}
	if _, err := b.Do(task); !errors.Is(err, ErrUnfinished) {
		t.Fatalf("got %v", err)
	}
	<-ended
	task.Wake = func() { t.Error("woken for a build that would be late again") }
	for range 2 {
		_, err := b.Do(task)
		if !errors.Is(err, ErrTimeout) || !strings.Contains(err.Error(), "spec.timeout") || !strings.Contains(err.Error(), "one of the tenant's 2 places") {
			t.Fatalf("got %v", err)
		}
	}
	if n := b.places.Taken(); n != 1 {
		t.Errorf("%d places are taken while it runs on, want 1", n)
	}
	close(release)
	b.isIdle()
}

// TestABuildThatEndsWithItsTimeFailsOnce: the caller learns once that it took too long.
func TestABuildThatEndsWithItsTimeFailsOnce(t *testing.T) {
	b := newFixture(t)
	woken := make(chan struct{})
	task := Task[string]{
		Key: "a", Tenant: "a", Within: 2 * shortWait, Wake: func() { close(woken) },
		Run: func(ctx context.Context) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		},
	}
	if _, err := b.Do(task); !errors.Is(err, ErrUnfinished) {
		t.Fatalf("got %v", err)
	}
	<-woken
	b.eventually("its place is given back", func() bool { return b.places.Taken() == 0 })
	_, err := b.Do(task)
	if !errors.Is(err, ErrTimeout) || !strings.Contains(err.Error(), "spec.timeout") || strings.Contains(err.Error(), "places") {
		t.Fatalf("got %v", err)
	}
	b.isIdle()
}

// TestEndlessBuildsOfSomeTenantsLeavePlaces has three tenants begin all they can.
func TestEndlessBuildsOfSomeTenantsLeavePlaces(t *testing.T) {
	b := newFixture(t)
	for i := range 10 {
		for _, tenant := range []string{"one", "two", "three"} {
			if _, err := b.do(fmt.Sprint(tenant, "/", i), "x"); !errors.Is(err, ErrUnfinished) && !errors.Is(err, ErrBusy) {
				t.Error(err)
			}
		}
	}
	if n := b.places.Taken(); n != 6 {
		t.Errorf("three tenants have %d places, want 6", n)
	}
	if _, err := b.Do(Task[string]{Key: "few", Tenant: "few", Within: time.Hour, Run: func(context.Context) (string, error) { return "", nil }}); err != nil {
		t.Errorf("a fourth tenant: %v", err)
	}
}

func TestABuildThatPanicsEndsWithoutItsText(t *testing.T) {
	b := newFixture(t)
	_, err := b.Do(Task[string]{Key: "a", Tenant: "a", Within: time.Hour, Run: func(context.Context) (string, error) { panic("hunter22") }})
	if err == nil || strings.Contains(err.Error(), "hunter22") {
		t.Errorf("got %v", err)
	}
	b.isIdle()
}
