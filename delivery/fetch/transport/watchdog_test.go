package transport

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

var minutes = Timeouts{Whole: time.Hour, Answer: time.Minute, Stall: 2 * time.Minute}

// slow is a reader whose reads take these times and return a byte each, then io.EOF; a read ends early with its context.
type slow struct {
	ctx   context.Context
	takes []time.Duration
}

func (s *slow) Read(p []byte) (int, error) {
	if len(s.takes) == 0 {
		return 0, io.EOF
	}
	take := s.takes[0]
	s.takes = s.takes[1:]
	select {
	case <-time.After(take):
		p[0] = 'x'
		return 1, nil
	case <-s.ctx.Done():
		return 0, s.ctx.Err()
	}
}

func TestAReadIsEndedByTheLimitOfItsTime(t *testing.T) {
	const second = time.Second
	cases := map[string]struct {
		takes []time.Duration
		says  string
		after time.Duration
	}{
		"within all limits":         {[]time.Duration{59 * second, 119 * second, 119 * second}, "", 297 * second},
		"no first bytes":            {[]time.Duration{61 * second}, "the server gave no answer within the limit of 1m0s", 60 * second},
		"a stall after first bytes": {[]time.Duration{second, 121 * second}, "the server sent nothing more within the limit of 2m0s", 121 * second},
		"a later stall":             {[]time.Duration{second, second, 121 * second}, "the server sent nothing more within the limit of 2m0s", 122 * second},
		"slow, but never a stall":   {repeated(90, 50*second), "it did not end within the limit of 1h0m0s", time.Hour},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				got, err := Within(t.Context(), minutes, func(ctx context.Context) (string, error) {
					text, err := io.ReadAll(WatchdogOf(ctx).WatchReader(&slow{ctx: ctx, takes: tc.takes}))
					return string(text), err
				})
				if took := time.Since(began); took != tc.after {
					t.Errorf("it took %s, want %s", took, tc.after)
				}
				if tc.says == "" {
					if err != nil || len(got) != len(tc.takes) {
						t.Errorf("got %q, %v", got, err)
					}
					return
				}
				sources.WantError(t, err, failure.ErrSlow, "the time for it is over: "+tc.says)
				if got != "" {
					t.Errorf("got %q beside the error, want none", got)
				}
			})
		})
	}
}

func repeated(n int, each time.Duration) []time.Duration {
	all := make([]time.Duration, n)
	for i := range all {
		all[i] = each
	}
	return all
}

func TestTheTimeBetweenReadsDoesNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, err := Within(t.Context(), minutes, func(ctx context.Context) (int, error) {
			from := WatchdogOf(ctx).WatchReader(strings.NewReader("abc"))
			for range 3 {
				if _, err := from.Read(make([]byte, 1)); err != nil {
					return 0, err
				}
				time.Sleep(10 * time.Minute)
			}
			return 0, ctx.Err()
		})
		if err != nil {
			t.Error(err)
		}
	})
}

func TestAFetchThatIsOverEndsNoContextLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var kept context.Context
		_, err := Within(t.Context(), minutes, func(ctx context.Context) (int, error) {
			kept = ctx
			done := WatchdogOf(ctx).AwaitAnswer()
			time.Sleep(59 * time.Second)
			done()
			time.Sleep(time.Minute)
			return 0, ctx.Err()
		})
		if err != nil {
			t.Errorf("an answer in time: %v", err)
		}
		if !errors.Is(context.Cause(kept), context.Canceled) {
			t.Errorf("the context goes on after the fetch, or ended for %v", context.Cause(kept))
		}
	})
}

func TestWithinKeepsOtherErrorsAndTheCallersEnd(t *testing.T) {
	broken := errors.New("broken")
	if got, err := Within(t.Context(), minutes, func(context.Context) (int, error) { return 7, broken }); got != 7 || err != broken { //nolint:errorlint // not wrapped
		t.Errorf("got %d, %v", got, err)
	}
	stopped := errors.New("the operator stops")
	ctx, end := context.WithCancelCause(t.Context())
	got, err := Within(ctx, minutes, func(context.Context) (int, error) { end(stopped); return 7, broken })
	if got != 0 || !errors.Is(err, stopped) || errors.Is(err, failure.ErrSlow) {
		t.Errorf("got %d, %v", got, err)
	}
	if got, err := Within(ctx, minutes, func(context.Context) (int, error) { return 7, nil }); got != 7 || err != nil {
		t.Errorf("what is complete is discarded: %d, %v", got, err)
	}
}

func TestOutsideOfAFetchNothingIsLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := WatchdogOf(t.Context())
		if w != nil {
			t.Fatalf("got %v", w)
		}
		text, err := io.ReadAll(w.WatchReader(&slow{ctx: t.Context(), takes: []time.Duration{48 * time.Hour, 48 * time.Hour}}))
		if string(text) != "xx" || err != nil {
			t.Errorf("got %q, %v", text, err)
		}
	})
}

// TestAServerThatStopsIsNotWaitedFor goes through a client: both the head and the body of an answer are watched.
func TestAServerThatStopsIsNotWaitedFor(t *testing.T) {
	brief := Timeouts{Whole: time.Minute, Answer: 50 * time.Millisecond, Stall: 50 * time.Millisecond}
	for name, tc := range map[string]struct {
		begin string
		says  string
	}{
		"before the answer": {"", "the server gave no answer within the limit of 50ms"},
		"within the answer": {"beginning", "the server sent nothing more within the limit of 50ms"},
	} {
		t.Run(name, func(t *testing.T) {
			server := record(t, httptest.NewServer)
			client, err := NewClient(loopback, Auth{}, server.origin(t))
			if err != nil {
				t.Fatal(err)
			}
			server.answer = func(w http.ResponseWriter, req *http.Request) {
				if tc.begin != "" {
					_, _ = io.WriteString(w, tc.begin)
					w.(http.Flusher).Flush()
				}
				<-req.Context().Done()
			}
			_, err = Within(t.Context(), brief, func(ctx context.Context) (string, error) {
				body, err := GetBody(ctx, client, Auth{}, server.mustParse("/"), "a file")
				if err != nil {
					return "", err
				}
				defer body.Close()
				text, err := io.ReadAll(body)
				return string(text), err
			})
			sources.WantError(t, err, failure.ErrSlow, tc.says)
		})
	}
}

// hesitant returns nothing once, and then a byte after each pause.
type hesitant struct {
	*slow
	begun bool
}

func (h *hesitant) Read(p []byte) (int, error) {
	if !h.begun {
		h.begun = true
		return 0, nil
	}
	return h.slow.Read(p)
}

// TestAReadOfNothingIsNoAnswer: the limit for the first bytes goes on.
func TestAReadOfNothingIsNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, err := Within(t.Context(), minutes, func(ctx context.Context) ([]byte, error) {
			return io.ReadAll(WatchdogOf(ctx).WatchReader(&hesitant{slow: &slow{ctx: ctx, takes: []time.Duration{90 * time.Second}}}))
		})
		sources.WantError(t, err, failure.ErrSlow, "the server gave no answer within the limit of 1m0s")
	})
}
