package step

import (
	"errors"
	"testing"
	"time"
)

func TestAWaitIsQuietAtFirst(t *testing.T) {
	wait := func(waited time.Duration) error {
		return WaitQuietly(waited, Quiet, LastLook, errors.New("installing"))
	}
	if v := outcomeOf(wait(0)); v.kind != quiet || v.after != Quiet {
		t.Errorf("at once it ends as %+v", v)
	}
	if v := outcomeOf(wait(Quiet)); v.kind != waiting || v.after != LastLook || v.err.Error() != "installing" {
		t.Errorf("after %s it ends as %+v", Quiet, v)
	}
}

func TestNextLookGrowsWithTheWait(t *testing.T) {
	for waited, want := range map[time.Duration]time.Duration{0: time.Second, 20 * time.Second: 2 * time.Second, time.Hour: LastLook} {
		if got := NextLook(waited); got != want {
			t.Errorf("after %s: %s, want %s", waited, got, want)
		}
	}
}
