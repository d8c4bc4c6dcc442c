package app

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/apply"
	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/delivery/own"
	"github.com/kubeop/kubeop/delivery/policy"
)

// admit refuses objects the app may not have, and makes the others the app's.
func (r *Reconciler) admit(_ context.Context, s *scope) error {
	size := budget.Size(s.objects)
	err := r.check(s)(s.objects)
	if err == nil {
		if err = r.weigh(s)(size); err == nil {
			s.rendered = size
		}
	}
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
	return func(objects []*unstructured.Unstructured) error {
		if err := s.limits.Check(objects); err != nil {
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

// weigh returns the function that counts what the app delivers, in bytes, and refuses what is too much for the tenant; Helm asks it before
// it records a revision.
func (r *Reconciler) weigh(s *scope) func(int64) error {
	tenant, app, limit := s.owner.Tenant, client.ObjectKeyFromObject(s.app), s.renderedBytes
	return func(bytes int64) error { return r.Rendered.Admit(tenant, app, bytes, limit) }
}

// allowance tells limits of the tenant that are its own from any others, and what was refused from what there is room for since.
func (r *Reconciler) allowance(s *scope) string {
	_, woken := r.Rendered.Asked(client.ObjectKeyFromObject(s.app))
	if s.limits == r.Limits.App && s.renderedBytes == r.Limits.RenderedBytes && woken == 0 {
		return ""
	}
	return fmt.Sprint(s.limits, s.renderedBytes, woken)
}
