package app

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/apply"
	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/delivery/own"
	"github.com/kubeop/kubeop/delivery/policy"
)

// admit refuses objects the app may not have, and makes the others the app's.
func (r *Reconciler) admit(_ context.Context, s *scope) error {
	err := r.check(s)(s.objects)
	switch {
	case errors.As(err, new(*budget.Exceeded)):
		return step.Stop(v1alpha1.TooLargeReason, err)
	case refused(err):
		return step.Stop(v1alpha1.NotAllowedReason, err)
	case policy.OnlyUnknownKinds(err):
		return step.Fail(v1alpha1.NotAllowedReason, err)
	}
	return err
}

// lowered adds to what a quota refused that the quota is lower than the project's own, and why.
func (r *Reconciler) lowered(s *scope, err error) error {
	if !apply.OverQuota(err) || !r.Store.Lowered(s.owner.Tenant, s.app.Namespace) {
		return err
	}
	return fmt.Errorf("%w; this quota is lower than the project's own, because all objects of tenant %s may take %s of the API server's store, each counted as "+
		"large as it may be: remove some in any project, or ask an administrator of the cluster for more with spec.limits.%s of the Tenant",
		err, s.owner.Tenant, budget.StoreBytes.Text(s.storeBytes), budget.StoreBytes.Name)
}

// refused reports whether only a change of the source can help. The definition of an unknown kind may be on its way.
func refused(err error) bool {
	return errors.As(err, new(*budget.Exceeded)) || errors.As(err, new(*policy.Violation)) && !policy.OnlyUnknownKinds(err)
}

// check returns the function that checks and owns objects; Helm runs it over what its chart renders.
func (r *Reconciler) check(s *scope) func([]*unstructured.Unstructured) error {
	renderer := s.renderer()
	return func(objects []*unstructured.Unstructured) error {
		if err := renderer.Check(objects); err != nil {
			return err
		}
		scope := policy.WithDefinitions(objects, r.Clients.Namespaced)
		if err := policy.Check(objects, s.app.Namespace, scope, s.clusterKinds); err != nil {
			return err
		}
		s.owner.Stamp(objects)
		changed := own.Retain(objects, s.app)
		if s.app.Spec.Helm == nil { // A release is rendered beside this Reconcile.
			s.data.changed = changed
		}
		for _, o := range objects {
			if namespaced, err := scope(o.GroupVersionKind()); err == nil && !namespaced {
				o.SetNamespace("")
			}
		}
		return nil
	}
}

// allowance tells limits of the tenant that are its own from any others.
func (r *Reconciler) allowance(s *scope) string {
	if s.limits == r.Limits.App {
		return ""
	}
	return fmt.Sprint(s.limits)
}
