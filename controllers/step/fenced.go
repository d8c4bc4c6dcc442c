package step

import (
	"context"
	"errors"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/kubeop/kubeop/internal/fence"
)

// fencedPause is the pause before the next Reconcile after the fence refused a write because the operator may have lost its lease.
const fencedPause = 2 * time.Second

// soonWhereFenced retries a write that the fence refused without the queue's backoff: the lease is renewed within seconds, or this process
// ends, while the backoff may be five minutes.
func (r *Runner) soonWhereFenced(ctx context.Context, result ctrl.Result, err error) (ctrl.Result, error) {
	if !errors.Is(err, fence.ErrFenced) {
		return result, err
	}
	// The fence may refuse the writes of all objects at once: log it once per pause.
	if now, last := r.Clock.Now().UnixNano(), r.fenced.Load(); now-last > int64(fencedPause) && r.fenced.CompareAndSwap(last, now) {
		ctrl.LoggerFrom(ctx).Error(err, "Nothing is written, and tried again soon", "after", fencedPause)
	}
	return ctrl.Result{RequeueAfter: fencedPause}, nil
}

// brokeOff reports whether a Reconcile failed for a reason that is not about its object: the operator is stopping, or the fence refused a
// write. why is the error if the Reconcile is to be retried.
func brokeOff(ctx context.Context, v *verdict) (did bool, why error) {
	switch {
	case v == nil || v.kind != failed:
		return false, nil
	case errors.Is(v.err, fence.ErrFenced):
		return true, v.err
	}
	return ctx.Err() != nil, nil
}
