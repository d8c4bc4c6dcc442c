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
	"github.com/kubeop/kubeop/controllers/hostclaims"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/apply"
	"github.com/kubeop/kubeop/delivery/guardrails"
)

// enforce writes the Guardrails of the namespace: the rules of the policies that the tenant is under, its domains, and the host names that the project has. If
// one of the policies does not exist, the rules stay as they are, because fewer rules would allow more.
func (r *Reconciler) enforce(ctx context.Context, s *scope) error {
	policies := &v1alpha1.PolicyList{}
	if err := r.Client.List(ctx, policies, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing the policies: %w", err)
	}
	selected, missing := guardrails.Select(s.tenant, policies.Items)
	live := &v1alpha1.Guardrails{}
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: v1alpha1.GuardrailsName}, live)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading the guardrails of namespace %s: %w", s.namespace, err)
	}
	s.network.policies = selected
	spec := guardrails.For(s.tenant, selected)
	if len(missing) > 0 {
		spec = live.Spec
	}
	if len(missing) == 0 || err == nil {
		if err := r.writeGuardrails(ctx, s, spec, live.Spec.Hostnames); err != nil {
			return err
		}
	}
	if len(missing) > 0 {
		return step.Stop(v1alpha1.PolicyNotFoundReason, fmt.Errorf("spec.policies of tenant %s names what does not exist: %s. Add policies/<policy>.yaml to the platform "+
			"repository, or take the name out of tenant.yaml; until then the guardrails stay as they are", s.tenant.Name, strings.Join(missing, ", ")))
	}
	return nil
}

// writeGuardrails writes rules with the host names that the project has; listed are the names so far.
func (r *Reconciler) writeGuardrails(ctx context.Context, s *scope, spec v1alpha1.GuardrailsSpec, listed *v1alpha1.ClaimedHostnames) error {
	names, again, err := r.Hosts.Names(ctx, s.hosts(listed))
	if err != nil {
		return err
	}
	s.again, spec.Hostnames = again, &v1alpha1.ClaimedHostnames{Names: names}
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

// hosts is the project for its host names.
func (s *scope) hosts(listed *v1alpha1.ClaimedHostnames) hostclaims.Project {
	return hostclaims.Project{Tenant: tenantOf(s.project), Name: s.project.Name, Namespace: s.namespace, Listed: listed}
}
