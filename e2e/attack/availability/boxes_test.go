//go:build e2e

package availability

// boxed are all attacks, by what they attack.
var boxed = []box{rendered, built, trees, fetchedAndJudged, requested}
