package project

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/apply"
	"github.com/kubeop/kubeop/delivery/guardrails"
)

// enforce writes the Guardrails of the namespace: the rules of the policies that the tenant is under. If one of these does not exist, the
// Guardrails stay as they are, because fewer rules would allow more.
func (r *Reconciler) enforce(ctx context.Context, s *scope) error {
	policies := &v1alpha1.PolicyList{}
	if err := r.Client.List(ctx, policies, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing the policies: %w", err)
	}
	selected, missing := guardrails.Select(s.tenant, policies.Items)
	if len(missing) > 0 {
		return step.Stop(v1alpha1.PolicyNotFoundReason, fmt.Errorf("spec.policies of tenant %s names what does not exist: %s. Add policies/<policy>.yaml to the platform "+
			"repository, or take the name out of tenant.yaml; until then the guardrails stay as they are", s.tenant.Name, strings.Join(missing, ", ")))
	}
	spec := guardrails.Of(selected)
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&spec)
	if err != nil {
		return fmt.Errorf("encoding the guardrails: %w", err)
	}
	object := &unstructured.Unstructured{Object: map[string]any{"spec": content}}
	object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.GuardrailsKind))
	object.SetName(v1alpha1.GuardrailsName)
	object.SetNamespace(s.namespace)
	object.SetLabels(s.labels())
	return step.Refused(v1alpha1.ApplyFailedReason, s.made.Apply(ctx, object), apply.ErrForeign)
}

// under maps a policy to the projects of the tenants that are under it. If listing the tenants fails, the error is logged, and the projects
// are reconciled at their interval.
func (r *Reconciler) under(ctx context.Context, policy client.Object) (requests []reconcile.Request) {
	tenants := &v1alpha1.TenantList{}
	if err := r.Client.List(ctx, tenants, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing the tenants under a policy that changed; their projects are reconciled at their interval", "policy", policy.GetName())
		return nil
	}
	of := []v1alpha1.Policy{*policy.(*v1alpha1.Policy)}
	for i := range tenants.Items {
		if selected, _ := guardrails.Select(&tenants.Items[i], of); len(selected) > 0 {
			requests = append(requests, r.projectsOf(ctx, &tenants.Items[i])...)
		}
	}
	return requests
}
