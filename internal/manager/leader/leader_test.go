package leader

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-logr/logr"
)

// leads says of each attempt whether it leads, the last one for all after it.
type leads struct {
	answers []bool
	asked   int
}

func (l *leads) Lead(ctx context.Context, _ string, do func(context.Context) error) (bool, error) {
	leads := l.answers[min(l.asked, len(l.answers)-1)]
	l.asked++
	if !leads {
		return false, nil
	}
	return true, do(ctx)
}

func TestWorkRunsOnceItsManagerLeadsAndAgainAfterItFailed(t *testing.T) {
	again = time.Millisecond
	t.Cleanup(func() { again = 5 * time.Second })
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	asked, runs := &leads{answers: []bool{false, false, true}}, 0
	err := (&Elector{Leads: asked, Log: logr.Discard()}).Run(ctx, "usage", func(context.Context) error {
		if runs++; runs == 3 {
			cancel()
		}
		return errors.New("it fails")
	})
	if err != nil || runs != 3 || asked.asked != 5 {
		t.Errorf("%v: it ran %d times after %d attempts", err, runs, asked.asked)
	}
}
