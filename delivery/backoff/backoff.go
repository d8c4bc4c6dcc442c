// Package backoff says how long to pause after failures in a row: each pause is twice as long as the one before it.
package backoff

import "time"

// First is the pause after a first failure, and Last the longest one, for whatever has no retryInterval.
const (
	First = time.Second
	Last  = 5 * time.Minute
)

// Pause is the pause after so many failures in a row, at least 1: First, twice that, and so on up to Last.
func Pause(failures int) time.Duration { return Between(First, Last, failures) }

// Between is Pause with another first and another longest pause.
func Between(first, last time.Duration, failures int) time.Duration {
	return min(first<<min(failures-1, 16), last)
}
