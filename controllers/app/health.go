package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/health"
)

// health looks once whether the objects of the source do what they are there for; what is recorded beside them, waiting to
// be deleted or kept without pruning, is nothing the app depends on. The watch wakes the app when one of them changes;
// in between it looks again after a tenth of the time it has been waiting, for what pods suffer causes no event here.
func (r *Reconciler) health(ctx context.Context, s *scope) error {
	verdict, err := health.Look(ctx, s.client, health.Refs(s.objects))
	if err != nil {
		return err
	}
	if verdict.Healthy() {
		s.unhealthySince = nil
		return nil
	}
	now := r.Clock.Now()
	if s.unhealthySince == nil {
		s.unhealthySince = &metav1.Time{Time: now}
	}
	waited := now.Sub(s.unhealthySince.Time)
	again := min(max(waited/10, time.Second), 15*time.Second)
	switch {
	case len(verdict.Failed) > 0:
		return step.FailAfter(v1alpha1.UnhealthyReason, again, errors.New(verdict.String()))
	case waited >= s.app.Spec.Within():
		return step.FailAfter(v1alpha1.UnhealthyReason, again, fmt.Errorf("not healthy within %s: %s", s.app.Spec.Within(), verdict))
	}
	return step.Wait(v1alpha1.ProgressingReason, again, "%s", verdict)
}
