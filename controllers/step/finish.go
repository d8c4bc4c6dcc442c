package step

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/fluxcd/pkg/runtime/jitter"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// finish reports how a Reconcile ended: Ready and its companions, one status patch where anything changed, one event where
// Ready changed, and when to look again.
func (r *Runner) finish(ctx context.Context, before, obj Object, s Scope, v *verdict) (ctrl.Result, error) {
	if v != nil && v.kind == quiet {
		return ctrl.Result{RequeueAfter: v.after}, nil
	}
	s.Record()
	if did, why := brokeOff(ctx, v); did {
		obj.SetConditions(before.GetConditions()) // What was done stays recorded.
		return ctrl.Result{}, errors.Join(r.write(ctx, before, obj, s), why)
	}
	report := reportOf(s, v)
	summarise(obj, s, v, report.heading)
	setNotes(obj, report.notes)
	if token, ok := meta.ReconcileAnnotationValue(obj.GetAnnotations()); ok {
		obj.GetReconcileStatus().SetLastHandledReconcileRequest(token)
	}

	if err := r.write(ctx, before, obj, s); err != nil {
		return ctrl.Result{}, errors.Join(err, errOf(v))
	}
	countRefusal(obj, errOf(v))
	r.events(before, obj, report, v)
	result, err := next(ctx, obj, v)
	if sooner, ok := s.(Sooner); ok && (v == nil || v.kind == stopped) && sooner.Again() > 0 {
		result.RequeueAfter = min(result.RequeueAfter, sooner.Again())
	}
	return result, err
}

func setNotes(obj Object, notes []Note) {
	for _, n := range notes {
		if n.Condition == "" {
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

// summarise sets Ready, Reconciling, Stalled and the observed generation. A failure that is tried again leaves the
// observed generation behind, so that kstatus reads the object as in progress. Reconciling and Stalled take each other
// away; deleting them here would give the same state a new transition time at each look. Ready's message begins with the heading.
func summarise(obj Object, s Scope, v *verdict, heading string) {
	settled := false
	switch {
	case v == nil:
		settled = true
		conditions.Delete(obj, v1alpha1.ReconcilingCondition)
		conditions.Delete(obj, v1alpha1.StalledCondition)
		conditions.MarkTrue(obj, v1alpha1.ReadyCondition, v1alpha1.SucceededReason, "%s%s", heading, s.Summary())
	case v.kind == waiting:
		conditions.MarkReconciling(obj, v1alpha1.ProgressingReason, "%s", v.err)
		conditions.MarkUnknown(obj, v1alpha1.ReadyCondition, v.reason, "%s%s", heading, v.err)
	case v.kind == stopped:
		settled = true
		conditions.MarkStalled(obj, v.reason, "%s", v.err)
		conditions.MarkFalse(obj, v1alpha1.ReadyCondition, v.reason, "%s%s", heading, v.err)
	default:
		conditions.MarkReconciling(obj, v1alpha1.ProgressingWithRetryReason, "%s", v.err)
		conditions.MarkFalse(obj, v1alpha1.ReadyCondition, v.reason, "%s%s", heading, v.err)
	}
	if settled {
		obj.GetReconcileStatus().ObservedGeneration = obj.GetGeneration()
	}
}

// suspended has Ready say that nothing is done, in front of what it says already.
func (r *Runner) suspended(ctx context.Context, obj Object) error {
	const prefix = "Suspended; "
	before := obj.DeepCopyObject().(Object)
	ready := conditions.Get(obj, v1alpha1.ReadyCondition)
	if ready == nil || strings.HasPrefix(ready.Message, prefix) {
		return nil
	}
	marked := ready.DeepCopy()
	marked.Message = prefix + marked.Message
	conditions.Set(obj, marked)
	conditions.Delete(obj, v1alpha1.ReconcilingCondition)
	return r.patch(ctx, before, obj)
}

// next says when to look again. Only a failure without a retryInterval goes through the queue's backoff.
func next(ctx context.Context, obj Object, v *verdict) (ctrl.Result, error) {
	every := jitter.JitteredIntervalDuration(obj.GetSchedule().Every())
	switch {
	case v == nil || v.kind == stopped:
		return ctrl.Result{RequeueAfter: every}, nil
	case v.after > 0:
		return ctrl.Result{RequeueAfter: v.after}, nil
	case pause(obj) > 0:
		ctrl.LoggerFrom(ctx).Error(v.err, "Trying again", "after", pause(obj))
		return ctrl.Result{RequeueAfter: pause(obj)}, nil
	}
	return ctrl.Result{}, v.err
}

// pause is how long to rest before the next try of a failure: retryInterval where it is set, else zero, which leaves it
// to the queue's backoff.
func pause(obj Object) time.Duration {
	if d := obj.GetSchedule().RetryInterval; d != nil {
		return d.Duration
	}
	return 0
}

func errOf(v *verdict) error {
	if v == nil {
		return nil
	}
	return v.err
}
