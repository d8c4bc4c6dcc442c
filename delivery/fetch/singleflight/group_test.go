package singleflight

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
)

func TestCallerWhoGivesUpDoesNotAnswerForOthers(t *testing.T) {
	group := Group[string]{Clock: &atomic.Int64{}}
	gone, cancel := context.WithCancel(t.Context())
	arrived := group.Clock.Add(1)
	began := make(chan struct{})
	go func() {
		_, _ = group.Do(gone, "x", arrived, func() (string, error) {
			close(began)
			<-gone.Done()
			return "", gone.Err()
		})
	}()
	<-began
	go cancel()
	got, err := group.Do(t.Context(), "x", arrived, func() (string, error) { return "mine", nil })
	if got != "mine" || err != nil {
		t.Errorf("%s, %v", got, err)
	}
}

func TestCallersFromBeforeTheQuestionShareItsAnswer(t *testing.T) {
	broken := errors.New("broken")
	for name, want := range map[string]error{"a good one": nil, "a bad one": broken} {
		t.Run(name, func(t *testing.T) {
			group := Group[int]{Clock: &atomic.Int64{}}
			asked := 0
			ask := func() (int, error) { asked++; return asked, want }
			hold, release := make(chan struct{}), make(chan struct{})
			first := group.Clock.Add(1)
			second := group.Clock.Add(1)
			var all sync.WaitGroup
			all.Go(func() {
				if got, err := group.Do(t.Context(), "x", first, func() (int, error) { close(hold); <-release; return ask() }); got != 1 || !errors.Is(err, want) {
					t.Errorf("the first got %d, %v", got, err)
				}
			})
			<-hold
			late := group.Clock.Add(1)
			all.Go(func() {
				if got, err := group.Do(t.Context(), "x", second, ask); got > 2 || !errors.Is(err, want) {
					t.Errorf("the second got %d, %v", got, err)
				}
			})
			all.Go(func() {
				if got, err := group.Do(t.Context(), "x", late, ask); got != 2 || !errors.Is(err, want) {
					t.Errorf("who arrived after the question got %d, %v", got, err)
				}
			})
			for group.Waiting("x") < 3 {
				runtime.Gosched()
			}
			close(release)
			all.Wait()
			if asked != 2 {
				t.Errorf("asked %d times, want once for the first two and once for the late one", asked)
			}
			if n := group.Waiting("x"); n != 0 {
				t.Errorf("%d callers are still there, want 0", n)
			}
			if got, _ := group.Do(t.Context(), "x", 0, ask); got != 3 {
				t.Errorf("an answer that was not kept serves: %d", got)
			}
		})
	}
}

func TestQuestionsDoNotWaitForEachOther(t *testing.T) {
	group := Group[int]{Clock: &atomic.Int64{}}
	got, err := group.Do(t.Context(), "a", group.Clock.Add(1), func() (int, error) {
		return group.Do(t.Context(), "b", group.Clock.Add(1), func() (int, error) { return 7, nil })
	})
	if got != 7 || err != nil {
		t.Errorf("got %d, %v", got, err)
	}
}

// TestACallerThatEndsWhileItWaitsAsksNothing, and leaves the others their answer.
func TestACallerThatEndsWhileItWaitsAsksNothing(t *testing.T) {
	group := Group[int]{Clock: &atomic.Int64{}}
	gone, cancel := context.WithCancel(t.Context())
	got, err := group.Do(t.Context(), "x", group.Clock.Add(1), func() (int, error) {
		if n := group.Waiting("x"); n != 1 || group.Waiting("y") != 0 {
			t.Errorf("%d wait for x, %d for y", n, group.Waiting("y"))
		}
		cancel()
		got, err := group.Do(gone, "x", group.Clock.Add(1), func() (int, error) { t.Error("it asks"); return 8, nil })
		if got != 0 || !errors.Is(err, context.Canceled) {
			t.Errorf("the caller that ended got %d, %v", got, err)
		}
		return 7, nil
	})
	if got != 7 || err != nil || group.Waiting("x") != 0 {
		t.Errorf("got %d, %v, and %d wait", got, err, group.Waiting("x"))
	}
}

// TestASourceThatIsTooSlowIsSoForAll: that ends the context of the caller who asks, and yet it is an answer.
func TestASourceThatIsTooSlowIsSoForAll(t *testing.T) {
	for cause, asked := range map[error]int{failure.ErrSlow: 1, context.Canceled: 2} {
		group := Group[int]{Clock: &atomic.Int64{}}
		first, second, n := group.Clock.Add(1), group.Clock.Add(1), 0
		ctx, end := context.WithCancelCause(t.Context())
		began, other := make(chan struct{}), make(chan error)
		go func() {
			<-began
			_, err := group.Do(t.Context(), "x", second, func() (int, error) { n++; return n, errors.New("away") })
			other <- err
		}()
		_, _ = group.Do(ctx, "x", first, func() (int, error) {
			close(began)
			for group.Waiting("x") < 2 {
				runtime.Gosched()
			}
			n++
			end(cause)
			return 0, cause
		})
		if err := <-other; n != asked || errors.Is(err, cause) != (asked == 1) {
			t.Errorf("after %v: asked %d times, and the other gets %v", cause, n, err)
		}
	}
}
