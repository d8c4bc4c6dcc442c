//go:build e2e

package availability

// boxed are all attacks, grouped by what they attack.
var boxed = []box{rendered, built, trees, fetchedAndJudged, requested}
