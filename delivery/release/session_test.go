package release

import (
	"errors"
	"testing"
	"time"

	"github.com/kubeop/kubeop/delivery/release/fence"
)

// TestAnActionThatLostItsReleaseIsNoFailureOfTheInput, whatever error Helm makes of it: another process goes on with the release, and this one
// must not count an attempt.
func TestAnActionThatLostItsReleaseIsNoFailureOfTheInput(t *testing.T) {
	for _, err := range []error{nil, errors.New("upgrade failed: another process took the release over")} {
		s := &session{fence: fence.New(time.Now, nil)}
		s.fence.Shut()
		if got := s.end(err); !errors.Is(got.err, fence.ErrFenced) || !got.environment || got.stored {
			t.Errorf("%v: got %+v", err, got)
		}
	}
}
