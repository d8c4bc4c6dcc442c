package main

import (
	"runtime"
	"runtime/debug"
	"time"
)

// machineRead has machineNumbers numbers of four bytes, more than fit into any cache, and reads this many of them.
const (
	machineNumbers = 1 << 26
	machineReads   = 1 << 22
)

// machineRead returns how long a read of memory takes if each read depends on the one before, in nanoseconds. On a virtual machine that is
// sometimes four times as long for hours, because other machines use the same memory. All times are then about 50 % longer.
func machineRead() float64 {
	next := make([]uint32, machineNumbers)
	for i := range next {
		// A linear congruential generator visits every number, in an order that no processor can predict.
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
