package app

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/policy"
)

// admit refuses objects the app may not have, and makes the others the app's.
func (r *Reconciler) admit(_ context.Context, s *scope) error {
	err := r.check(s)(s.objects)
	var violation *policy.Violation
	switch {
	case policy.OnlyUnknownKinds(err):
		// The kind's definition may be on its way.
		return step.Fail(v1alpha1.NotAllowedReason, err)
	case errors.As(err, &violation):
		return step.Stop(v1alpha1.NotAllowedReason, err)
	}
	return err
}

// check returns the function that checks and owns objects; Helm runs it over what its chart renders.
func (r *Reconciler) check(s *scope) func([]*unstructured.Unstructured) error {
	return func(objects []*unstructured.Unstructured) error {
		if err := policy.Check(objects, s.app.Namespace, r.Clients.Namespaced); err != nil {
			return err
		}
		s.owner.Stamp(objects)
		return nil
	}
}
