// Package health says, from one look, whether objects do what they are there for, and names the culprit where they do
// not. It never waits.
package health

import (
	"fmt"
	"slices"
	"strings"
)

// Verdict is the health of a set of objects. Its lines are "Kind/name: why"; they quote what containers and controllers
// wrote, hidden as far as Explainer.Mask hides it. The same situation has the same words each time.
type Verdict struct {
	// Failed are the objects with a problem that waiting alone is not expected to solve: a crash, a missing image, a quota, a failed Job.
	Failed []string
	// Final reports that Kubernetes itself gave up on one of the Failed: a Job or Pod that failed, a Deployment past its
	// progress deadline, an object that calls itself stalled. What else failed is still being tried, such as a container
	// that crashes until its database is there.
	Final bool
	// Waiting are the objects that are not there yet, each with what it waits for.
	Waiting []string
	// Pending are the objects that the watch has not received in the requested version. They are neither healthy nor failed: check again
	// when the watch reports them. If that takes long, use Explainer.Late.
	Pending []string
}

// Healthy reports whether every object is.
func (v Verdict) Healthy() bool { return len(v.Failed)+len(v.Waiting)+len(v.Pending) == 0 }

// String names the culprits, failures first, at most three. What is merely not seen yet is named where there is nothing
// else to say.
func (v Verdict) String() string {
	all := append(slices.Clone(v.Failed), v.Waiting...)
	if len(all) == 0 {
		all = v.Pending
	}
	if len(all) > 3 {
		all = append(all[:3:3], fmt.Sprintf("and %d more", len(all)-3))
	}
	return strings.Join(all, "; ")
}
