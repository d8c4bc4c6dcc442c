package handover

import (
	"time"

	"github.com/kubeop/kubeop/controllers/step"
)

// maxUndeclared is how many siblings without a declaration are remembered. Apps may be created and deleted while one App waits.
const maxUndeclared = 1000

// waiting is the state of an App that waits for siblings to declare the objects that left its source.
type waiting struct {
	// input is the last input of the App, and source is the revision of its source at that time. declaredAt is since when the input is the
	// same, and leftAt since when both are the same: objects may have left the source at leftAt, but not earlier.
	input              input
	source             string
	declaredAt, leftAt time.Time
	// news is declarations.newsOf when the pass began.
	news int
	// undeclared are siblings that have not declared their present input.
	undeclared map[string]undeclared
	// wokeAt is when siblings that must still declare were last woken.
	wokeAt time.Time
}

// undeclared is the input that a sibling has not declared, and since when this is known.
type undeclared struct {
	input input
	since time.Time
}

// begin records the present input and source revision.
func (w *waiting) begin(in input, source string, now time.Time) {
	if w.input != in || w.source != source {
		w.leftAt, w.wokeAt = now, time.Time{}
	}
	if w.input != in {
		w.declaredAt = now
	}
	w.input, w.source = in, source
}

// wakes reports whether to wake siblings: once for each revision, and then rarely. Otherwise two Apps that wait for each other would wake
// each other all the time.
func (w *waiting) wakes(now time.Time) bool {
	if now.Sub(w.wokeAt) < step.LastLook {
		return false
	}
	w.wokeAt = now
	return true
}

// undeclaredFor returns for how long a sibling has been known not to have declared, since objects last left the source.
func (w *waiting) undeclaredFor(sibling string, in input, now time.Time) time.Duration {
	was := w.undeclared[sibling]
	if was.input != in || was.since.Before(w.leftAt) {
		was = undeclared{in, now}
		if w.undeclared == nil || len(w.undeclared) >= maxUndeclared {
			w.undeclared = map[string]undeclared{} // Siblings that still have not declared are recorded again.
		}
		w.undeclared[sibling] = was
	}
	return now.Sub(was.since)
}
