package step

import (
	"context"
	"errors"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/kubeop/kubeop/internal/fence"
)

// fencedPause is when a Reconcile is tried again that could not write because the operator does not surely hold its lease.
const fencedPause = 2 * time.Second

// soonWhereFenced spares the queue's backoff what the fence kept from writing. The lease is renewed within seconds, or this process ends;
// backoff would have the object wait for up to five minutes more.
func (r *Runner) soonWhereFenced(ctx context.Context, result ctrl.Result, err error) (ctrl.Result, error) {
	if !errors.Is(err, fence.ErrFenced) {
		return result, err
	}
	// All objects may be refused at once: the log says it once a pause.
	if now, last := r.Clock.Now().UnixNano(), r.fenced.Load(); now-last > int64(fencedPause) && r.fenced.CompareAndSwap(last, now) {
		ctrl.LoggerFrom(ctx).Error(err, "Nothing is written, and tried again soon", "after", fencedPause)
	}
	return ctrl.Result{RequeueAfter: fencedPause}, nil
}

// brokeOff reports whether a Reconcile ended in a way that says nothing about its object: the operator is stopping, or the fence kept
// it from writing. Why is set where it is to be tried again.
func brokeOff(ctx context.Context, v *verdict) (did bool, why error) {
	switch {
	case v == nil || v.kind != failed:
		return false, nil
	case errors.Is(v.err, fence.ErrFenced):
		return true, v.err
	}
	return ctx.Err() != nil, nil
}
