package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/apply"
	"github.com/kubeop/kubeop/delivery/health"
)

// health looks once whether the objects do what they are there for. The watch wakes the app when one of them changes;
// in between it looks again after a tenth of the time it has been waiting, for what pods suffer causes no event here.
func (r *Reconciler) health(ctx context.Context, s *scope) error {
	refs, err := refsOf(s.inventory)
	if err != nil {
		return err
	}
	verdict, err := health.Look(ctx, s.client, refs)
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

func refsOf(inventory v1alpha1.Inventory) ([]health.Ref, error) {
	var refs []health.Ref
	for _, e := range inventory.Entries {
		id, err := apply.ParseObjectID(e.ID)
		if err != nil {
			return nil, err
		}
		refs = append(refs, health.Ref{
			Kind: schema.GroupVersionKind{Group: id.Group, Version: e.Version, Kind: id.Kind},
			Key:  client.ObjectKey{Namespace: id.Namespace, Name: id.Name},
		})
	}
	return refs, nil
}
