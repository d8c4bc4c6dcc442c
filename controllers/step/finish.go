package step

import (
	"context"
	"errors"

	ctrl "sigs.k8s.io/controller-runtime"
)

// finish reports how a Reconcile ended: it sets Ready and the conditions that belong to it, writes the status if it changed, emits an event
// if Ready or one of the degraded conditions changed, and returns when to reconcile again.
func (r *Runner) finish(ctx context.Context, c *checkpoint, v *verdict, degraded []string) (ctrl.Result, error) {
	if v != nil && v.kind == quiet {
		return ctrl.Result{RequeueAfter: v.after}, nil
	}
	before, obj, s := c.before, c.obj, c.scope
	s.Record()
	if broke, why := brokeOff(ctx, v); broke {
		obj.SetConditions(before.GetConditions()) // Record what was done, but no conditions.
		return ctrl.Result{}, errors.Join(r.write(ctx, before, obj, s), why)
	}
	report := reportOf(s, v)
	summarise(obj, v, report)
	if err := r.write(ctx, before, obj, s); err != nil {
		return ctrl.Result{}, errors.Join(err, errOf(v))
	}
	countRefusal(obj, errOf(v))
	r.events(before, obj, report, degraded)
	result, err := next(ctx, obj, v)
	if sooner, ok := s.(Sooner); ok && (v == nil || v.kind == stopped) && sooner.Again() > 0 {
		result.RequeueAfter = min(result.RequeueAfter, sooner.Again())
	}
	return result, err
}

func errOf(v *verdict) error {
	if v == nil {
		return nil
	}
	return v.err
}
