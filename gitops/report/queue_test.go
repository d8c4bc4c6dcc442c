package report

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/gitops/host"
)

// fixture is a queue with a clock of its own and servers that answer as the test says.
type fixture struct {
	*Queue
	t     *testing.T
	clock *clocktesting.FakeClock

	mu sync.Mutex
	// sent are the texts that a server accepted or refused, answers what it answers next, and done the results that the owners got.
	sent    []string
	answers map[string][]error
	done    []string
	// hung blocks the messages to a server until it is closed.
	hung map[string]chan struct{}
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	c := clocktesting.NewFakeClock(time.Unix(1_000_000, 0))
	return &fixture{Queue: NewQueue(c, nil), t: t, clock: c, answers: map[string][]error{}, hung: map[string]chan struct{}{}}
}

// put adds a message for acme, of which key is also the server unless it has one, as "key@server".
func (b *fixture) put(key, text string) bool { return b.putOf("acme", key, text) }

func (b *fixture) putOf(tenant, key, text string) bool {
	_, server, named := strings.Cut(key, "@")
	if !named {
		server = key
	}
	return b.Put(Message{
		Key: key, Kind: CommitStatus, Host: server, Tenant: tenant,
		Send: func(context.Context) error {
			b.mu.Lock()
			block := b.hung[server]
			b.mu.Unlock()
			if block != nil {
				<-block
			}
			b.mu.Lock()
			defer b.mu.Unlock()
			b.sent = append(b.sent, text)
			var err error
			if left := b.answers[server]; len(left) > 0 {
				err, b.answers[server] = left[0], left[1:]
			}
			return err
		},
		Done: func(err error) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.done = append(b.done, fmt.Sprint(text, ": ", err))
		},
	})
}

// after advances the clock and waits until exactly these texts were sent since the beginning.
func (b *fixture) after(d time.Duration, want ...string) {
	b.t.Helper()
	b.clock.Step(d)
	deadline := time.Now().Add(5 * time.Second)
	for {
		b.mu.Lock()
		got := slices.Clone(b.sent)
		b.mu.Unlock()
		if slices.Equal(got, want) {
			time.Sleep(20 * time.Millisecond) // Nothing else may follow.
			b.mu.Lock()
			defer b.mu.Unlock()
			if diff := cmp.Diff(want, b.sent); diff != "" {
				b.t.Fatalf("something else was sent: %s", diff)
			}
			return
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("sent are %q, want %q", got, want)
		}
		time.Sleep(time.Millisecond)
	}
}

func (b *fixture) count() int {
	b.Queue.mu.Lock()
	defer b.Queue.mu.Unlock()
	return len(b.entries)
}

func TestTheNewestMessageOfAKeyWins(t *testing.T) {
	b := newFixture(t)
	b.answers["a"] = []error{errors.New("down")}
	b.put("a", "one")
	b.after(0, "one")
	b.put("a", "two")
	b.put("a", "three")
	b.after(firstRetry-time.Millisecond, "one")
	b.after(time.Millisecond, "one", "three")
	if n := b.count(); n != 0 {
		t.Errorf("%d messages are left", n)
	}
}

// TestAMessageThatChangesWhileItIsSentIsSentAgain: the first attempt may have carried the old text.
func TestAMessageThatChangesWhileItIsSentIsSentAgain(t *testing.T) {
	b := newFixture(t)
	block := make(chan struct{})
	b.hung["a"] = block
	b.put("a", "one")
	b.after(0)
	for b.poolRuns() == 0 {
		time.Sleep(time.Millisecond)
	}
	b.put("a", "two")
	close(block)
	b.mu.Lock()
	delete(b.hung, "a")
	b.mu.Unlock()
	b.after(0, "one")
	b.after(gap, "one", "two")
}

func (b *fixture) poolRuns() int {
	b.Queue.mu.Lock()
	defer b.Queue.mu.Unlock()
	n := 0
	for _, e := range b.entries {
		if e.running {
			n++
		}
	}
	return n
}

func TestFailuresAreTriedAgainWithBackoff(t *testing.T) {
	b := newFixture(t)
	down := errors.New("down")
	b.answers["a"] = []error{down, down, down}
	b.put("a", "x")
	b.after(0, "x")
	b.after(firstRetry, "x", "x")
	b.after(firstRetry, "x", "x")
	b.after(firstRetry, "x", "x", "x")
	b.after(4*firstRetry, "x", "x", "x", "x")
	b.mu.Lock()
	defer b.mu.Unlock()
	if want := []string{"x: down", "x: down", "x: down", "x: <nil>"}; !cmp.Equal(b.done, want) {
		t.Errorf("the owner got %q, want %q", b.done, want)
	}
}

func TestRetryAfterIsRespected(t *testing.T) {
	b := newFixture(t)
	b.answers["a"] = []error{&host.RateLimitError{Host: "a", After: time.Minute}}
	b.put("1@a", "x")
	b.after(0, "x")
	b.put("2@a", "y") // The limit is of the tenant at the server, and not of the message.
	b.after(59*time.Second, "x")
	b.putOf("other", "3@a", "z")
	b.after(0, "x", "z")
	b.clock.Step(time.Second)
	b.clock.Step(gap)
	b.clock.Step(gap)
	deadline := time.Now().Add(5 * time.Second)
	for b.count() > 0 && time.Now().Before(deadline) {
		b.clock.Step(gap)
		time.Sleep(5 * time.Millisecond)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	slices.Sort(b.sent)
	if want := []string{"x", "x", "y", "z"}; !cmp.Equal(b.sent, want) {
		t.Errorf("sent are %q, want %q", b.sent, want)
	}
}

// TestMessagesOfATenantToAServerAreSpread: hosts limit the number of requests.
func TestMessagesOfATenantToAServerAreSpread(t *testing.T) {
	b := newFixture(t)
	b.put("1@a", "x")
	b.after(0, "x")
	b.put("2@a", "y")
	b.after(gap-time.Millisecond, "x")
	b.after(time.Millisecond, "x", "y")
}

// TestAServerThatHangsDelaysNoOther, and not the owner.
func TestAServerThatHangsDelaysNoOther(t *testing.T) {
	b := newFixture(t)
	block := make(chan struct{})
	defer close(block)
	b.hung["slow"] = block
	for i := range 100 {
		b.putOf(fmt.Sprint("tenant", i), fmt.Sprint(i, "@slow"), "never")
	}
	b.put("a", "x")
	b.after(0, "x")
}

func TestMemoryIsBounded(t *testing.T) {
	b := newFixture(t)
	b.answers["a"] = slices.Repeat([]error{errors.New("down")}, maxOfTenant)
	for i := range maxOfTenant {
		if !b.put(fmt.Sprint(i, "@a"), "x") {
			t.Fatalf("message %d found no room", i)
		}
	}
	if b.put("more@a", "x") {
		t.Error("a tenant has more messages than it may")
	}
	if !b.put("0@a", "newer") {
		t.Error("a newer message of the same key needs no room")
	}
	if !b.putOf("other", "1", "y") {
		t.Error("another tenant found no room")
	}
	b.Drop("0@a")
	if !b.put("more@a", "x") {
		t.Error("what was dropped still takes room")
	}
}

func TestHurryTriesAgainAtOnce(t *testing.T) {
	b := newFixture(t)
	b.answers["a"] = []error{failure.New(failure.ErrAuthentication, "no"), failure.New(failure.ErrAuthentication, "no")}
	b.put("r1 c1@a", "x")
	b.after(0, "x")
	b.after(firstRetry, "x", "x")
	b.Hurry("r2 ")
	b.after(gap, "x", "x")
	b.Hurry("r1 ")
	b.after(0, "x", "x", "x")
}

func TestDroppedMessagesAreNotTriedAgain(t *testing.T) {
	b := newFixture(t)
	b.answers["a"] = []error{errors.New("down")}
	b.put("r1 c1@a", "x")
	b.after(0, "x")
	b.DropAll("r1 ")
	b.after(time.Hour, "x")
}

// TestAMessageIsDroppedByItsWholeKey: the key of another may begin with it.
func TestAMessageIsDroppedByItsWholeKey(t *testing.T) {
	b := newFixture(t)
	b.put("r1 1", "one")
	b.put("r1 12", "twelve")
	b.Drop("r1 1")
	b.Drop("r1 2")
	b.after(0, "twelve")
	b.put("r1 1", "one")
	b.put("r1 12", "twelve again")
	b.put("r2 1", "another")
	b.DropAll("r1 ")
	b.after(gap, "twelve", "another")
}

func TestMetricsHaveHelpAndNoNamesOfTenants(t *testing.T) {
	b := newFixture(t)
	b.answers["a"] = []error{errors.New("down"), &host.RateLimitError{}}
	b.put("secret-name@a", "x")
	b.after(0, "x")
	b.after(firstRetry, "x", "x")
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(b.Queue); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		if f.GetHelp() == "" {
			t.Errorf("%s has no help", f.GetName())
		}
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
			}
			got[name] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	want := map[string]float64{
		"kubeop_report_attempts_total commit_status failed": 1, "kubeop_report_attempts_total commit_status limited": 1,
		"kubeop_report_duration_seconds commit_status": 2, "kubeop_report_waiting commit_status": 1,
		"kubeop_report_waiting notification": 0,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
