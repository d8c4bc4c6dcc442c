package cluster

import (
	"errors"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"

	"github.com/kubeop/kubeop/delivery/release/fault"
)

// pauses is a clock with which pauses end at once, and longer times only when late is set. It records the pauses.
type pauses struct {
	clock.WithTicker
	taken []time.Duration
	late  bool
}

type timer struct {
	clock.Timer
	ends chan time.Time
}

func (t timer) C() <-chan time.Time { return t.ends }
func (t timer) Stop() bool          { return true }

func (p *pauses) NewTimer(d time.Duration) clock.Timer {
	t := timer{ends: make(chan time.Time, 1)}
	if d > lastPause {
		if p.late {
			t.ends <- time.Time{}
		}
		return t
	}
	if p.taken = append(p.taken, d); !p.late {
		t.ends <- time.Time{}
	}
	return t
}

var (
	errChart       = errors.New("the chart's fault")
	errEnvironment = apierrors.NewServiceUnavailable("starting")
)

func TestPausesBetweenLooksGrow(t *testing.T) {
	const ms = time.Millisecond
	closed := make(chan struct{})
	close(closed)
	tests := map[string]struct {
		// looks are the results of one look after the other; nil: not yet done.
		looks []error
		late  bool
		ended <-chan struct{}
		want  error
		taken []time.Duration
		idle  int
	}{
		"there at once":                         {looks: []error{errDone}},
		"fails at once":                         {looks: []error{errChart}, want: errChart},
		"there later":                           {looks: []error{nil, nil, errDone}, taken: []time.Duration{100 * ms, 200 * ms}, idle: 1},
		"the pauses grow to a second":           {looks: []error{nil, nil, nil, nil, nil, nil, errDone}, taken: []time.Duration{100 * ms, 200 * ms, 400 * ms, 800 * ms, time.Second, time.Second}, idle: 1},
		"an unreachable cluster is tried again": {looks: []error{errEnvironment, errEnvironment, errDone}, taken: []time.Duration{100 * ms, 200 * ms}, idle: 1},
		"it fails later":                        {looks: []error{nil, errChart}, want: errChart, taken: []time.Duration{100 * ms}, idle: 1},
		"the time is up":                        {looks: []error{nil}, late: true, want: errTimeUp, taken: []time.Duration{100 * ms}, idle: 1},
		"a newer input does not wait":           {looks: []error{nil}, ended: closed, want: fault.ErrSuperseded, idle: 1},
		"a newer input, but it is there":        {looks: []error{errDone}, ended: closed},
		"a newer input, and it has failed":      {looks: []error{errChart}, ended: closed, want: errChart},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p, idle, looked := &pauses{late: test.late}, 0, 0
			c := &Client{clock: p, Terms: Terms{Idle: func(f func() error) error { idle++; return f() }}}
			if test.ended != nil {
				c.clock = stopped{}
			}
			err := c.await(time.Minute, test.ended, func() (bool, error) {
				result := test.looks[looked]
				looked++
				return errors.Is(result, errDone), noneIfDone(result)
			})
			if !errors.Is(err, test.want) || err != nil && test.want == nil {
				t.Errorf("got %v, want %v", err, test.want)
			}
			if !slices.Equal(p.taken, test.taken) {
				t.Errorf("the pauses are %v, want %v", p.taken, test.taken)
			}
			if looked != len(test.looks) || idle != test.idle {
				t.Errorf("it looked %d times and was idle %d times, want %d and %d", looked, idle, len(test.looks), test.idle)
			}
		})
	}
}

// errDone stands for a look that finds what is waited for.
var errDone = errors.New("done")

func noneIfDone(err error) error {
	if errors.Is(err, errDone) {
		return nil
	}
	return err
}

// stopped is a clock whose timers never end.
type stopped struct{ clock.WithTicker }

func (stopped) NewTimer(time.Duration) clock.Timer { return timer{ends: make(chan time.Time)} }
