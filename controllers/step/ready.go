package step

import (
	"context"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// summarise sets Ready, Reconciling, Stalled, the conditions in the scope's notes, the observed generation and the handled request. A
// failure that is retried does not set the observed generation, so that kstatus reads the object as in progress. Marking Reconciling
// deletes Stalled and the reverse; deleting both first would give an unchanged condition a new transition time at each Reconcile. Ready's
// message begins with the heading.
func summarise(obj Object, v *verdict, report report) {
	settled, message := false, report.heading+report.message
	switch {
	case v == nil:
		settled = true
		conditions.Delete(obj, v1alpha1.ReconcilingCondition)
		conditions.Delete(obj, v1alpha1.StalledCondition)
		conditions.MarkTrue(obj, v1alpha1.ReadyCondition, v1alpha1.SucceededReason, "%s", message)
	case v.kind == waiting:
		conditions.MarkReconciling(obj, v1alpha1.ProgressingReason, "%s", v.err)
		conditions.MarkUnknown(obj, v1alpha1.ReadyCondition, v.reason, "%s", message)
	case v.kind == stopped:
		settled = true
		conditions.MarkStalled(obj, v.reason, "%s", v.err)
		conditions.MarkFalse(obj, v1alpha1.ReadyCondition, v.reason, "%s", message)
	default:
		conditions.MarkReconciling(obj, v1alpha1.ProgressingWithRetryReason, "%s", v.err)
		conditions.MarkFalse(obj, v1alpha1.ReadyCondition, v.reason, "%s", message)
	}
	if settled {
		obj.GetReconcileStatus().ObservedGeneration = obj.GetGeneration()
	}
	obj.GetReconcileStatus().ReadyMessage = ""
	setNotes(obj, report.notes)
	if token, ok := meta.ReconcileAnnotationValue(obj.GetAnnotations()); ok {
		obj.GetReconcileStatus().SetLastHandledReconcileRequest(token)
	}
}

func setNotes(obj Object, notes []Note) {
	for _, n := range notes {
		if n.Condition == "" || n.Stays {
			continue
		}
		if n.Status == "" {
			conditions.Delete(obj, n.Condition)
			continue
		}
		conditions.Set(obj, &metav1.Condition{
			Type: n.Condition, Status: n.Status, Reason: n.Reason, Message: n.Message, ObservedGeneration: obj.GetGeneration(),
		})
	}
}

// suspended sets the condition Suspended, whose message begins Ready's message too; the status keeps what Ready said before. until is empty
// without an end.
func (r *Runner) suspended(ctx context.Context, obj Object, until string) error {
	before := obj.DeepCopyObject().(Object)
	now := &metav1.Condition{
		Type: v1alpha1.SuspendedCondition, Status: metav1.ConditionTrue, Reason: v1alpha1.SuspendedReason, Message: "Suspended" + until,
		ObservedGeneration: obj.GetGeneration(),
	}
	was, ready, status := conditions.Get(obj, v1alpha1.SuspendedCondition), conditions.Get(obj, v1alpha1.ReadyCondition), obj.GetReconcileStatus()
	if was != nil && was.Message == now.Message {
		return nil
	}
	if was == nil && ready != nil {
		status.ReadyMessage = ready.Message
	}
	if ready != nil {
		marked := ready.DeepCopy()
		marked.Message = now.Message
		if status.ReadyMessage != "" {
			marked.Message += "; " + status.ReadyMessage
		}
		conditions.Set(obj, marked)
	}
	conditions.Set(obj, now)
	conditions.Delete(obj, v1alpha1.ReconcilingCondition)
	return r.patch(ctx, before, obj)
}
