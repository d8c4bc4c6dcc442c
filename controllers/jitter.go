package controllers

import (
	"math/rand"
	randv2 "math/rand/v2"

	"github.com/fluxcd/pkg/runtime/jitter"
)

// intervalJitter spreads the intervals of objects that were made at the same time.
const intervalJitter = 0.05

// spreadIntervals has all controllers spread the intervals of their objects. The source of random numbers that Flux takes where it is
// given none must not be used by several workers at once.
func spreadIntervals() { jitter.SetGlobalIntervalJitter(intervalJitter, rand.New(concurrent{})) }

// concurrent is a source of random numbers for any number of goroutines.
type concurrent struct{}

// Int63 returns a random number of at least 0.
func (concurrent) Int63() int64 { return randv2.Int64() }

// Seed does nothing: the numbers of all goroutines are of one sequence.
func (concurrent) Seed(int64) {}
