package step

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// maxMessage limits the length of an event's message, in bytes; the API server refuses more than 1,024.
const maxMessage = 1000

// reportedFailure is a failure that an event about Ready reported.
type reportedFailure struct{ reason, message string }

// events emits the events of a Reconcile after its status was written.
func (r *Runner) events(before, obj Object, report report, degraded []string) {
	r.readyEvent(before, obj, report)
	r.degradedEvents(before, obj, degraded)
	for _, n := range report.notes {
		r.noteEvent(before, obj, n)
	}
}

// readyEvent emits an event when Ready is False with a new reason or message, and when Ready becomes True after it was False, also if it was
// Unknown in between. No other success has an event, because thousands of objects succeed all the time. If the operator restarts while
// Ready is Unknown after a failure, the success after it has no event. Events leave out the heading of Ready's message, which has its own.
func (r *Runner) readyEvent(before, obj Object, report report) {
	is := conditions.Get(obj, v1alpha1.ReadyCondition)
	if is == nil || is.Status == metav1.ConditionUnknown {
		return
	}
	kind, message, failed := corev1.EventTypeNormal, report.message, conditions.IsFalse(before, v1alpha1.ReadyCondition)
	if is.Status == metav1.ConditionFalse {
		kind = corev1.EventTypeWarning
		now := reportedFailure{is.Reason, message}
		last, known := r.failing.Swap(obj.GetUID(), now)
		if failed && (known && last == now || !known && same(before, obj, v1alpha1.ReadyCondition)) {
			return
		}
	} else if _, known := r.failing.LoadAndDelete(obj.GetUID()); !failed && !known {
		return
	}
	if report.details != "" {
		message += "\n" + report.details
	}
	r.emit(obj, kind, is.Reason, message)
}

// noteEvent emits the event of a note if the note is new or its reason or message changed.
func (r *Runner) noteEvent(before, obj Object, n Note) {
	if n.Event != "" && (n.Condition == "" || !same(before, obj, n.Condition)) {
		r.emit(obj, n.Event, n.Reason, n.Message)
	}
}

// degradedEvents emits an event for each of the conditions whose step ended with Degrade, if it became False or says something new. Ready does
// not report them.
func (r *Runner) degradedEvents(before, obj Object, degraded []string) {
	for _, condition := range degraded {
		if c := conditions.Get(obj, condition); c != nil && c.Status == metav1.ConditionFalse {
			r.noteEvent(before, obj, Note{Condition: c.Type, Reason: c.Reason, Message: c.Message, Event: corev1.EventTypeWarning})
		}
	}
}

func same(before, obj Object, condition string) bool {
	was, is := conditions.Get(before, condition), conditions.Get(obj, condition)
	if was == nil || is == nil {
		return was == is
	}
	return was.Status == is.Status && was.Reason == is.Reason && was.Message == is.Message
}

func (r *Runner) emit(obj Object, kind, reason, message string) {
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage], "") + "…"
	}
	r.Events.Eventf(obj, nil, kind, reason, "Reconcile", "%s", message)
}
