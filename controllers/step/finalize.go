package step

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// heldPause is the pause before an object with a held deletion is reconciled again.
const heldPause = 10 * time.Second

// Cause says whether a deletion was meant for the object itself. The zero value says that it was, so what the object created may be
// deleted.
type Cause struct {
	// Other is what was really deleted, such as the object's CustomResourceDefinition; nothing that the object created is deleted then.
	Other string
	// Hold keeps the object until Cause is called again. If false, only the finalizer is removed.
	Hold bool
}

// Finalize deletes what obj created, and removes the finalizer when every step succeeded. If the object is suspended, or its deletion was
// meant for another object (see Cause), Finalize removes only the finalizer.
func (r *Runner) Finalize(ctx context.Context, obj Object, s Scope, steps ...Step) (ctrl.Result, error) {
	result, err := r.finalize(ctx, obj, s, steps)
	return r.soonWhereFenced(ctx, result, err)
}

func (r *Runner) finalize(ctx context.Context, obj Object, s Scope, steps []Step) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(obj, v1alpha1.Finalizer) {
		return ctrl.Result{}, nil
	}
	if left, result, err := r.leaveRunning(ctx, obj); left || err != nil {
		return result, err
	}
	c := &checkpoint{runner: r, before: obj.DeepCopyObject().(Object), obj: obj, scope: s}
	if v, degraded := r.walk(ctx, obj, steps); v != nil {
		return r.finish(ctx, c, v, degraded)
	}
	_, err := r.release(ctx, obj)
	return afterFinalizer(err)
}

// leaveRunning handles a deletion that must not delete what the object created, and reports whether it did. It calls Cause, which reads
// from the API server, before the first step of a Finalize; once a deletion is known to be meant for the object, that stays so. It does not
// call Cause for a suspended object.
func (r *Runner) leaveRunning(ctx context.Context, obj Object) (left bool, result ctrl.Result, err error) {
	cause := Cause{Other: "it was suspended when it was deleted"}
	if !obj.GetSchedule().Suspend {
		if _, asked := r.meant.Load(obj.GetUID()); asked || r.Cause == nil {
			return false, ctrl.Result{}, nil
		}
		if cause, err = r.Cause(ctx, obj); err != nil {
			return false, ctrl.Result{}, fmt.Errorf("finding out why %s is deleted: %w", obj.GetName(), err)
		}
	}
	log := ctrl.LoggerFrom(ctx)
	switch {
	case cause.Other == "":
		r.meant.Store(obj.GetUID(), nil)
		return false, ctrl.Result{}, nil
	case cause.Hold:
		if _, reported := r.held.LoadOrStore(obj.GetUID(), nil); !reported {
			log.Info("Nothing is removed: "+cause.Other, "looksAgainEvery", heldPause)
			r.emit(obj, corev1.EventTypeWarning, v1alpha1.DeletionHeldReason, "it stays with what it made, and is looked at again every "+heldPause.String()+": "+cause.Other)
		}
		return true, ctrl.Result{RequeueAfter: heldPause}, nil
	}
	there, err := r.release(ctx, obj)
	if err != nil || !there {
		result, err = afterFinalizer(err)
		return true, result, err
	}
	log.Info("Nothing is removed, and the object is let go: " + cause.Other)
	r.emit(obj, corev1.EventTypeWarning, v1alpha1.LeftRunningReason, "what it made is left running: "+cause.Other)
	return true, ctrl.Result{}, nil
}
