// Package backoff computes pauses: after failures in a row, each is twice as long as the one before it, and of several the shortest counts.
package backoff

import "time"

// First is the pause after a first failure, and Last the longest pause, for objects without a retryInterval.
const (
	First = time.Second
	Last  = 5 * time.Minute
)

// Pause is the pause after a number of failures in a row, at least 1: First, twice First, and so on up to Last.
func Pause(failures int) time.Duration { return Between(First, Last, failures) }

// Between is Pause with its own first and longest pause.
func Between(first, last time.Duration, failures int) time.Duration {
	return min(first<<min(failures-1, 16), last)
}

// Sooner returns the shorter of two pauses until something is looked at again. A pause of 0 or less means never, not at once: a caller whose time may have
// passed already gives its pause a minimum, such as First. If both pauses mean never, the result is 0.
func Sooner(a, b time.Duration) time.Duration {
	if a <= 0 || b <= 0 {
		return max(a, b, 0)
	}
	return min(a, b)
}
