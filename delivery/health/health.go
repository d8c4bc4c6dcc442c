// Package health judges, in one pass and without waiting, whether objects work as they should, and names the cause if they do not.
package health

import (
	"fmt"
	"slices"
	"strings"
)

// Verdict is the health of a set of objects. Its lines are "Kind/name: why". They quote text of containers and controllers, masked by
// Explainer.Mask. The same situation always has the same text.
type Verdict struct {
	// Failed are the objects with a problem that waiting alone is not expected to solve: a crash, a missing image, a quota, a failed Job.
	Failed []string
	// Final reports that Kubernetes itself gave up on one of the Failed: a Job or Pod that failed, a Deployment past its progress deadline,
	// or an object whose status says that it is stalled. Kubernetes still retries the other Failed ones, such as a container that crashes
	// until its database exists.
	Final bool
	// Waiting are the objects that are not ready yet, each with the thing that it waits for.
	Waiting []string
	// Pending are the objects that the watch has not received in the requested version. They are neither healthy nor failed: check again
	// when the watch reports them. If that takes long, use Explainer.Late.
	Pending []string
}

// Healthy reports whether every object is healthy.
func (v Verdict) Healthy() bool { return len(v.Failed)+len(v.Waiting)+len(v.Pending) == 0 }

// String names the causes, failures first, at most three. Pending objects are named only if there are no others.
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
