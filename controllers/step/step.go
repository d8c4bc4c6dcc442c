// Package step runs a Reconcile that is a list of steps. A step does one thing and records facts in its scope; the
// runner alone writes conditions, the status, events and metrics.
package step

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/fluxcd/pkg/runtime/metrics"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// Object is a kind of this API.
type Object interface {
	client.Object
	conditions.Setter
	GetReconcileStatus() *v1alpha1.ReconcileStatus
	GetSchedule() *v1alpha1.Schedule
}

// Scope holds the facts one Reconcile finds.
type Scope interface {
	// Record writes the facts into the object's status; it never touches conditions.
	Record()
	// Summary is Ready's message when every step succeeded.
	Summary() string
}

// Noter is a Scope with conditions beside those of the steps.
type Noter interface {
	Notes() []Note
}

// Note is a condition that is no step of its own. One without a status is taken away; one without a condition is an event
// only.
type Note struct {
	Condition string
	Status    metav1.ConditionStatus
	Reason    string
	Message   string
	// Event has it told as an event too, with this type, when it is new or says something else than before; "" does not.
	Event string
}

// Headed is a Scope with something to say in front of Ready's message, whatever that is; Heading is "" for nothing.
type Headed interface {
	Heading() string
}

// Sooner is a Scope that may want to be looked at again before the interval is over though all is well, or nothing but a
// change can help: Again is above 0 then.
type Sooner interface {
	Again() time.Duration
}

// Detailed is a Scope that knows more about a failure than fits into a condition; events carry it.
type Detailed interface {
	Details() string
}

// Teller is a Scope that wants to know when the status tells what it recorded: Told is called then.
type Teller interface {
	Told()
}

// Discreet is a Scope that knows words which nothing that is told may hold: Mask hides them in a text.
type Discreet interface {
	Mask(text string) string
}

// Step is one act of a Reconcile and the condition that tells how it went.
type Step struct {
	condition string
	do        func(context.Context) error
}

// Of makes a step of a function over a scope.
func Of[S Scope](condition string, s S, do func(context.Context, S) error) Step {
	return Step{condition: condition, do: func(ctx context.Context) error { return discreet(s, do(ctx, s)) }}
}

// Runner runs the steps of one kind's controller.
type Runner struct {
	Client client.Client
	Events events.EventRecorder
	// Durations records how long each Run took; nil for not at all.
	Durations *metrics.Recorder
	Clock     clock.PassiveClock
	// Cause is asked, before a Finalize removes anything, whether the deletion was meant for the object; nil for always. It
	// must not read from a cache.
	Cause func(ctx context.Context, obj Object) (Cause, error)
	// Wake has the object of a key looked at: it is called when a watch that a step needed can tell what there is. Nil: the object is
	// only looked at again after a while.
	Wake func(key client.ObjectKey)

	// failing are the UIDs of objects whose last word was a failure, meant those of objects whose deletion was meant for them, and
	// held those of objects whose deletion is held, which is told.
	failing, meant, held sync.Map
	// fenced is when the log said last, in Unix nanoseconds, that writes are refused.
	fenced atomic.Int64
}

// Run brings obj to what its spec says: it takes hold of it with the finalizer, runs the steps in order until one does
// not succeed, and tells the outcome. A suspended object is left as it is.
func (r *Runner) Run(ctx context.Context, obj Object, s Scope, steps ...Step) (ctrl.Result, error) {
	result, err := r.run(ctx, obj, s, steps)
	return r.soonWhereFenced(ctx, result, err)
}

func (r *Runner) run(ctx context.Context, obj Object, s Scope, steps []Step) (ctrl.Result, error) {
	if obj.GetSchedule().Suspend {
		return ctrl.Result{}, r.suspended(ctx, obj)
	}
	start := r.Clock.Now()
	defer r.record(obj, start)

	if err := r.hold(ctx, obj); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	c := &checkpoint{runner: r, before: obj.DeepCopyObject().(Object), obj: obj, scope: s}
	v := r.walk(context.WithValue(ctx, checkpointKey{}, c), obj, steps)
	return r.finish(ctx, c.before, obj, s, v)
}

// record counts how long a Run took, by kind and namespace: a series for each of thousands of objects would be a fifth of what is
// remembered of them, and of what each scrape brings.
func (r *Runner) record(obj Object, start time.Time) {
	if r.Durations != nil {
		r.Durations.RecordDuration(corev1.ObjectReference{Kind: kindOf(obj), Namespace: obj.GetNamespace()}, start)
	}
}

// Finalize undoes what obj made and lets it go when every step succeeded. A suspended object is let go at once, and
// what it made stays; so is one whose deletion was meant for something else, see Cause.
func (r *Runner) Finalize(ctx context.Context, obj Object, s Scope, steps ...Step) (ctrl.Result, error) {
	result, err := r.finalize(ctx, obj, s, steps)
	return r.soonWhereFenced(ctx, result, err)
}

func (r *Runner) finalize(ctx context.Context, obj Object, s Scope, steps []Step) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(obj, v1alpha1.Finalizer) {
		return ctrl.Result{}, nil
	}
	if left, result, err := r.leave(ctx, obj); left || err != nil {
		return result, err
	}
	before := obj.DeepCopyObject().(Object)
	if v := r.walk(ctx, obj, steps); v != nil {
		return r.finish(ctx, before, obj, s, v)
	}
	_, err := r.letGo(ctx, obj)
	return ctrl.Result{}, err
}

// letGo takes the finalizer off obj, which lets it be gone. It reports false where it was gone already: a cache is a little late. Only
// metadata is sent and answered, because obj may be large, and nobody reads it any more.
func (r *Runner) letGo(ctx context.Context, obj Object) (bool, error) {
	controllerutil.RemoveFinalizer(obj, v1alpha1.Finalizer)
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": obj.GetUID(), "finalizers": obj.GetFinalizers()}})
	if err != nil {
		return false, fmt.Errorf("encoding the finalizers: %w", err)
	}
	kind, err := apiutil.GVKForObject(obj, r.Client.Scheme())
	if err != nil {
		return false, fmt.Errorf("taking the finalizer off: %w", err)
	}
	about := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: obj.GetNamespace(), Name: obj.GetName()}}
	about.SetGroupVersionKind(kind)
	// Read-your-writes would need an informer of metadata, beside the one of the objects.
	err = r.Client.Patch(ctx, about, client.RawPatch(types.MergePatchType, patch), client.DisableReadYourWritesConsistency)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("taking the finalizer off: %w", err)
	}
	r.failing.Delete(obj.GetUID())
	r.meant.Delete(obj.GetUID())
	r.held.Delete(obj.GetUID())
	oversized.Delete(labelsOf(obj))
	return err == nil, nil
}

// hold adds the finalizer before the first step makes anything.
func (r *Runner) hold(ctx context.Context, obj Object) error {
	before := obj.DeepCopyObject().(Object)
	if !controllerutil.AddFinalizer(obj, v1alpha1.Finalizer) {
		return nil
	}
	if err := r.Client.Patch(ctx, obj, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("adding the finalizer: %w", err)
	}
	return nil
}

// walk runs the steps and marks their conditions. It returns nil when all succeeded, else how the first one ended that
// did not, or that of which the later steps go on.
func (r *Runner) walk(ctx context.Context, obj Object, steps []Step) (ends *verdict) {
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
		switch v.kind {
		case quiet:
			return v
		case skipped:
			continue
		case waiting:
			conditions.MarkUnknown(obj, s.condition, v.reason, "%s", v.err)
		default:
			conditions.MarkFalse(obj, s.condition, v.reason, "%s", v.err)
		}
		if v.goesOn {
			if !v.stands {
				ends = v
			}
			continue
		}
		for _, later := range steps[i+1:] {
			if later.condition != s.condition { // Two steps may share a condition.
				conditions.MarkUnknown(obj, later.condition, v1alpha1.ProgressingReason, "waits for %s", s.condition)
			}
		}
		return v
	}
	return ends
}

// pause is how long to rest before the next try of a failure: retryInterval where it is set, else zero, which leaves it
// to the queue's backoff.
func pause(obj Object) time.Duration {
	if d := obj.GetSchedule().RetryInterval; d != nil {
		return d.Duration
	}
	return 0
}
