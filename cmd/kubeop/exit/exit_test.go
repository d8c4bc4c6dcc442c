package exit

import (
	"errors"
	"fmt"
	"testing"
)

// TestAnErrorHasItsExitCode, also within another error; any other error is a failure.
func TestAnErrorHasItsExitCode(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want int
	}{
		"none":             {nil, 0},
		"any":              {errors.New("away"), 1},
		"differences":      {&Error{Code: Differences, Err: ErrSaid}, 2},
		"within another":   {fmt.Errorf("waiting: %w", &Error{Code: NotReady, Err: errors.New("away")}), 3},
		"the person ended": {&Error{Code: Interrupted, Err: errors.New("away")}, 130},
	} {
		if got := Code(tc.err); got != tc.want {
			t.Errorf("%s: got %d, want %d", name, got, tc.want)
		}
	}
	err := error(&Error{Code: Differences, Err: fmt.Errorf("2 problems: %w", ErrSaid)})
	if err.Error() != "2 problems: the output says what was found" || !errors.Is(err, ErrSaid) {
		t.Errorf("got %v", err)
	}
}
