package project

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/apply"
	"github.com/kubeop/kubeop/delivery/guardrails"
)

// enforce writes the Guardrails of the namespace: the rules of the policies that the tenant is under, and its domains. If one of these does not exist, the
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
	spec := guardrails.For(s.tenant, selected)
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&spec)
	if err != nil {
		return fmt.Errorf("encoding the guardrails: %w", err)
	}
	object := &unstructured.Unstructured{Object: map[string]any{"spec": content}}
	object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.GuardrailsKind))
	object.SetName(v1alpha1.GuardrailsName)
	object.SetNamespace(s.namespace)
	labels := guardrails.Labels(content)
	maps.Copy(labels, s.labels())
	object.SetLabels(labels)
	return step.Refused(v1alpha1.ApplyFailedReason, s.made.Apply(ctx, object), apply.ErrForeign)
}
