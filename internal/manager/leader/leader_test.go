package leader

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
)

// attempt is what the store answers one attempt to lead. The last one counts for all after it.
type attempt struct {
	leads bool
	fails error
}

type leads struct {
	answers []attempt
	asked   int
}

func (l *leads) Lead(ctx context.Context, _ string, do func(context.Context) error) (bool, error) {
	answer := l.answers[min(l.asked, len(l.answers)-1)]
	l.asked++
	if !answer.leads {
		return false, answer.fails
	}
	return true, do(ctx)
}

func TestWorkRunsOnceItsManagerLeadsAndAgainAfterItFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		asked, runs := &leads{answers: []attempt{{}, {}, {leads: true}}}, 0
		err := (&Elector{Leads: asked, Log: logr.Discard()}).Run(ctx, "usage", func(context.Context) error {
			if runs++; runs == 3 {
				cancel()
			}
			return errors.New("it fails")
		})
		if err != nil || runs != 3 || asked.asked != 5 {
			t.Errorf("%v: it ran %d times after %d attempts", err, runs, asked.asked)
		}
	})
}

// TestEachFurtherFailureDoublesThePause, until work lasts for longer than the longest one.
func TestEachFurtherFailureDoublesThePause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var pauses []time.Duration
		ended := time.Now()
		// The seventh run lasts for days, the eighth succeeds at once.
		_ = (&Elector{Leads: &leads{answers: []attempt{{leads: true}}}, Log: logr.Discard()}).Run(ctx, "usage", func(context.Context) error {
			pauses = append(pauses, time.Since(ended))
			defer func() { ended = time.Now() }()
			switch len(pauses) {
			case 7:
				time.Sleep(48 * time.Hour)
			case 9:
				return nil
			case 11:
				cancel()
			}
			return errors.New("it fails")
		})
		const s = time.Second
		if diff := cmp.Diff([]time.Duration{0, 5 * s, 10 * s, 20 * s, 40 * s, 60 * s, 60 * s, 5 * s, 10 * s, 5 * s, 5 * s}, pauses); diff != "" {
			t.Errorf("-want +pauses:\n%s", diff)
		}
	})
}

// TestAStoreThatDoesNotAnswerIsLoggedOnce, and again after it answered.
func TestAStoreThatDoesNotAnswerIsLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		silent := attempt{fails: errors.New("the store does not answer")}
		var logged int
		log := funcr.New(func(_, line string) { logged += strings.Count(line, silent.fails.Error()) }, funcr.Options{})
		_ = (&Elector{Leads: &leads{answers: []attempt{silent, silent, silent, {}, silent, silent, {leads: true}}}, Log: log}).Run(ctx, "usage", func(context.Context) error {
			cancel()
			return nil
		})
		if logged != 2 {
			t.Errorf("it is logged %d times", logged)
		}
	})
}
