package handover

import (
	"time"

	"github.com/kubeop/kubeop/controllers/step"
)

// maxUndeclared is how many siblings are remembered that have not declared: Apps come and go while the one that waits stays.
const maxUndeclared = 1000

// waiting is what an App knows of the objects that left its source, while it waits for siblings to declare them.
type waiting struct {
	// input is what the App was made from last, and declaredAt since when; source is the revision of its source then, and leftAt since
	// when both are the same: objects that left the source have been there no longer than that.
	input              input
	source             string
	declaredAt, leftAt time.Time
	// undeclared are siblings that were found not to have declared what they are made from now.
	undeclared map[string]undeclared
	// wokeAt is when siblings that have yet to declare were last woken.
	wokeAt time.Time
}

// undeclared is what a sibling has not declared for, and since when that is known.
type undeclared struct {
	input input
	since time.Time
}

// begin notes what is delivered from now on.
func (w *waiting) begin(in input, source string, now time.Time) {
	if w.input != in || w.source != source {
		w.leftAt, w.wokeAt = now, time.Time{}
	}
	if w.input != in {
		w.declaredAt = now
	}
	w.input, w.source = in, source
}

// wakes reports whether to wake siblings: once for each revision, and then seldom. Two that wait for each other would otherwise wake each
// other all the time.
func (w *waiting) wakes(now time.Time) bool {
	if now.Sub(w.wokeAt) < step.LastLook {
		return false
	}
	w.wokeAt = now
	return true
}

// undeclaredFor returns for how long a sibling has been found not to have declared, while what left the source is the same.
func (w *waiting) undeclaredFor(sibling string, in input, now time.Time) time.Duration {
	was := w.undeclared[sibling]
	if was.input != in || was.since.Before(w.leftAt) {
		was = undeclared{in, now}
		if w.undeclared == nil || len(w.undeclared) >= maxUndeclared {
			w.undeclared = map[string]undeclared{} // They are found again.
		}
		w.undeclared[sibling] = was
	}
	return now.Sub(was.since)
}
