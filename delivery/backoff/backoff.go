// Package backoff computes the pause after failures in a row: each pause is twice as long as the one before it.
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
