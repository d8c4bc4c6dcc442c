package step

import (
	"math/rand"
	randv2 "math/rand/v2"

	"github.com/fluxcd/pkg/runtime/jitter"
)

// intervalJitter spreads the intervals of objects that were created at the same time.
const intervalJitter = 0.05

// SpreadIntervals makes all controllers spread the intervals of their objects. The default random source of Flux's package must not be used
// by several workers at once, so a concurrent one is set.
func SpreadIntervals() { jitter.SetGlobalIntervalJitter(intervalJitter, rand.New(concurrent{})) }

// concurrent is a source of random numbers for any number of goroutines.
type concurrent struct{}

// Int63 returns a random number of at least 0.
func (concurrent) Int63() int64 { return randv2.Int64() }

// Seed does nothing: all goroutines share one sequence.
func (concurrent) Seed(int64) {}
