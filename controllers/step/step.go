// Package step runs a Reconcile that is a list of steps. A step does one thing and records facts in its scope. Only the runner writes
// conditions and the status, and an event when a condition changes. A step may itself send the event about a single act, such as forced
// removal of finalizers. Metrics belong to the package whose resource they count; those here are of object sizes and refused writes.
//
// What a step returns decides what follows:
//
//	nil                 it succeeded: the next step runs
//	Skip                it was left out: its condition stays, the next step runs
//	Degrade             it failed, but what was delivered stands: the next step runs, Ready does not report it
//	GoOn                as Degrade, and Ready reports it unless a later step ends worse
//	Soon, WaitQuietly   work is under way: nothing is reported yet, the object is looked at again soon
//	Wait                nothing is wrong, but something is missing: Ready is Unknown
//	Unanswered          as Wait, but a failure that its condition reports stays reported
//	Stop, Refused       only a change can help: the object is Stalled
//	Fail, FailAfter     it failed and is tried again, with backoff or after a given time
//	any other error     as Fail, with the reason Failed or AccessDenied
//
// A Scope must have the methods of that interface; scope.go lists what it may have besides: Noter, Headed, Sooner, Detailed, Notified, Masker.
package step

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/fluxcd/pkg/runtime/metrics"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// Runner runs the steps of one kind's controller.
type Runner struct {
	Client client.Client
	Events events.EventRecorder
	// Durations records the duration of each Run; nil records none.
	Durations *metrics.Recorder
	Clock     clock.PassiveClock
	// Cause is called before a Finalize deletes anything, and reports whether the deletion was meant for the object. Nil means that it
	// always was. Cause must not read from a cache.
	Cause func(ctx context.Context, obj Object) (Cause, error)
	// Wake reconciles an object when a watch that one of its steps needs had its first list. If Wake is nil, the object is only reconciled
	// again after a while.
	Wake func(key client.ObjectKey)

	// failing holds, by UID, the failure that the last event about Ready of an object reported.
	failing sync.Map
	// meant holds the UIDs of objects whose deletion was meant for them, so that Cause is not called again.
	meant sync.Map
	// held holds the UIDs of objects whose held deletion was already reported by an event.
	held sync.Map
	// fenced is when the log last reported that the fence refused writes, in Unix nanoseconds.
	fenced atomic.Int64
}

// Run reconciles obj with its spec: it adds the finalizer, runs the steps in order until one does not succeed, and reports the result. It
// changes nothing of a suspended object but its condition Suspended and Ready's message.
func (r *Runner) Run(ctx context.Context, obj Object, s Scope, steps ...Step) (ctrl.Result, error) {
	result, err := r.run(ctx, obj, s, steps)
	return r.soonWhereFenced(ctx, result, err)
}

func (r *Runner) run(ctx context.Context, obj Object, s Scope, steps []Step) (ctrl.Result, error) {
	start := r.Clock.Now()
	if obj.GetSchedule().Suspend {
		return ctrl.Result{}, r.suspended(ctx, obj, "")
	}
	if until := v1alpha1.SuspendedUntil(obj); until.After(start) {
		obj.GetSchedule().Suspend = true // For the caller, the object is suspended until the end of this Reconcile.
		return ctrl.Result{RequeueAfter: until.Sub(start)}, r.suspended(ctx, obj, " until "+until.UTC().Format(time.RFC3339))
	}
	defer r.record(obj, start)

	if err := r.hold(ctx, obj); err != nil {
		return afterFinalizer(err)
	}
	c := &checkpoint{runner: r, before: obj.DeepCopyObject().(Object), obj: obj, scope: s}
	conditions.Delete(obj, v1alpha1.SuspendedCondition)
	v, degraded := r.walk(context.WithValue(ctx, checkpointKey{}, c), obj, steps)
	return r.finish(ctx, c, v, degraded)
}

// record records the duration of a Run by kind and namespace. A series for each of thousands of objects would take a fifth of the
// operator's memory, and of each scrape.
func (r *Runner) record(obj Object, start time.Time) {
	if r.Durations != nil {
		r.Durations.RecordDuration(corev1.ObjectReference{Kind: kindOf(obj), Namespace: obj.GetNamespace()}, start)
	}
}

// reportsFailure reports whether a condition is False for the present spec.
func reportsFailure(obj Object, condition string) bool {
	last := conditions.Get(obj, condition)
	return last != nil && last.Status == metav1.ConditionFalse && last.ObservedGeneration == obj.GetGeneration()
}

// walk runs the steps and sets their conditions. It returns nil if all succeeded, otherwise how the first failed step ended. Steps that end
// with goesOn do not stop the walk; if no later step stops it, the last of them whose verdict counts for Ready is returned. If one does, what
// they say of their conditions stays. degraded are the conditions of the steps that ended with Degrade.
func (r *Runner) walk(ctx context.Context, obj Object, steps []Step) (ends *verdict, degraded []string) {
	var said []string
	for i, s := range steps {
		err := s.do(ctx)
		if err == nil {
			conditions.MarkTrue(obj, s.condition, v1alpha1.SucceededReason, "")
			continue
		}
		v := r.awaits(obj, err)
		if v == nil {
			v = outcomeOf(err)
		}
		if v.noNews && reportsFailure(obj, s.condition) {
			v.kind = quiet
		}
		switch v.kind {
		case quiet:
			return v, degraded
		case skipped:
			continue
		case waiting:
			conditions.MarkUnknown(obj, s.condition, v.reason, "%s", v.err)
		default:
			conditions.MarkFalse(obj, s.condition, v.reason, "%s", v.err)
		}
		said = append(said, s.condition)
		if v.goesOn {
			if v.stands {
				degraded = append(degraded, s.condition)
			} else {
				ends = v
			}
			continue
		}
		for _, later := range steps[i+1:] {
			if !slices.Contains(said, later.condition) { // Two steps may share a condition.
				conditions.MarkUnknown(obj, later.condition, v1alpha1.ProgressingReason, "waits for %s", s.condition)
			}
		}
		return v, degraded
	}
	return ends, degraded
}
