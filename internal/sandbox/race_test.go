//go:build race

package sandbox

// raceDetector: these tests are built with Go's race detector, whose runtime reserves terabytes of addresses and starts threads of its own. A
// process that is confined as the operator's are cannot run it.
const raceDetector = true
