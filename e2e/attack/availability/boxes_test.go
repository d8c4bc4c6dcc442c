//go:build e2e

package availability

// boxed are all attacks, by what they attack.
var boxed = []box{rendered, built, trees, fetchedAndJudged, requested}

const firstCome = "who evaluates long delays others: the processes that evaluate are first come, first served"

// open are the attacks that do not hold yet, by key, and why. They run, each in a window of its own; what they break is told, stands
// in the table, and fails nothing.
var open = map[string]string{
	"endless":   firstCome,
	"keys":      firstCome,
	"crowd":     firstCome,
	"regex":     firstCome,
	"schema":    firstCome,
	"megabytes": "there is no budget of bytes for what is rendered",
	"suspended": "there is no budget of bytes for a tree",
	"projects":  "there is no budget of projects for a tenant",
	"inflate":   "there is no budget for what a pack inflates to",
}
