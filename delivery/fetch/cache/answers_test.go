package cache

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/pool"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
)

// source is what Answers ask in these tests: it counts, and answers with its count or with err.
type source struct {
	*Answers[int]
	t     *testing.T
	clock *clocktesting.FakeClock
	woken chan types.NamespacedName
	asked atomic.Int32
	err   error
	// held has the answers wait until it is closed.
	held chan struct{}
}

func newSource(t *testing.T, make func(*pool.Pool, *clocktesting.FakeClock) *Answers[int]) *source {
	clock := clocktesting.NewFakeClock(time.Unix(1000, 0))
	s := &source{t: t, clock: clock, woken: newWoken(), Answers: make(pool.New(pool.Options{Reach: pool.ReachOf}, clock), clock)}
	s.Wake = func(caller types.NamespacedName) { s.woken <- caller }
	return s
}

func newWoken() chan types.NamespacedName { return make(chan types.NamespacedName, 1000) }

func recent(p *pool.Pool, c *clocktesting.FakeClock) *Answers[int] { return NewRecent[int](p, c) }

func shared(p *pool.Pool, c *clocktesting.FakeClock) *Answers[int] { return NewShared[int](p, c) }

func (s *source) prepare() (Fetcher[int], error) {
	err, held := s.err, s.held
	return func(ctx context.Context) (int, error) {
		n := int(s.asked.Add(1))
		if held != nil {
			select {
			case <-held:
			case <-ctx.Done():
				return 0, context.Cause(ctx)
			}
		}
		return n, err
	}, nil
}

func caller(name string) types.NamespacedName { return types.NamespacedName{Name: name} }

// get asks as a Reconcile does: what is not answered at once is asked again when it wakes.
func (s *source) get(a Query) (int, error) {
	s.t.Helper()
	got, err := s.Get(a, s.prepare)
	for errors.As(err, new(*Unanswered)) {
		select {
		case <-s.woken:
		case <-time.After(30 * time.Second):
			s.t.Fatal("nobody was woken")
		}
		got, err = s.Get(a, s.prepare)
	}
	return got, err
}

func (s *source) query(key string, q Question) (int, error) {
	s.t.Helper()
	return s.get(Query{Key: key, Question: q, Host: "host:443"})
}

func TestAnAnswerIsKeptUntilItIsTooOld(t *testing.T) {
	s := newSource(t, recent)
	q := func(generation int64) Question { return Question{Generation: generation, MaxAge: time.Minute} }
	now := Question{Generation: 2, Request: "now", MaxAge: time.Minute}
	steps := []struct {
		name string
		do   func()
		key  string
		q    Question
		want int
	}{
		{"the first is asked", func() {}, "a", q(1), 1},
		{"a young answer serves", func() { s.clock.Step(59 * time.Second) }, "a", q(1), 1},
		{"another key is another matter", func() {}, "b", q(1), 2},
		{"another generation is asked", func() {}, "a", q(2), 3},
		{"a request is asked", func() {}, "a", now, 4},
		{"an old answer does not serve", func() { s.clock.Step(time.Minute) }, "a", now, 5},
		{"what is forgotten is asked", func() { s.Forget("a") }, "a", now, 6},
		{"an answer that is too old at once is seen once", func() {}, "a", Question{Generation: 3}, 7},
	}
	for _, step := range steps {
		step.do()
		if got, err := s.query(step.key, step.q); got != step.want || err != nil {
			t.Errorf("%s: got %d, %v, want %d", step.name, got, err, step.want)
		}
	}
}

// TestThePauseAfterAFailureDoubles has something ask every 100 ms, as events do, and looks at when the source is asked.
func TestThePauseAfterAFailureDoubles(t *testing.T) {
	const second = time.Second
	cases := map[string]struct {
		q     Question
		until time.Duration
		want  []time.Duration
	}{
		"the pause doubles":          {Question{MaxAge: time.Hour}, 40 * second, []time.Duration{0, 1 * second, 3 * second, 7 * second, 15 * second, 31 * second}},
		"five minutes are the most":  {Question{MaxAge: time.Hour}, 1200 * second, []time.Duration{0, 1 * second, 3 * second, 7 * second, 15 * second, 31 * second, 63 * second, 127 * second, 255 * second, 511 * second, 811 * second, 1111 * second}},
		"the interval is the most":   {Question{MaxAge: 3 * second}, 14 * second, []time.Duration{0, 1 * second, 3 * second, 6 * second, 9 * second, 12 * second}},
		"retryInterval takes over":   {Question{MaxAge: time.Hour, Retry: 10 * second}, 35 * second, []time.Duration{0, 10 * second, 20 * second, 30 * second}},
		"retryInterval and interval": {Question{MaxAge: 5 * second, Retry: time.Hour}, 11 * second, []time.Duration{0, 5 * second, 10 * second}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newSource(t, recent)
			var asked []time.Duration
			for at := time.Duration(0); at <= tc.until; at += 100 * time.Millisecond {
				s.clock.SetTime(time.Unix(1000, 0).Add(at))
				s.err = fmt.Errorf("away at %s", at)
				before := s.asked.Load()
				_, err := s.query("a", tc.q)
				if s.asked.Load() > before {
					asked = append(asked, at)
				}
				if want := fmt.Sprintf("away at %s", asked[len(asked)-1]); err == nil || err.Error() != want {
					t.Fatalf("at %s: got %v, want %s", at, err, want)
				}
			}
			if diff := cmp.Diff(tc.want, asked); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestANewQuestionEndsThePauseAfterAFailure(t *testing.T) {
	q := Question{Generation: 1, MaxAge: time.Hour}
	cases := map[string]struct {
		then  func(s *source) Question
		asked int32
	}{
		"the same":          {func(*source) Question { return q }, 5},
		"another spec":      {func(*source) Question { return Question{Generation: 2, MaxAge: time.Hour} }, 6},
		"a request":         {func(*source) Question { return Question{Generation: 1, Request: "now", MaxAge: time.Hour} }, 6},
		"another interval":  {func(*source) Question { return Question{Generation: 1, MaxAge: time.Minute} }, 6},
		"the end of it":     {func(s *source) Question { s.clock.Step(16 * time.Second); return q }, 6},
		"it was forgotten":  {func(s *source) Question { s.Forget("a"); return q }, 6},
		"a success between": {func(s *source) Question { s.clock.Step(time.Minute); s.err = nil; _, _ = s.query("a", q); return q }, 6},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newSource(t, recent)
			s.err = failure.New(failure.ErrAuthentication, "refused")
			for i := range 5 {
				if i > 0 {
					s.clock.Step(16 * time.Second)
				}
				if _, err := s.query("a", q); !errors.Is(err, failure.ErrAuthentication) {
					t.Fatalf("got %v", err)
				}
			}
			_, err := s.query("a", tc.then(s))
			if s.asked.Load() != tc.asked || (err == nil) != (s.err == nil) {
				t.Errorf("asked %d times, want %d; got %v", s.asked.Load(), tc.asked, err)
			}
		})
	}
}

func TestLastReturnsTheAnswerBeforeAFailure(t *testing.T) {
	s := newSource(t, recent)
	if _, _, ok := s.Last("a"); ok {
		t.Error("there is an answer before anybody asked")
	}
	q := Question{Generation: 1, MaxAge: time.Minute}
	_, _ = s.query("a", q)
	s.clock.Step(time.Hour)
	s.err = errors.New("away")
	_, _ = s.query("a", Question{Generation: 2, MaxAge: time.Minute})
	if got, asked, ok := s.Last("a"); got != 1 || asked != q || !ok {
		t.Errorf("got %d, %v, %v: the failure took the good answer's place", got, asked, ok)
	}
	if _, err := s.Failure("a"); err == nil {
		t.Error("the failure is not known")
	}
}

func TestUnusedAnswersAreForgotten(t *testing.T) {
	s := newSource(t, recent)
	for i := range 100 {
		_, _ = s.query(fmt.Sprint("gone-", i), Question{MaxAge: time.Minute})
	}
	s.clock.Step(2 * time.Hour)
	_, _ = s.query("a", Question{MaxAge: time.Minute})
	if n := len(s.memory.known); n != 1 {
		t.Errorf("%d answers are kept, want 1", n)
	}
}

// TestAnAnswerIsKnownUntilTheNextInterval asks at the pace of an object: MaxAge is nine tenths of the interval, and jitter adds a tenth.
func TestAnAnswerIsKnownUntilTheNextInterval(t *testing.T) {
	for _, interval := range []time.Duration{time.Minute, 2 * time.Hour, 20 * time.Hour} {
		s := newSource(t, recent)
		_, _ = s.query("a", Question{MaxAge: interval * 9 / 10})
		s.clock.Step(interval * 11 / 10)
		_, _ = s.query("another", Question{MaxAge: interval * 9 / 10})
		if _, _, known := s.Last("a"); !known {
			t.Errorf("after an interval of %s, its last answer is forgotten", interval)
		}
	}
}

// TestAnotherVersionCancelsTheFetchInProgress has a source hang, and its URL or its Secret changed meanwhile.
func TestAnotherVersionCancelsTheFetchInProgress(t *testing.T) {
	s := newSource(t, recent)
	s.held = make(chan struct{})
	query := Query{Caller: caller("a"), Key: "a", Version: "1", Question: Question{Generation: 1, MaxAge: time.Hour}}
	if _, err := s.Get(query, s.prepare); !errors.As(err, new(*Unanswered)) {
		t.Fatalf("got %v", err)
	}
	for s.asked.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	s.held = nil
	query.Version, query.Generation = "2", 2
	if got, err := s.get(query); got != 2 || err != nil {
		t.Errorf("got %d, %v", got, err)
	}
}

// TestTheAnswerToAnotherVersionIsNotTaken: what was asked with other credentials may end after what replaced it began.
func TestTheAnswerToAnotherVersionIsNotTaken(t *testing.T) {
	s := newSource(t, recent)
	s.held = make(chan struct{})
	query := func(version string) Query {
		return Query{Key: "a", Version: version, Host: "host:443", Question: Question{Generation: 1, MaxAge: time.Minute}}
	}
	ask := func(version string) *run {
		t.Helper()
		if _, err := s.Get(query(version), s.prepare); !errors.As(err, new(*Unanswered)) {
			t.Fatalf("version %s: %v", version, err)
		}
		return s.memory.known["a"].run
	}
	first := ask("1")
	second := ask("2")
	s.take("a", first, 7, nil)
	if got, _, known := s.Last("a"); known {
		t.Errorf("the answer %d of the first version was taken", got)
	}
	if now := s.memory.known["a"].run; now != second {
		t.Error("the end of the first query ended the second")
	}
	close(s.held)
	if got, err := s.get(query("2")); got == 7 || err != nil {
		t.Errorf("got %d, %v", got, err)
	}
}

// TestANewRequestWaitsForTheOneUnderWay: pushes that come faster than fetches end do not keep each other from being answered.
func TestANewRequestWaitsForTheOneUnderWay(t *testing.T) {
	s := newSource(t, recent)
	s.held = make(chan struct{})
	query := Query{Caller: caller("a"), Key: "a", Question: Question{Request: "1", MaxAge: time.Hour}}
	_, _ = s.Get(query, s.prepare)
	query.Request = "2"
	if _, err := s.Get(query, s.prepare); !errors.As(err, new(*Unanswered)) {
		t.Fatalf("got %v", err)
	}
	close(s.held)
	if got, err := s.get(query); got != 2 || err != nil {
		t.Errorf("the second request got %d, %v: an answer from before it", got, err)
	}
}

func TestForgetCancelsTheFetchInProgress(t *testing.T) {
	s := newSource(t, recent)
	s.held = make(chan struct{})
	query := Query{Caller: caller("a"), Key: "a", Question: Question{MaxAge: time.Hour}}
	_, _ = s.Get(query, s.prepare)
	s.Forget("a")
	<-s.woken
	if _, _, known := s.Last("a"); known {
		t.Error("what was forgotten is known")
	}
}

// TestAnOpenBreakerKeepsTheMessage: the error that the host gave says what is wrong, and stays the same.
func TestAnOpenBreakerKeepsTheMessage(t *testing.T) {
	s := newSource(t, recent)
	q := Question{MaxAge: time.Hour}
	s.err = transport.RequestError(&netError{}, "host")
	first := ""
	for i := range 20 {
		_, err := s.query("a", q)
		if err == nil {
			t.Fatal("no error")
		}
		if i == 0 {
			first = err.Error()
		}
		if err.Error() != first {
			t.Fatalf("the message became %q", err)
		}
		s.clock.Step(2 * time.Minute)
	}
	for i := range 3 {
		_, _ = s.query(fmt.Sprint("other", i), q)
	}
	if _, err := s.query("new", q); !errors.Is(err, failure.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
}

// TestThePoolMayHaveAnotherClock: that of the machine, which somebody may set ahead by hours. The rest of a host is as long by the clock of the answers.
func TestThePoolMayHaveAnotherClock(t *testing.T) {
	steady := clocktesting.NewFakeClock(time.Unix(1000, 0))
	s := newSource(t, func(p *pool.Pool, c *clocktesting.FakeClock) *Answers[int] {
		c.Step(5 * time.Hour)
		return NewRecent[int](p, steady)
	})
	q := Question{MaxAge: time.Hour}
	s.err = refusedBy("connection refused")
	for _, key := range []string{"a", "b", "c", "refused"} {
		if _, err := s.query(key, q); !errors.Is(err, failure.ErrUnavailable) {
			t.Fatalf("%s: got %v", key, err)
		}
	}
	if n := s.asked.Load(); n != 3 {
		t.Fatalf("the host was contacted %d times, so the breaker is closed", n)
	}
	s.err = nil
	s.clock.Step(time.Minute)
	steady.Step(time.Minute)
	if got, err := s.query("refused", q); got != 4 || err != nil {
		t.Errorf("a minute later: %d, %v", got, err)
	}
}

// TestARefusedFetchIsAnsweredWithTheFailure: a fetch that the pool does not accept is answered with the source's own failure while its host's circuit breaker
// is open, and with the queue's while the queue is full. The source is not contacted.
func TestARefusedFetchIsAnsweredWithTheFailure(t *testing.T) {
	q := Question{MaxAge: 2 * time.Second}
	const away, open, full = "connection refused", "host:443 gave no answer several times in a row, so it is contacted rarely until it does",
		"it waits its turn: as many fetches of tenant acme wait as may"
	cases := map[string]struct {
		key    string
		after  time.Duration // the time since the host was contacted
		queued bool          // one fetch runs and one waits, which is as many as may
		want   string
		kind   error
	}{
		"breaker open, failed before":     {"a", 2 * time.Second, false, away, failure.ErrUnavailable},
		"breaker open, no failure so far": {"never", 0, false, open, failure.ErrUnavailable},
		"queue full, failed before":       {"a", 2 * time.Second, true, full, failure.ErrBusy},
		"queue full, no failure so far":   {"never", 0, true, full, failure.ErrBusy},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newSource(t, func(_ *pool.Pool, c *clocktesting.FakeClock) *Answers[int] {
				return NewRecent[int](pool.New(pool.Options{Reach: pool.ReachOf, PerTenant: 1, Waiting: 1}, c), c)
			})
			if _, err := s.get(Query{Key: "a", Question: q, Host: "host:443", Tenant: "acme"}); err != nil { // A source that never answered is contacted in spite of the breaker.
				t.Fatal(err)
			}
			s.err = refusedBy("connection refused")
			for range 3 {
				s.clock.Step(2 * time.Second)
				if _, err := s.get(Query{Key: "a", Question: q, Host: "host:443", Tenant: "acme"}); err == nil || !strings.Contains(err.Error(), away) {
					t.Fatalf("the source fails with %v, want %s", err, away)
				}
			}
			if tc.queued {
				s.held = make(chan struct{})
				defer close(s.held)
				for _, key := range []string{"runs", "waits"} {
					if _, err := s.Get(Query{Key: key, Question: q, Host: key, Tenant: "acme"}, s.prepare); !errors.As(err, new(*Unanswered)) {
						t.Fatalf("%s: got %v", key, err)
					}
				}
			}
			s.clock.Step(tc.after)
			contacted := s.asked.Load()
			_, err := s.Get(Query{Key: tc.key, Question: q, Host: "host:443", Tenant: "acme"}, s.prepare)
			if !errors.Is(err, tc.kind) || !strings.Contains(fmt.Sprint(err), tc.want) {
				t.Errorf("got %v, want %s", err, tc.want)
			}
			if n := s.asked.Load(); !tc.queued && n != contacted {
				t.Errorf("the source was contacted %d times more, so the breaker is closed", n-contacted)
			}
		})
	}
}

// refusedBy is the error of a host that refuses connections.
func refusedBy(why string) error {
	return transport.RequestError(&net.OpError{Op: "dial", Err: errors.New(why)}, "host")
}

type netError struct{}

func (*netError) Error() string { return "no route" }

func TestAFailureOfPrepareIsRemembered(t *testing.T) {
	s := newSource(t, recent)
	prepared := 0
	missing := func() (Fetcher[int], error) { prepared++; return nil, errors.New("no such Secret") }
	for range 3 {
		if _, err := s.Get(Query{Key: "a", Question: Question{MaxAge: time.Hour}}, missing); err == nil || err.Error() != "no such Secret" {
			t.Errorf("got %v", err)
		}
	}
	if prepared != 1 {
		t.Errorf("the Secret was read %d times, want 1", prepared)
	}
}

func TestCallersWithTheSameKeyShareAnAnswer(t *testing.T) {
	s := newSource(t, shared)
	var changes [][2]int
	s.Changed = func(_ string, was, is int) { changes = append(changes, [2]int{was, is}) }
	expect := func(what string, maxAge time.Duration, cause string, want int32, failed bool) {
		t.Helper()
		got, err := s.get(Query{Key: "a", Cause: cause, Question: Question{Generation: int64(s.asked.Load()), MaxAge: maxAge}})
		if s.asked.Load() != want || (err != nil) != failed || (err == nil && int32(got) != want) {
			t.Fatalf("%s: asked %d times, got %d, %v; want %d", what, s.asked.Load(), got, err, want)
		}
	}
	expect("the first", time.Minute, "", 1, false)
	expect("another who follows it", time.Minute, "", 1, false)
	s.clock.Step(30 * time.Second)
	expect("one who wants it younger", 20*time.Second, "", 2, false)
	expect("one who wants it new", time.Minute, "push", 3, false)
	expect("another for the same cause", time.Minute, "push", 3, false)
	expect("one for another cause", time.Minute, "another push", 4, false)
	s.clock.Step(causeLasts)
	expect("a latecomer", time.Minute, "another push", 5, false)
	s.err = errors.New("gone")
	expect("a failure", time.Minute, "again", 6, true)
	expect("another of the same cause", time.Minute, "again", 6, true)
	expect("during the pause", time.Minute, "", 6, true)
	s.clock.Step(1100 * time.Millisecond)
	expect("after the pause", time.Minute, "", 7, true)
	s.clock.Step(1100 * time.Millisecond)
	expect("during the longer pause", time.Minute, "", 7, true)
	s.clock.Step(time.Second)
	s.err = nil
	expect("well again", time.Minute, "", 8, false)
	s.Forget("a")
	expect("forgotten", time.Minute, "", 9, false)
	if len(changes) != 5 || changes[4] != [2]int{5, 8} {
		t.Errorf("changes: %v", changes)
	}
}

// TestSharedRunsOneFetchAtATime has a hundred ask one source, each for a reason of its own or all for one, and wakes each.
func TestSharedRunsOneFetchAtATime(t *testing.T) {
	for name, own := range map[string]bool{"one cause": false, "a cause each": true} {
		t.Run(name, func(t *testing.T) {
			s := newSource(t, shared)
			s.held = make(chan struct{})
			query := func(i int) Query {
				cause := "push"
				if own {
					cause = fmt.Sprint("edit ", i)
				}
				return Query{Caller: caller(fmt.Sprint(i)), Key: "a", Cause: cause, Question: Question{MaxAge: time.Hour}}
			}
			for i := range 100 {
				if _, err := s.Get(query(i), s.prepare); !errors.As(err, new(*Unanswered)) {
					t.Fatalf("got %v", err)
				}
			}
			close(s.held)
			woken := map[types.NamespacedName]bool{}
			for range 100 {
				woken[<-s.woken] = true
			}
			if len(woken) != 100 || s.asked.Load() != 1 {
				t.Errorf("%d were woken, and it was asked %d times", len(woken), s.asked.Load())
			}
			if got, err := s.Get(query(0), s.prepare); got != 1 || err != nil {
				t.Errorf("the first got %d, %v", got, err)
			}
			if _, err := s.Get(query(99), s.prepare); (err != nil) != own {
				t.Errorf("the last got %v", err)
			}
		})
	}
}

// TestATimeoutOfOneCallerIsNotTheAnswerForOthers has two ask, of whom the first gives up before the second would.
func TestATimeoutOfOneCallerIsNotTheAnswerForOthers(t *testing.T) {
	s := newSource(t, shared)
	s.held = make(chan struct{})
	query := func(name string, timeout time.Duration) Query {
		return Query{Caller: caller(name), Key: "git", Question: Question{MaxAge: time.Hour}, Timeout: timeout}
	}
	hurried, watchedReader := query("hurried", time.Second), query("watchedReader", time.Minute)
	_, _ = s.Get(hurried, s.prepare)
	_, _ = s.Get(watchedReader, s.prepare)
	for s.asked.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	s.clock.Step(time.Second)
	<-s.woken
	<-s.woken
	if _, err := s.Get(hurried, s.prepare); !errors.Is(err, pool.ErrTimeout) {
		t.Errorf("got %v", err)
	}
	close(s.held)
	if got, err := s.get(watchedReader); got != 2 || err != nil {
		t.Errorf("another gets %d and %v", got, err)
	}
}

func TestTheQuestionOfAnAppFollowsItsIntervals(t *testing.T) {
	app := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Generation: 7, Annotations: map[string]string{"reconcile.fluxcd.io/requestedAt": "noon"}}}
	want := Question{Generation: 7, Request: "noon", MaxAge: 9 * time.Minute}
	if got := QuestionOf(app); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	app.Spec.RetryInterval = &metav1.Duration{Duration: time.Minute}
	want.Retry = time.Minute
	if got := QuestionOf(app); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}
