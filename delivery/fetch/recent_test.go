package fetch

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// source is what a Recent asks in these tests: it counts, and answers with its count or with err.
type source struct {
	recent *Recent[int]
	now    time.Time
	asked  int
	err    error
}

func newSource() *source {
	s := &source{now: time.Unix(0, 0)}
	s.recent = &Recent[int]{Now: func() time.Time { return s.now }}
	return s
}

func (s *source) get(key string, q Question) (int, error) {
	return s.recent.Get(key, q, func() (int, error) {
		s.asked++
		return s.asked, s.err
	})
}

func TestRecentAnswers(t *testing.T) {
	s := newSource()
	q := func(generation int64) Question { return Question{Generation: generation, MaxAge: time.Minute} }
	steps := []struct {
		name string
		do   func()
		key  string
		q    Question
		want int
	}{
		{"the first is asked", func() {}, "a", q(1), 1},
		{"a young answer serves", func() { s.now = s.now.Add(59 * time.Second) }, "a", q(1), 1},
		{"another key is another matter", func() {}, "b", q(1), 2},
		{"another generation is asked", func() {}, "a", q(2), 3},
		{"a request is asked", func() {}, "a", Question{Generation: 2, Request: "now", MaxAge: time.Minute}, 4},
		{"an old answer does not serve", func() { s.now = s.now.Add(time.Minute) }, "a", Question{Generation: 2, Request: "now", MaxAge: time.Minute}, 5},
		{"what is forgotten is asked", func() { s.recent.Forget("a") }, "a", Question{Generation: 2, Request: "now", MaxAge: time.Minute}, 6},
	}
	for _, step := range steps {
		step.do()
		if got, err := s.get(step.key, step.q); got != step.want || err != nil {
			t.Errorf("%s: got %d, %v, want %d", step.name, got, err, step.want)
		}
	}
}

// TestRecentFailures has something ask every 100 ms, as events do, and looks at when the source is asked.
func TestRecentFailures(t *testing.T) {
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
			s := newSource()
			var asked []time.Duration
			for at := time.Duration(0); at <= tc.until; at += 100 * time.Millisecond {
				s.now, s.err = time.Unix(0, 0).Add(at), fmt.Errorf("away at %s", at)
				before := s.asked
				_, err := s.get("a", tc.q)
				if s.asked > before {
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

func TestRecentAfterAFailure(t *testing.T) {
	q := Question{Generation: 1, MaxAge: time.Hour}
	refused := fail(ErrAuthentication, "refused")
	cases := map[string]struct {
		then  func(s *source) Question
		asked int
	}{
		"the same":          {func(*source) Question { return q }, 5},
		"another spec":      {func(*source) Question { return Question{Generation: 2, MaxAge: time.Hour} }, 6},
		"a request":         {func(*source) Question { return Question{Generation: 1, Request: "now", MaxAge: time.Hour} }, 6},
		"another interval":  {func(*source) Question { return Question{Generation: 1, MaxAge: time.Minute} }, 6},
		"the end of it":     {func(s *source) Question { s.now = s.now.Add(16 * time.Second); return q }, 6},
		"it was forgotten":  {func(s *source) Question { s.recent.Forget("a"); return q }, 6},
		"a success between": {func(s *source) Question { s.now, s.err = s.now.Add(time.Minute), nil; _, _ = s.get("a", q); return q }, 6},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newSource()
			s.err = refused
			for range 5 {
				if _, err := s.get("a", q); !errors.Is(err, ErrAuthentication) {
					t.Fatalf("got %v", err)
				}
				s.now = s.now.Add(16 * time.Second)
			}
			s.now = s.now.Add(-16 * time.Second)
			_, err := s.get("a", tc.then(s))
			if s.asked != tc.asked || (err == nil) != (s.err == nil) {
				t.Errorf("asked %d times, want %d; got %v", s.asked, tc.asked, err)
			}
		})
	}
}

func TestRecentDoesNotRememberWhatIsNoAnswer(t *testing.T) {
	for name, err := range map[string]error{"busy": fail(ErrBusy, "later"), "interrupted": fmt.Errorf("fetching: %w", context.Canceled)} {
		t.Run(name, func(t *testing.T) {
			s := newSource()
			s.err = err
			q := Question{MaxAge: time.Hour}
			_, _ = s.get("a", q)
			s.err = nil
			if got, err := s.get("a", q); got != 2 || err != nil {
				t.Errorf("got %d, %v", got, err)
			}
		})
	}
}

func TestRecentLast(t *testing.T) {
	s := newSource()
	if _, _, ok := s.recent.Last("a"); ok {
		t.Error("there is an answer before anybody asked")
	}
	q := Question{Generation: 1, MaxAge: time.Minute}
	_, _ = s.get("a", q)
	s.now, s.err = s.now.Add(time.Hour), errors.New("away")
	_, _ = s.get("a", Question{Generation: 2, MaxAge: time.Minute})
	if got, asked, ok := s.recent.Last("a"); got != 1 || asked != q || !ok {
		t.Errorf("got %d, %v, %v: the failure took the good answer's place", got, asked, ok)
	}
}

func TestRecentForgetsOldFailures(t *testing.T) {
	s := newSource()
	s.err = errors.New("away")
	for i := range 100 {
		_, _ = s.get(fmt.Sprint("gone-", i), Question{MaxAge: time.Minute})
	}
	s.now = s.now.Add(2 * time.Hour)
	_, _ = s.get("a", Question{MaxAge: time.Minute})
	if n := len(s.recent.failed); n != 1 {
		t.Errorf("%d failures are kept", n)
	}
}

func TestQuestionOf(t *testing.T) {
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
