package outbox

import (
	"net/http"
	"strconv"
	"time"
)

// GivesUp is how long a message is tried at least, from when it was written.
const GivesUp = 24 * time.Hour

// pauses are the pauses after the failures of a message; the last one is repeated.
var pauses = []time.Duration{
	5 * time.Second, 30 * time.Second, 2 * time.Minute, 5 * time.Minute, 15 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour, 4 * time.Hour,
}

// spread is by which part a pause may be longer or shorter, so that messages that failed together are not sent again together.
const spread = 0.2

// pause returns how long to wait after a number of failures. jitter is at least 0 and less than 1.
func pause(failures int, jitter float64) time.Duration {
	of := pauses[min(failures, len(pauses))-1]
	return time.Duration(float64(of) * (1 - spread + 2*spread*jitter))
}

// next returns when a message that failed is sent again. It reports false if it is not sent again.
func next(since, now time.Time, failures int, jitter float64, wanted time.Duration) (time.Time, bool) {
	end := since.Add(GivesUp)
	if !now.Before(end) {
		return time.Time{}, false
	}
	at := now.Add(max(pause(failures, jitter), wanted))
	if at.After(end) {
		at = end // The last attempt.
	}
	return at, true
}

// maxWanted is the longest pause that a webhook may ask for.
const maxWanted = time.Hour

// retryAfter returns the pause that an answer asks for.
func retryAfter(answer *http.Response, now time.Time) time.Duration {
	if answer.StatusCode != http.StatusTooManyRequests && answer.StatusCode != http.StatusServiceUnavailable {
		return 0
	}
	text := answer.Header.Get("Retry-After")
	wanted := time.Duration(0)
	if seconds, err := strconv.Atoi(text); err == nil {
		wanted = time.Duration(min(max(seconds, 0), int(maxWanted.Seconds()))) * time.Second
	} else if at, err := http.ParseTime(text); err == nil {
		wanted = at.Sub(now)
	}
	return min(max(wanted, 0), maxWanted)
}
