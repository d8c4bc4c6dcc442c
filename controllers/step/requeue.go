package step

import (
	"context"
	"time"

	"github.com/fluxcd/pkg/runtime/jitter"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/blame"
)

// next says when to reconcile again: after the interval, after the time that the step asked for (see Wait and NextLook), or, after a
// failure, after the retryInterval. Only a failure without a retryInterval uses the backoff of the work queue, which controllers/queues.go
// sets to backoff.First, doubled up to backoff.Last.
func next(ctx context.Context, obj Object, v *verdict) (ctrl.Result, error) {
	every := jitter.JitteredIntervalDuration(obj.GetSchedule().Every())
	switch {
	case v == nil || v.kind == stopped:
		return ctrl.Result{RequeueAfter: every}, nil
	case v.after > 0:
		return ctrl.Result{RequeueAfter: v.after}, nil
	}
	err := blame.Judge(obj.GetLabels()[v1alpha1.TenantLabel], v.reason, v.err)
	if pause(obj) > 0 {
		ctrl.LoggerFrom(ctx).Error(err, "Trying again", "after", pause(obj))
		return ctrl.Result{RequeueAfter: pause(obj)}, nil
	}
	return ctrl.Result{}, err
}

// pause is the pause before the next try after a failure: retryInterval if set, otherwise zero, which means the queue's backoff.
func pause(obj Object) time.Duration {
	if d := obj.GetSchedule().RetryInterval; d != nil {
		return d.Duration
	}
	return 0
}
