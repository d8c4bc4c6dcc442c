package transport

import (
	"testing"
	"time"
)

func TestTheDefaultTimeoutsStayTheSame(t *testing.T) {
	if got, want := DefaultTimeouts(), (Timeouts{Whole: time.Hour, Answer: 15 * time.Second, Stall: 30 * time.Second}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestRetryAfterIsReadInSecondsUpToAnHour(t *testing.T) {
	for value, want := range map[string]time.Duration{
		"": 0, "0": 0, "1": time.Second, "90": 90 * time.Second, "3600": time.Hour, "3601": time.Hour, "2147483647": time.Hour,
		"-1": 0, "soon": 0, "1.5": 0, "99999999999999999999": 0, "Thu, 01 Jan 2026 12:00:30 GMT": 0,
	} {
		if got := RetryAfter(value); got != want {
			t.Errorf("%q: %s, want %s", value, got, want)
		}
	}
}
