package main

import (
	"runtime"
	"runtime/debug"
	"time"
)

// What machineRead reads: so many numbers of four bytes, more than any cache holds, and so many of them.
const (
	machineNumbers = 1 << 26
	machineReads   = 1 << 22
)

// machineRead is how long a read of memory takes when each waits for the one before, in nanoseconds. A virtual machine has
// hours in which that takes four times as long, because others use the same memory; all times and CPU then are half as much again.
func machineRead() float64 {
	next := make([]uint32, machineNumbers)
	for i := range next {
		// A linear congruential generator: it comes by every number, and no processor guesses the next.
		next[i] = (uint32(i)*1_664_525 + 1_013_904_223) % machineNumbers
	}
	at, began := uint32(0), time.Now()
	for range machineReads {
		at = next[at]
	}
	took := time.Since(began)
	runtime.KeepAlive(at)
	debug.FreeOSMemory()
	return float64(took.Nanoseconds()) / machineReads
}
